import { Effect } from "effect"
import type { PlacedDelivery, Progress, StatusRow } from "../../domain/delivery.ts"
import { circuitOf } from "../../domain/endpoint.ts"
import type { Fact } from "../../domain/fact.ts"
import type { AttemptOutcome } from "../../domain/outcome.ts"
import { goneReason } from "../../domain/outcome.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import { giveUpEndpoint } from "../../endpoints/endpoint-state.ts"
import type { PreparedPolicy } from "../../endpoints/live-endpoint.ts"
import type { LimitedAnswer, NextStep } from "../../policy/next-step.ts"
import { nextStep } from "../../policy/next-step.ts"
import { rowAfter } from "../../policy/status-limit.ts"
import { deliveryFact } from "./delivery-fact.ts"

/** What follows from a failed attempt. */
export interface FailedAttempt {
  readonly step: NextStep
  /** Its `attempt-failed` fact. */
  readonly fact: Fact
  /** The delivery's progress after the attempt. */
  readonly progress: Progress
}

/**
 * Returns until when a delivery that was answered 410 waits, ms since the epoch; undefined where its
 * endpoint is disabled. A suspended endpoint loses nothing, nor what told of its end. Until the
 * suspension is known, or if it cannot be stored, the endpoint is left alone for a cool-down: the
 * 410 of a probe does not open its circuit again.
 */
const waitForSuspension = ({ config }: LiveEndpoint, at: number): number | undefined => {
  const { coolDown, onGone } = circuitOf(config)
  return onGone === "suspend" ? at + coolDown : undefined
}

/** Decides what happens to a delivery after a failed attempt. */
export const judgeFailure = Effect.fnUntraced(function* (
  handle: Pick<PlacedDelivery, "delivery" | "place">,
  progress: Progress,
  { at, gone, probe, result, rule, verdict }: AttemptOutcome,
  endpoint: LiveEndpoint,
  worker: string
) {
  const attempts = progress.attempts + 1
  const keptUntil = gone ? waitForSuspension(endpoint, at) : undefined
  const probes = (progress.probes ?? 0) + (probe === undefined ? 0 : 1)
  const prepared = endpoint.policyFor(handle.delivery.type)
  const row = rowAfter(progress.inARow, rule?.status, at, probe !== undefined)
  const step = yield* nextStep({
    schedule: prepared.schedule(),
    retryAfterCap: prepared.retryAfterCap,
    verdict: verdict === "fail" && keptUntil === undefined ? "fail" : "retry",
    attempts: attempts - probes,
    limited: limitedBy(prepared, row),
    previousDelay: progress.delayMs,
    nextAllowedAt: keptUntil ?? probe?.nextAt,
    deadline: handle.delivery.deadline,
    now: at,
    retryAfter: result.retryAfter
  })
  const next = step._tag === "Dead" ? {} : { nextAttemptAt: step.at }
  const delayMs =
    prepared.policy.backoff.kind === "decorrelated" && step._tag === "Retry"
      ? (step.drawn ?? progress.delayMs)
      : undefined
  const failed: FailedAttempt = {
    step,
    fact: {
      ...deliveryFact(handle, "attempt-failed", at, worker, { attempt: attempts, probe, result }),
      ...next
    },
    progress: {
      attempts,
      ...(probes === 0 ? {} : { probes }),
      firstAttemptAt: progress.firstAttemptAt ?? at,
      lastAttemptAt: at,
      ...next,
      ...(delayMs === undefined ? {} : { delayMs }),
      ...(row === undefined ? {} : { inARow: row }),
      ...(result.status === undefined ? {} : { lastStatus: result.status }),
      ...(result.error === undefined
        ? {}
        : { lastErrorClass: result.error.class, lastError: result.error.message })
    }
  }
  return failed
})

const limitedBy = (
  { statusLimits }: PreparedPolicy,
  row: StatusRow | undefined
): LimitedAnswer | undefined => {
  const limit = row === undefined ? undefined : statusLimits().get(row.status)
  return row === undefined || limit === undefined ? undefined : { limit, row }
}

/**
 * Disables or suspends an endpoint whose receiver answered 410 Gone.
 *
 * @param worker this worker's id.
 */
export const giveUpWhereGone = (
  { delivery }: Pick<PlacedDelivery, "delivery">,
  { config }: LiveEndpoint,
  { gone }: AttemptOutcome,
  worker: string
) => (gone ? giveUpEndpoint(delivery, circuitOf(config).onGone, goneReason, worker) : Effect.void)
