import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { eventId, parseEventSubject } from "../../domain/event.ts"
import type { AuditProblem } from "./problem.ts"

/** Reads the ids of the events that problems name: the ledger does not keep them. */
export const describeEvents = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const known = new Map<number, { readonly event?: string; readonly tenant?: string }>()
  const look = Effect.fnUntraced(function* (seq: number) {
    const message = yield* readMessage("look at an event", names.events, { seq })
    if (message === null) return {}
    const { tenant } = parseEventSubject(message.subject, names)
    return {
      event: eventId(message.header.get("Nats-Msg-Id") || undefined, seq, message.time.getTime()),
      ...(tenant === undefined ? {} : { tenant })
    }
  })
  return Effect.fnUntraced(function* ({ eventSeq }: AuditProblem) {
    if (eventSeq === undefined) return {}
    const before = known.get(eventSeq)
    if (before !== undefined) return before
    const found = yield* look(eventSeq)
    known.set(eventSeq, found)
    return found
  })
})
