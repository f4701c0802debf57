import { Duration, Effect, Result } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { attemptTimeoutMs, connectTimeoutMs } from "../policy/attempt-timeout.ts"
import type { RetrySchedule } from "../policy/backoff.ts"
import { toSchedule } from "../policy/backoff.ts"
import type { EndpointPolicy, RetryChoices } from "../policy/endpoint-policies.ts"
import { policiesOf, TypeChoice, windowMs } from "../policy/endpoint-policies.ts"
import type { StatusLimit } from "../policy/status-limit.ts"
import { statusLimits } from "../policy/status-limit.ts"
import type { SettingsInForce, SharedHost } from "./inherited-settings.ts"
import { forwardedTo, maxTimeoutMsOf, sharedHostOf } from "./inherited-settings.ts"
import type { Signer } from "./signing.ts"
import { makeSigner } from "./signing.ts"
import type { Target } from "./target.ts"
import { targetOf } from "./target.ts"

/** A retry policy of an endpoint, prepared for use. Durations in ms. */
export interface PreparedPolicy {
  readonly policy: RetryPolicy
  /** Of an attempt: the endpoint's own, else the policy's, cut to what the tenant may have. */
  readonly timeout: number
  /** The same of a connection. */
  readonly connectTimeout: number
  readonly retryAfterCap: number
  readonly schedule: () => RetrySchedule
  /** Limits of statuses that have some, by the policy's names for them. */
  readonly statusLimits: () => ReadonlyMap<string, StatusLimit>
}

/** An endpoint's configuration, prepared for use. Durations in ms. */
export interface LiveEndpoint {
  readonly key: string
  readonly config: Endpoint
  readonly revision: number
  /** Returns the retry policy of an event type. */
  readonly policyFor: (type: string) => PreparedPolicy
  /** The longest of its policies' caps of a Retry-After, which holds for all its deliveries. */
  readonly longestRetryAfterCap: number
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
}

/** From the start of a round of an endpoint's deliveries to its give-up deadline, ms. */
export interface Windows {
  /** For event types without a policy of their own. */
  readonly window: number
  /** By event type; undefined if no type has a policy of its own. */
  readonly windows: TypeChoice<number> | undefined
}

/** Returns an endpoint's windows. Its policies must be known to resolve. */
export const windowsOf = (endpoint: RetryChoices): Windows => {
  const [first, ...others] = Result.getOrThrow(policiesOf(endpoint))
  const window = windowMs(first.policy)
  return { window, windows: choiceOf(others, ({ policy }) => windowMs(policy), window) }
}

/** Returns the time from the start of a round of an event type to its give-up deadline, ms. */
export const windowFor = ({ window, windows }: Windows, type: string): number =>
  windows === undefined ? window : windows.for(type)

/** Returns a choice among the policies of event types; undefined if there are none. */
const choiceOf = <A>(
  policies: ReadonlyArray<EndpointPolicy>,
  read: (one: EndpointPolicy) => A,
  fallback: A
): TypeChoice<A> | undefined => {
  if (policies.length === 0) return undefined
  const byFilter = policies.map((one) => [one.types ?? ">", read(one)] as const)
  return new TypeChoice(byFilter, fallback)
}

const setOf = (names: ReadonlyArray<string>): ReadonlySet<string> | undefined =>
  names.length === 0 ? undefined : new Set(names)

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
  const policies = Result.getOrThrow(policiesOf(config))
  const maxTimeoutMs = maxTimeoutMsOf(settings)
  const prepare = ({ policy }: EndpointPolicy) => prepared(config, policy, maxTimeoutMs)
  const [first, ...others] = policies
  const usual = prepare(first)
  const choice = choiceOf(others, prepare, usual)
  return {
    key,
    config,
    revision,
    policyFor: choice === undefined ? () => usual : (type) => choice.for(type),
    longestRetryAfterCap: Math.max(...policies.map(({ policy }) => retryAfterCapOf(policy))),
    target: targetOf(config.url),
    ownHeaders: Object.entries(config.headers).flat(),
    forwards: setOf(forwardedTo(config, settings)),
    sharedHost: sharedHostOf(config, settings),
    signer: lazy(() =>
      Effect.runSync(
        makeSigner({
          scheme: config.sign,
          secrets: config.secrets,
          signatureHeader: config.signatureHeader,
          headerNames: config.headerNames
        })
      )
    )
  }
}

const retryAfterCapOf = ({ retryAfterCap }: RetryPolicy): number => Duration.toMillis(retryAfterCap)

const prepared = (config: Endpoint, policy: RetryPolicy, maxTimeoutMs: number): PreparedPolicy => ({
  policy,
  timeout: attemptTimeoutMs(config, policy, maxTimeoutMs),
  connectTimeout: connectTimeoutMs(config, policy, maxTimeoutMs),
  retryAfterCap: retryAfterCapOf(policy),
  schedule: () => scheduleOf(policy),
  statusLimits: () => limitsOf(policy)
})

const lazy = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Most endpoints have the policy of a preset, and so share what is made of it. */
const oncePerPolicy = <A extends object>(make: (policy: RetryPolicy) => A) => {
  const all = new WeakMap<RetryPolicy, A>()
  return (policy: RetryPolicy): A => {
    const known = all.get(policy)
    if (known !== undefined) return known
    const made = make(policy)
    all.set(policy, made)
    return made
  }
}

const scheduleOf = oncePerPolicy<RetrySchedule>(toSchedule)
const limitsOf = oncePerPolicy(statusLimits)
