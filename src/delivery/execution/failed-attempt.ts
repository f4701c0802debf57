import { Effect } from "effect"
import type { AttemptOutcome } from "../../domain/attempt-outcome.ts"
import type { Progress } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import { disableEndpoint } from "../../endpoints/endpoint-state.ts"
import type { NextStep } from "../../policy/next-step.ts"
import { nextStep } from "../../policy/next-step.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import { deliveryFact } from "./delivery-fact.ts"

/** What an attempt that did not succeed comes to. */
export interface FailedAttempt {
  readonly step: NextStep
  /** Its `attempt-failed` fact. */
  readonly fact: Fact
  /** What is known of the delivery after it. */
  readonly progress: Progress
}

/** Decides what becomes of a delivery after an attempt that did not succeed. */
export const judgeFailure = Effect.fnUntraced(function* (
  held: Pick<AckHandle, "delivery" | "place">,
  progress: Progress,
  { at, result, verdict }: AttemptOutcome,
  endpoint: LiveEndpoint,
  worker: string
) {
  const attempts = progress.attempts + 1
  const step = yield* nextStep({
    schedule: endpoint.schedule(),
    retryAfterCap: endpoint.retryAfterCap,
    verdict: verdict === "fail" ? "fail" : "retry",
    attempts,
    deadline: held.delivery.deadline,
    now: at,
    retryAfter: result.retryAfter
  })
  const next = step._tag === "Dead" ? {} : { nextAttemptAt: step.at }
  const failed: FailedAttempt = {
    step,
    fact: {
      ...deliveryFact(held, "attempt-failed", at, worker, { attempt: attempts, result }),
      ...next
    },
    progress: {
      attempts,
      firstAttemptAt: progress.firstAttemptAt ?? at,
      lastAttemptAt: at,
      ...next,
      ...(result.status === undefined ? {} : { lastStatus: result.status }),
      ...(result.error === undefined
        ? {}
        : { lastErrorClass: result.error.class, lastError: result.error.message })
    }
  }
  return failed
})

/** Disables an endpoint whose receiver has answered that it wants no more. */
export const disableWhereGone = (
  { delivery }: Pick<AckHandle, "delivery">,
  endpoint: LiveEndpoint,
  sent: AttemptOutcome,
  worker: string
) =>
  sent.gone
    ? disableEndpoint(delivery, "the receiver answered 410 Gone", worker, worker).pipe(
        Effect.catch((error) =>
          Effect.logWarning("an endpoint that answered 410 could not be disabled", {
            endpoint: endpoint.key,
            why: error.message
          })
        )
      )
    : Effect.void
