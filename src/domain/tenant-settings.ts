import { Schema } from "effect"
import { ForwardHeaders } from "./forwarded-headers.ts"
import { isToken, nobody } from "./token.ts"

/** Concurrent requests to one host. */
export const HostCap = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))

/**
 * What holds for all endpoints of a tenant together, or of the system: the value under the tenant's
 * name, or `_` for the system, in the endpoints bucket.
 */
export const TenantSettings = Schema.Struct({
  v: Schema.Literal(1),
  /**
   * Concurrent requests of all its endpoints whose URLs have the same host name. (Default: no limit)
   */
  hostCap: Schema.optionalKey(HostCap),
  /** Headers of the publisher that all its endpoints get, as well as their own. (Default: none) */
  forwardHeaders: Schema.optionalKey(ForwardHeaders),
  updatedAt: Schema.Number
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
  now: Schema.Struct({
    hostCap: TenantSettings.fields.hostCap,
    forwardHeaders: TenantSettings.fields.forwardHeaders
  })
})
export type SettingsChange = typeof SettingsChange.Type
