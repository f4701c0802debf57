import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { eventName } from "../../domain/event.ts"
import type { Repeated } from "../../domain/origin.ts"
import { isBroughtAgain, originName, readOrigin } from "../../domain/origin.ts"
import type { Books } from "./books.ts"
import type { AuditProblem } from "./problem.ts"

/** Pairs of events that are compared concurrently. */
const maxConcurrentReads = 16

/**
 * Finds events that the router left out as repeats although their origins, as the broker recorded
 * them, differ: no endpoint received them. The audit does not rely on the router's decision.
 */
export const wronglyLeftOut = Effect.fnUntraced(function* ({ leftOut, ledger }: Books) {
  const { names, readMessage } = yield* Broker
  const read = (seq: number) => readMessage("look at an event", names.events, { seq })
  const isRepeat = Effect.fnUntraced(function* (eventSeq: number, first: Repeated) {
    if (first === "restart") {
      const message = yield* read(eventSeq)
      const origin = readOrigin(message?.header.get("Nats-Stream-Source"))
      return message === null || (origin !== undefined && isBroughtAgain(origin))
    }
    const [one, other] = yield* Effect.all([read(first.eventSeq), read(eventSeq)])
    // An event that has expired cannot be compared.
    if (other === null || first.eventSeq < ledger.scope.firstKept) return true
    const [origin, again] = [one, other].map((message) =>
      readOrigin(message?.header.get("Nats-Stream-Source"))
    )
    return (
      one?.time.getTime() === first.eventAt &&
      first.eventSeq < eventSeq &&
      one.subject === other.subject &&
      origin !== undefined &&
      again !== undefined &&
      originName("", origin) === originName("", again)
    )
  })
  const wrong = yield* Effect.filter(
    [...leftOut],
    ([eventSeq, first]) => Effect.map(isRepeat(eventSeq, first), (is) => !is),
    { concurrency: maxConcurrentReads }
  )
  return wrong.map(
    ([eventSeq, first]): AuditProblem => ({
      kind: "unrouted",
      eventSeq,
      says:
        first === "restart"
          ? "the router left it out as brought again by a restarted source, and it was not"
          : `the router left it out as a repeat of event ${eventName(first)}, and it is none`
    })
  )
})
