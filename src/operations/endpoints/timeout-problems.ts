import { Duration, Effect } from "effect"
import type { Problem } from "../../domain/problem.ts"
import { maxTimeoutMsOf } from "../../endpoints/inherited-settings.ts"
import { readSettingsInForce } from "../../endpoints/settings-store.ts"
import { durationText } from "../text/time.ts"
import type { EndpointPatch } from "./endpoint-settings.ts"

/** The time-outs that a change gives, by their fields. */
const given = (patch: EndpointPatch): ReadonlyArray<readonly [string, Duration.Duration]> => {
  const choices = [
    ["", patch],
    ["retry.", patch.retry],
    ...Object.entries(patch.retryFor ?? {}).map(
      ([types, choice]) => [`retryFor.${types}.`, choice] as const
    )
  ] as const
  return choices.flatMap(([prefix, of]) => {
    if (of === undefined || of === null || typeof of === "string") return []
    return (["timeout", "connectTimeout"] as const).flatMap((name) => {
      const value = of[name]
      return value === undefined || value === null ? [] : [[`${prefix}${name}`, value] as const]
    })
  })
}

/**
 * Reads the longest time-out that a tenant's endpoints may have, ms; no bound where the change gives
 * no time-out, so that nothing is read for it.
 */
export const maxTimeoutFor = (tenant: string, patch: EndpointPatch) =>
  given(patch).length === 0
    ? Effect.succeed(Number.POSITIVE_INFINITY)
    : Effect.map(readSettingsInForce(tenant), maxTimeoutMsOf)

/**
 * Returns what is wrong with the time-outs that a change gives.
 *
 * @param mostMs the longest that they may be.
 */
export const timeoutProblems = (patch: EndpointPatch, mostMs: number): ReadonlyArray<Problem> =>
  given(patch)
    .filter(([, timeout]) => Duration.toMillis(timeout) > mostMs)
    .map(([field]) => ({
      field,
      message: `must be at most ${durationText(Duration.millis(mostMs))}: an operator can allow more (\`petrel tenant set --max-timeout\`)`
    }))
