import { Duration, Option, Schema } from "effect"
import { durationText, PositiveDuration } from "../duration.ts"
import { Timestamp } from "../timestamp.ts"
import { isToken, nobody } from "../token.ts"
import { forwarded } from "./forward-headers.ts"
import type { Table } from "./setting.ts"
import { column, removable } from "./setting.ts"

/**
 * Longest time-out of an attempt where no operator has set another, ms: a request that is not
 * answered takes up a place in its worker for so long.
 */
export const defaultMaxTimeoutMs = 5 * 60_000
/** Longest time-out that an operator can allow, ms. */
export const highestMaxTimeoutMs = 24 * 60 * 60_000
const lowestMaxTimeoutMs = 1_000

const decode = Schema.decodeUnknownOption(PositiveDuration)

/** Returns a bound in ms; 0 for a text that is none. */
export const timeoutBoundMs = (text: string): number =>
  Option.match(decode(text), { onNone: () => 0, onSome: Duration.toMillis })

/** The longest time-out that endpoints may have, as people write it: "15 minutes". */
export const TimeoutBound = Schema.String.check(
  Schema.makeFilter((text: string) => {
    const ms = timeoutBoundMs(text)
    return ms >= lowestMaxTimeoutMs && ms <= highestMaxTimeoutMs
      ? undefined
      : 'must be a length of time between 1 second and 24 hours, such as "15 minutes"'
  }),
  durationText
)

/**
 * How many of something a tenant may have unless its operator says otherwise. Each endpoint costs all
 * workers memory (2 KB), and each token all consoles; a tenant of some thousand is told apart by hand.
 */
export const defaultQuotas = { maxEndpoints: 1_000, maxTokens: 1_000 } as const
export type QuotaName = keyof typeof defaultQuotas

const quota = (what: string) =>
  removable(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })), {
    text: `How many ${what} a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own.`,
    usual: "1,000"
  })

/**
 * The settings that hold for all endpoints of a tenant together, or of the system, one entry each:
 * as {@link endpointSettings} for an endpoint.
 */
export const tenantSettings = {
  hostCap: removable(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })), {
    text: "Concurrent requests of all of the tenant's endpoints whose URLs have the same host name, 1 to 100,000.",
    usual: "no limit"
  }),
  maxTimeout: removable(TimeoutBound, {
    text: 'Longest time-out of an attempt that endpoints of the tenant may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it.',
    usual: "the system's, else 5 minutes"
  }),
  maxEndpoints: quota("endpoints"),
  maxTokens: quota("tokens of the HTTP API, and as many links and sessions of browsers,"),
  forwardHeaders: forwarded(
    "Headers of the publisher that all of the tenant's endpoints get, besides those that an endpoint names, by name: true adds one, null removes one."
  )
} as const satisfies Table

export type TenantSettingName = keyof typeof tenantSettings

/**
 * What holds for all endpoints of a tenant together, or of the system: the value under the tenant's
 * name, or `_` for the system, in the endpoints bucket.
 */
export const TenantSettings = Schema.Struct({
  v: Schema.Literal(1),
  ...column(tenantSettings, "stored"),
  updatedAt: Timestamp
})
export type TenantSettings = typeof TenantSettings.Type

/** The key of the system's settings. No tenant has this name. */
export const systemKey = nobody

/** Returns true if a key of the endpoints bucket is one of settings. */
export const isSettingsKey = (key: string): boolean => key === systemKey || isToken(key)

/** One change of settings, as the history records it. */
export const SettingsChange = Schema.Struct({
  /** The revision in the endpoints bucket. */
  revision: Schema.Int,
  /** The settings after the change: each that is set. */
  now: Schema.Struct(column(tenantSettings, "told"))
})
export type SettingsChange = typeof SettingsChange.Type
