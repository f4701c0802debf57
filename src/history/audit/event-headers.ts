import type { Msg } from "@nats-io/transport-node"
import { headersOf } from "../../broker/headers.ts"
import type { Names } from "../../domain/names.ts"
import { Repeats, readOrigin } from "../../domain/origin.ts"

/** Characters that end a tenant's name at the start of an id; no name contains them. */
const separators = ":./"

/** True for an id that begins with the tenant's name and one of `.`, `/` and `:`. */
export const beginsWithTenant = (id: string, tenant: string): boolean =>
  id.startsWith(tenant) && id.length > tenant.length && separators.includes(id[tenant.length] ?? "")

/** Counts what the headers of events show about sources and ids. */
export class EventHeaders {
  readonly #names: Names
  readonly #origins = new Repeats()
  /** Sequences of events that a source stored again. */
  readonly repeated = new Set<number>()
  /**
   * For each tenant of the shared stream: how many of its events have an id that does not begin with
   * its name. Another tenant may use the same id.
   */
  readonly foreignIds = new Map<string, number>()

  constructor(names: Names) {
    this.#names = names
  }

  see(seq: number, message: Msg): void {
    const header = headersOf(message)
    const { eventRoot, ownEvents } = this.#names
    const tenant = message.subject.split(".", 2)[1] ?? ""
    if (!message.subject.startsWith(`${eventRoot}.`)) return
    const origin = readOrigin(header("nats-stream-source"))
    if (origin !== undefined && this.#origins.isRepeat(tenant, origin)) this.repeated.add(seq)
    if (origin !== undefined && origin.stream !== ownEvents) return
    const id = header("nats-msg-id")
    const isForeign = id !== undefined && !beginsWithTenant(id, tenant)
    this.foreignIds.set(tenant, (this.foreignIds.get(tenant) ?? 0) + Number(isForeign))
  }
}
