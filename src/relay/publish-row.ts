import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { outboxSource } from "../domain/intake.ts"
import { storeIncoming } from "../intake/store-incoming.ts"
import { rowProblem } from "../outbox/event-row.ts"
import type { PendingRow } from "./outbox-table.ts"
import type { Outcome } from "./relay.ts"

const refused = (why: string): Outcome => ({ kind: "refused", why })

/** Publishes a row as an event of its tenant. The same row twice is one event. */
export const publishRow = Effect.fnUntraced(function* (
  row: PendingRow
): Effect.fn.Return<Outcome, never, Broker> {
  const { body, contentType, eventId: id, tenant, traceparent, tracestate, type } = row
  const { largestMessage } = yield* Broker
  const problem = rowProblem({ ...row, id, bodyBytes: body.byteLength }, largestMessage())
  if (problem !== undefined) return refused(problem)
  return yield* storeIncoming({
    ...{ tenant, source: outboxSource, id, type, body, contentType },
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { headers: [["tracestate", tracestate]] })
  }).pipe(
    Effect.map(
      ({ as, seq }): Outcome =>
        as === "collided"
          ? refused(`another event of ${tenant} has the id ${id}: it is ${seq} of the intake`)
          : { kind: "stored", seq }
    ),
    Effect.catch(({ reason, text }) =>
      Effect.succeed<Outcome>(
        reason === "invalid" || reason === "too-large"
          ? refused(text)
          : { kind: "unknown", why: text }
      )
    )
  )
})
