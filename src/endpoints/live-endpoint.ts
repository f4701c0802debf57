import { Duration, Effect, Result } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { attemptTimeoutMs } from "../policy/attempt-timeout.ts"
import type { RetrySchedule } from "../policy/backoff.ts"
import { toSchedule } from "../policy/backoff.ts"
import { resolveRetry } from "../policy/presets.ts"
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
  /**
   * Made on first use: a secret that its scheme cannot sign with must not fail readers that do not
   * sign.
   */
  readonly signer: () => Signer
  readonly schedule: () => RetrySchedule
}

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
 */
export const makeLive = (key: string, config: Endpoint, revision: number): LiveEndpoint => {
  const policy = Result.getOrThrow(resolveRetry(config.retry))
  return {
    key,
    config,
    revision,
    policy,
    target: targetOf(config.url),
    ownHeaders: Object.entries(config.headers).flat(),
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
