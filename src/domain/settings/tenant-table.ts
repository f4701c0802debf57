import { Schema } from "effect"
import { forwarded } from "../forwarded-headers.ts"
import { TimeoutBound } from "../timeout-bound.ts"
import type { Table } from "./setting.ts"
import { removable } from "./setting.ts"

/**
 * How many of something a tenant may have unless its operator says otherwise. Each endpoint costs all
 * workers memory (2 KB), and each token all consoles; a tenant of some thousand is told apart by hand.
 */
export const defaultQuotas = { maxEndpoints: 1_000, maxTokens: 1_000 } as const
export type QuotaName = keyof typeof defaultQuotas

const quota = (what: string, name: QuotaName) =>
  removable(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })), {
    text: `How many ${what} a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own.`,
    usual: defaultQuotas[name].toLocaleString("en-US")
  })

/**
 * The settings that hold for all endpoints of a tenant together, or of the system, one entry each:
 * as {@link endpointSettings} for an endpoint.
 */
export const tenantSettings = {
  hostCap: removable(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })), {
    text: "Concurrent requests of all its endpoints whose URLs have the same host name, 1 to 100,000.",
    usual: "no limit"
  }),
  maxTimeout: removable(TimeoutBound, {
    text: 'Longest time-out of an attempt that its endpoints may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it.',
    usual: "the system's, else 5 minutes"
  }),
  maxEndpoints: quota("endpoints", "maxEndpoints"),
  maxTokens: quota("tokens of the HTTP API", "maxTokens"),
  forwardHeaders: forwarded(
    "Headers of the publisher that all its endpoints get, as well as their own, by name: true adds one, null removes one."
  )
} as const satisfies Table

export type TenantSettingName = keyof typeof tenantSettings
