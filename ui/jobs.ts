import type { CallOptions, Job, Page } from "../src/client/client.ts"
import { may, petrel } from "./session.ts"

/** Long work that sends or tries again. */
export type BulkKind = Exclude<Job["kind"], "audit">

type Jobs = Page & { readonly jobs: ReadonlyArray<Job>; readonly previous?: string }

/** A kind of job, as the API has it. */
interface Kind {
  readonly title: string
  /** Where it is in the API, below its tenant. */
  readonly path: string
  readonly mayBeSeen: () => boolean
  readonly list: (
    tenant: string,
    options: CallOptions
  ) => { readonly page: (cursor: string | undefined) => Promise<Jobs> }
  readonly get: (tenant: string, job: string, options: CallOptions) => Promise<Job>
  readonly cancel: (tenant: string, job: string) => Promise<Job>
}

/** Jobs of a page. */
const limit = 50

export const kinds: Readonly<Record<BulkKind, Kind>> = {
  redelivery: {
    title: "Redeliveries",
    path: "redeliveries",
    mayBeSeen: () => may("dead:write"),
    list: (tenant, options) => petrel.jobs.listRedeliveries({ tenant, limit }, options),
    get: (tenant, job, options) => petrel.jobs.getRedelivery({ tenant, job }, options),
    cancel: (tenant, job) => petrel.jobs.cancelRedelivery({ tenant, job })
  },
  replay: {
    title: "Replays",
    path: "replays",
    mayBeSeen: () => may("replay:write"),
    list: (tenant, options) => petrel.jobs.listReplays({ tenant, limit }, options),
    get: (tenant, job, options) => petrel.jobs.getReplay({ tenant, job }, options),
    cancel: (tenant, job) => petrel.jobs.cancelReplay({ tenant, job })
  },
  recovery: {
    title: "Recoveries",
    path: "recoveries",
    mayBeSeen: () => may("dead:write"),
    list: (tenant, options) => petrel.retries.listRecoveries({ tenant, limit }, options),
    get: (tenant, job, options) => petrel.retries.getRecovery({ tenant, job }, options),
    cancel: (tenant, job) => petrel.retries.cancelRecovery({ tenant, job })
  },
  retry: {
    title: "Bulk retries",
    path: "retries",
    mayBeSeen: () => may("endpoints:write"),
    list: (tenant, options) => petrel.retries.listRetries({ tenant, limit }, options),
    get: (tenant, job, options) => petrel.retries.getRetry({ tenant, job }, options),
    cancel: (tenant, job) => petrel.retries.cancelRetry({ tenant, job })
  }
}

export const isBulkKind = (text: string | undefined): text is BulkKind =>
  text !== undefined && Object.hasOwn(kinds, text)
