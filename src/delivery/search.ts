import { Effect, Option, Ref, Schema, Stream } from "effect"
import { Broker } from "../broker/connection.ts"
import { readStream, scanQueue } from "../broker/scan.ts"
import type { Fact } from "../domain/fact.ts"
import { Fact as FactSchema } from "../domain/fact.ts"
import type { Held } from "./held.ts"
import { placeName } from "./held.ts"
import type { RetryRecord } from "./retry-record.ts"

/*
 * A message that is moved is stored in its new place first and released in the old one then. After
 * a crash in between, the broker's memory of message ids keeps it from being moved twice. Beyond
 * that memory, these look for it.
 */

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(FactSchema))

/** The dead letter that a message became, by its sequence in DEAD; undefined where there is none. */
export const findDeadLetter = Effect.fnUntraced(function* (held: Held, since: number) {
  const { names } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const origin = placeName(held.place)
  const found = yield* readStream({
    stream: names.dead,
    subjects: [names.subjects.dead(tenant, endpoint)],
    fromTime: since
  }).pipe(
    Stream.filter((message) => message.headers?.get("petrel-origin") === origin),
    Stream.runHead
  )
  return Option.getOrUndefined(Option.map(found, ({ seq }) => seq))
})

/** True where the schedule that a message was to become exists, has fired, or has come to its end. */
export const findMoved = Effect.fnUntraced(function* (
  held: Held,
  partition: number,
  record: RetryRecord
) {
  const { ask, jsm, names } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const { seq, stream } = held.place
  const last_by_subj = names.subjects.later(partition, String(seq))
  const schedule = yield* ask("look for a schedule", () =>
    jsm.streams.getMessage(stream, { last_by_subj })
  )
  if (schedule !== null) return true
  const origin = placeName(held.place)
  const fired = yield* scanQueue(stream, names.subjects.delivery(partition, tenant, endpoint)).pipe(
    Stream.filter((message) => message.header.get("petrel-origin") === origin),
    Stream.runHead
  )
  if (Option.isSome(fired)) return true
  return yield* hasGoneOn(held, record)
})

/** True where the history tells of a later attempt, or of the end, of the same round. */
const hasGoneOn = Effect.fnUntraced(function* (held: Held, record: RetryRecord) {
  const { names } = yield* Broker
  const { endpoint, eventSeq, round, tenant } = held.delivery
  const goesOn = (fact: Fact) =>
    fact.eventSeq === eventSeq &&
    fact.round === round &&
    (fact.kind !== "attempt-failed" || (fact.attempt ?? 0) > record.progress.attempts)
  const found = yield* Ref.make(false)
  yield* readStream({
    stream: names.history,
    subjects: [
      names.subjects.fact(tenant, endpoint, "ok", "delivered"),
      names.subjects.fact(tenant, endpoint, "failure", "*")
    ],
    fromTime: record.decidedAt
  }).pipe(
    Stream.runForEach((message) =>
      Option.match(decodeFact(message.string()), {
        onNone: () => Effect.void,
        onSome: (fact) => (goesOn(fact) ? Ref.set(found, true) : Effect.void)
      })
    )
  )
  return yield* Ref.get(found)
})
