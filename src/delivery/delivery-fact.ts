import { Effect } from "effect"
import type { Progress } from "../domain/delivery.ts"
import { deliveryId } from "../domain/delivery.ts"
import type { Fact, FactKind } from "../domain/fact.ts"
import type { AttemptResult } from "../domain/outcome.ts"
import type { Sent } from "./attempt/sender.ts"
import type { Held } from "./lanes/held.ts"

/** A fact about a delivery, with all that is known of it before an attempt. */
export const deliveryFact = (
  { delivery, place }: Pick<Held, "delivery" | "place">,
  kind: FactKind,
  at: number,
  worker: string
): Fact => ({
  v: 1,
  kind,
  at,
  tenant: delivery.tenant,
  endpoint: delivery.endpoint,
  event: delivery.event,
  eventSeq: delivery.eventSeq,
  type: delivery.type,
  delivery: deliveryId(delivery),
  round: delivery.round,
  from: place,
  ...(delivery.origin === undefined ? {} : { origin: delivery.origin }),
  deadline: delivery.deadline,
  worker,
  ...(delivery.content.traceparent === undefined ? {} : { trace: delivery.content.traceparent })
})

/** What a fact tells of an attempt. */
export const attemptFields = (result: AttemptResult): Partial<Fact> => ({
  durationMs: result.durationMs,
  ...(result.status === undefined ? {} : { status: result.status }),
  ...(result.error === undefined ? {} : { error: result.error }),
  ...(result.connectMs === undefined ? {} : { connectMs: result.connectMs }),
  ...(result.firstByteMs === undefined ? {} : { firstByteMs: result.firstByteMs }),
  ...(result.response === undefined ? {} : { response: result.response })
})

/** The fact of an attempt that succeeded. */
export const deliveredFact = (
  held: Pick<Held, "delivery" | "place">,
  progress: Progress,
  { at, result }: Sent,
  worker: string
): Fact => ({
  ...deliveryFact(held, "delivered", at, worker),
  attempt: progress.attempts + 1,
  ...attemptFields(result)
})

/**
 * One line per outcome, with neither bodies nor headers. What was delivered is for the history to
 * tell: thousands of lines a second would hide those about what was not.
 */
export const logFact = (fact: Fact) =>
  Effect.logWithLevel(fact.kind === "delivered" ? "Debug" : "Info")(fact.kind, {
    tenant: fact.tenant,
    endpoint: fact.endpoint,
    event: fact.event,
    type: fact.type,
    attempt: fact.attempt,
    ...(fact.status === undefined ? {} : { status: fact.status }),
    ...(fact.error === undefined ? {} : { error: fact.error.class, why: fact.error.message }),
    ...(fact.durationMs === undefined ? {} : { ms: fact.durationMs }),
    ...(fact.reason === undefined ? {} : { reason: fact.reason }),
    ...(fact.nextAttemptAt === undefined
      ? {}
      : { next: new Date(fact.nextAttemptAt).toISOString() })
  })
