import { Schema } from "effect"
import type { Progress } from "../domain/delivery.ts"
import type { Fact } from "../domain/fact.ts"
import { DeadReason } from "../domain/outcome.ts"

const isDeadReason = Schema.is(DeadReason)

/**
 * Returns the progress that a fact records of a failed direct delivery; undefined for other facts.
 * A drawn delay is no part of a fact: decorrelated backoff then goes on from its base, which keeps
 * its bounds. Nor is a row of answers with one status: it then begins with the next answer.
 *
 * @param events the stream of events.
 */
export const progressFrom = (fact: Fact, events: string): Progress | undefined => {
  if (fact.kind !== "attempt-failed" || fact.from?.stream !== events) return undefined
  const { at, attempt = 1, error, nextAttemptAt, probe, reason, status } = fact
  return {
    attempts: attempt,
    ...(probe === true ? { probes: attempt } : {}),
    firstAttemptAt: at,
    lastAttemptAt: at,
    ...(nextAttemptAt === undefined ? {} : { nextAttemptAt }),
    ...(status === undefined ? {} : { lastStatus: status }),
    ...(error === undefined ? {} : { lastErrorClass: error.class, lastError: error.message }),
    ...(isDeadReason(reason) ? { ends: reason } : {})
  }
}
