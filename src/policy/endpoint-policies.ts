import { Duration, Result } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import type { UnknownPreset } from "./presets.ts"
import { resolveRetry } from "./presets.ts"

/** The retry policy of all an endpoint's events, or of some event types. */
export interface EndpointPolicy {
  /** A type filter; undefined for all types that no filter matches. */
  readonly types: string | undefined
  readonly policy: RetryPolicy
}

/** The fields of an endpoint that name its policies. */
export type RetryChoices = Pick<Endpoint, "retry" | "retryFor">

/** Returns an endpoint's retry policies, that of `retry` first. */
export const policiesOf = ({
  retry,
  retryFor
}: RetryChoices): Result.Result<
  readonly [EndpointPolicy, ...ReadonlyArray<EndpointPolicy>],
  UnknownPreset
> =>
  Result.gen(function* () {
    const first: EndpointPolicy = { types: undefined, policy: yield* resolveRetry(retry) }
    const others: Array<EndpointPolicy> = []
    for (const [types, chosen] of Object.entries(retryFor ?? {}))
      others.push({ types, policy: yield* resolveRetry(chosen) })
    return [first, ...others]
  })

/** Returns the time from the start of a round to its give-up deadline, ms. */
export const windowMs = ({ window }: Pick<RetryPolicy, "window">): number =>
  Duration.toMillis(window)
