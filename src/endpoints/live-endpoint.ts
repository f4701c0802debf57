import { Duration, Effect, Result } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { attemptTimeoutMs } from "../policy/attempt-timeout.ts"
import type { RetrySchedule } from "../policy/backoff.ts"
import { toSchedule } from "../policy/backoff.ts"
import { resolveRetry } from "../policy/presets.ts"
import { hostOf } from "./host-index.ts"
import type { SettingsInForce } from "./settings-table.ts"
import type { Signer } from "./signing.ts"
import { makeSigner } from "./signing.ts"
import type { Target } from "./target.ts"
import { targetOf } from "./target.ts"

/** An endpoint's configuration, prepared for use. Durations in ms. */
export interface LiveEndpoint {
  readonly key: string
  readonly config: Endpoint
  readonly revision: number
  readonly policy: RetryPolicy
  readonly window: number
  readonly timeout: number
  readonly retryAfterCap: number
  readonly target: Target
  /** Custom headers: names and values alternate. */
  readonly ownHeaders: ReadonlyArray<string>
  /** Names of the publisher's headers that it gets, in lower case; undefined for none. */
  readonly forwards: ReadonlySet<string> | undefined
  /** What its requests share with those of others; undefined for nothing. */
  readonly sharedHost: SharedHost | undefined
  /**
   * Made on first use: a secret that its scheme cannot sign with must not fail readers that do not
   * sign.
   */
  readonly signer: () => Signer
  readonly schedule: () => RetrySchedule
}

/** The host of an endpoint's URL, where requests to it are capped over several endpoints. */
export interface SharedHost {
  readonly host: string
  readonly tenant: string
  /** Concurrent requests to the host for the tenant's endpoints together. */
  readonly tenantCap: number | undefined
  /** The same for the endpoints of all tenants. */
  readonly systemCap: number | undefined
}

/** Returns what an endpoint's requests share with those of others; undefined for nothing. */
export const sharedHostOf = (
  { tenant, url }: Endpoint,
  settings: SettingsInForce | undefined
): SharedHost | undefined => {
  const tenantCap = settings?.tenant?.hostCap
  const systemCap = settings?.system?.hostCap
  if (tenantCap === undefined && systemCap === undefined) return undefined
  return { host: hostOf(url), tenant, tenantCap, systemCap }
}

/**
 * Returns the names of the publisher's headers that an endpoint gets, in lower case: those of its
 * tenant, of the system, and its own. Headers that it sets itself keep their values.
 */
export const forwardedTo = (
  { forwardHeaders = [], headers, signatureHeader }: Endpoint,
  settings: SettingsInForce | undefined
): ReadonlyArray<string> => {
  const { system, tenant } = settings ?? {}
  const names = [
    ...(tenant?.forwardHeaders ?? []),
    ...(system?.forwardHeaders ?? []),
    ...forwardHeaders
  ]
  if (names.length === 0) return names
  const own = new Set([...Object.keys(headers), signatureHeader].map((name) => name?.toLowerCase()))
  return [...new Set(names)].filter((name) => !own.has(name))
}

const setOf = (names: ReadonlyArray<string>): ReadonlySet<string> | undefined =>
  names.length === 0 ? undefined : new Set(names)

/**
 * Returns the time from the start of a round of an endpoint's deliveries to its give-up deadline,
 * ms.
 */
export const windowOf = ({ retry }: Pick<Endpoint, "retry">): number =>
  Duration.toMillis(Result.getOrThrow(resolveRetry(retry)).window)

/**
 * Prepares an endpoint for use.
 *
 * @param key from `endpointKey`.
 * @param config from `decodeEndpoint`.
 * @param settings of its tenant and the system.
 */
export const makeLive = (
  key: string,
  config: Endpoint,
  revision: number,
  settings?: SettingsInForce
): LiveEndpoint => {
  const policy = Result.getOrThrow(resolveRetry(config.retry))
  return {
    key,
    config,
    revision,
    policy,
    target: targetOf(config.url),
    ownHeaders: Object.entries(config.headers).flat(),
    forwards: setOf(forwardedTo(config, settings)),
    sharedHost: sharedHostOf(config, settings),
    window: Duration.toMillis(policy.window),
    timeout: attemptTimeoutMs(config, policy),
    retryAfterCap: Duration.toMillis(policy.retryAfterCap),
    signer: lazy(() =>
      Effect.runSync(
        makeSigner({
          scheme: config.sign,
          secrets: config.secrets,
          signatureHeader: config.signatureHeader
        })
      )
    ),
    schedule: () => scheduleOf(policy)
  }
}

const lazy = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Most endpoints have the policy of a preset, and so share one schedule. */
const schedules = new WeakMap<RetryPolicy, RetrySchedule>()

const scheduleOf = (policy: RetryPolicy): RetrySchedule => {
  const known = schedules.get(policy)
  if (known !== undefined) return known
  const made = toSchedule(policy)
  schedules.set(policy, made)
  return made
}
