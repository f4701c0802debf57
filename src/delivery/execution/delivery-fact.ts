import { Effect } from "effect"
import type { PlacedDelivery, Progress } from "../../domain/delivery.ts"
import { deliveryId } from "../../domain/delivery.ts"
import type { Fact, FactKind, Plan } from "../../domain/fact.ts"
import { correlationOf } from "../../domain/header-names.ts"
import type { AttemptOutcome, AttemptResult } from "../../domain/outcome.ts"

/** An attempt and its result. */
interface MadeAttempt {
  /** Its number within the round, from 1. */
  readonly attempt: number
  readonly probe: AttemptOutcome["probe"]
  readonly result: AttemptResult
}

/**
 * Makes a fact about a delivery. The whole literal is built at once: there is one fact per
 * delivery, and copying it costs more than building it.
 *
 * @param plan the plan of its event, where no other fact holds it.
 */
export const deliveryFact = (
  { delivery, place }: Pick<PlacedDelivery, "delivery" | "place">,
  kind: FactKind,
  at: number,
  worker: string,
  made?: MadeAttempt,
  plan?: Plan
): Fact => ({
  v: 1,
  kind,
  at,
  tenant: delivery.tenant,
  endpoint: delivery.endpoint,
  event: delivery.event,
  eventSeq: delivery.eventSeq,
  eventAt: delivery.eventAt,
  type: delivery.type,
  delivery: deliveryId(delivery),
  round: delivery.round,
  from: place,
  origin: delivery.origin,
  deadline: delivery.deadline,
  worker,
  trace: delivery.content.traceparent,
  correlation: correlationOf(delivery.content.forwarded),
  attempt: made?.attempt,
  probe: made?.probe === undefined ? undefined : true,
  durationMs: made?.result.durationMs,
  status: made?.result.status,
  error: made?.result.error,
  connectMs: made?.result.connectMs,
  firstByteMs: made?.result.firstByteMs,
  response: made?.result.response,
  redirects: made?.result.redirects,
  plan
})

/** Makes the fact of a successful attempt. */
export const deliveredFact = (
  handle: Pick<PlacedDelivery, "delivery" | "place">,
  progress: Progress,
  { at, probe, result }: AttemptOutcome,
  worker: string,
  plan?: Plan
): Fact => {
  const made = { attempt: progress.attempts + 1, probe, result }
  return deliveryFact(handle, "delivered", at, worker, made, plan)
}

/**
 * Logs one line per outcome, with neither bodies nor headers. A success is logged at debug level
 * only: thousands of lines a second would hide the failures, and the history holds them all.
 */
export const logFact = (fact: Fact) =>
  Effect.logWithLevel(fact.kind === "delivered" ? "Debug" : "Info")(fact.kind, {
    tenant: fact.tenant,
    endpoint: fact.endpoint,
    event: fact.event,
    type: fact.type,
    attempt: fact.attempt,
    ...(fact.probe === undefined ? {} : { probe: fact.probe }),
    ...(fact.status === undefined ? {} : { status: fact.status }),
    ...(fact.error === undefined ? {} : { error: fact.error.class, why: fact.error.message }),
    ...(fact.durationMs === undefined ? {} : { ms: fact.durationMs }),
    ...(fact.reason === undefined ? {} : { reason: fact.reason }),
    ...(fact.trace === undefined ? {} : { trace: fact.trace }),
    ...(fact.correlation === undefined ? {} : { correlation: fact.correlation }),
    ...(fact.nextAttemptAt === undefined
      ? {}
      : { next: new Date(fact.nextAttemptAt).toISOString() })
  })
