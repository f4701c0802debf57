import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../../broker/connection.ts"
import { readStream, scanQueue } from "../../broker/scan.ts"
import type { Place } from "../../domain/fact.ts"
import { Fact, successKinds } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"
import type { Held } from "../lanes/held.ts"
import { placeName } from "../lanes/held.ts"
import type { RetryRecord } from "./retry-record.ts"

/*
 * What was decided about a message is carried out in steps. After a crash, and after a try whose
 * end is unknown, these look whether a step was done already: the broker's own memory of message
 * ids ends with its time window, and for messages that have left their stream with a restart.
 */

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/** The clocks of the workers and the broker differ by less than this, ms. */
const clockSkew = 5 * 60_000

/** True where the history has the fact of the attempt that a record is about, as its leader knows it. */
export const isTold = Effect.fnUntraced(function* (held: Held, record: RetryRecord) {
  const { ask, jsm, names } = yield* Broker
  const { endpoint, eventSeq, round, tenant } = held.delivery
  const next_by_subj = names.subjects.fact(tenant, endpoint, "failure", "attempt-failed")
  const isIt = (fact: Fact) =>
    fact.eventSeq === eventSeq && fact.round === round && fact.attempt === record.progress.attempts
  let seq = record.since
  while (true) {
    const query = { seq: seq + 1, next_by_subj }
    const next = yield* ask("look for an attempt", () =>
      jsm.streams.getMessage(names.history, query)
    )
    if (next === null) return false
    if (Option.exists(decodeFact(next.string()), isIt)) return true
    seq = next.seq
  }
})

/** The dead letter that a message became, by its sequence in DEAD; undefined where there is none. */
export const findDeadLetter = Effect.fnUntraced(function* (held: Held, decidedAt: number) {
  const { names } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const origin = placeName(held.place)
  const found = yield* readStream({
    stream: names.dead,
    subjects: [names.subjects.dead(tenant, endpoint)],
    fromTime: decidedAt - clockSkew
  }).pipe(
    Stream.filter((message) => message.headers?.get("petrel-origin") === origin),
    Stream.runHead
  )
  return Option.getOrUndefined(Option.map(found, ({ seq }) => seq))
})

/** What tells the schedule of a message from others: queue and backlog count each for itself. */
export const laterId = ({ seq, stream }: Place, partition: number, names: Names): string =>
  stream === names.backlog(partition) ? `backlog-${seq}` : String(seq)

/**
 * True where the schedule that a message was to become exists, has fired, or has come to its end.
 * In this order: it may go on while this looks.
 */
export const findMoved = Effect.fnUntraced(function* (
  held: Held,
  partition: number,
  record: RetryRecord
) {
  const { ask, jsm, names } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const stream = names.deliveries(partition)
  const { place } = held
  const queued = place.stream === stream ? place.seq : undefined
  const kept = place.stream === stream ? undefined : place.seq
  const last_by_subj = names.subjects.later(partition, laterId(place, partition, names))
  const schedule = yield* ask("look for a schedule", () =>
    jsm.streams.getMessage(stream, { last_by_subj })
  )
  if (schedule !== null) return true
  // Fired, it may have moved on to the backlog: nothing but its delivery tells it then.
  const isIt = (header: (name: string) => string | undefined) =>
    Number(header("petrel-event-seq")) === record.eventSeq &&
    header("petrel-round") === record.round &&
    attemptsIn(header("petrel-progress")) >= record.progress.attempts
  const fired = yield* scanQueue(stream, names.subjects.delivery(partition, tenant, endpoint)).pipe(
    Stream.filter((message) => message.seq !== queued && isIt((name) => message.header.get(name))),
    Stream.runHead
  )
  if (Option.isSome(fired)) return true
  const late = yield* readStream({
    stream: names.backlog(partition),
    subjects: [names.subjects.backlog(partition, tenant, endpoint)],
    fromTime: record.decidedAt - clockSkew,
    headersOnly: true
  }).pipe(
    Stream.filter((message) => message.seq !== kept && isIt((name) => message.headers?.get(name))),
    Stream.runHead
  )
  if (Option.isSome(late)) return true
  return yield* hasGoneOn(held, record)
})

const decodeAttempts = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ attempts: Schema.Int }))
)

const attemptsIn = (progress: string | undefined): number =>
  Option.match(decodeAttempts(progress ?? ""), {
    onNone: () => 0,
    onSome: ({ attempts }) => attempts
  })

/** True where the history tells of a later attempt, or of the end, of the same round. */
const hasGoneOn = Effect.fnUntraced(function* (held: Held, record: RetryRecord) {
  const { names } = yield* Broker
  const { endpoint, eventSeq, round, tenant } = held.delivery
  const goesOn = (fact: Fact) =>
    fact.eventSeq === eventSeq &&
    fact.round === round &&
    (fact.kind !== "attempt-failed" || (fact.attempt ?? 0) > record.progress.attempts)
  const found = yield* readStream({
    stream: names.history,
    subjects: [
      ...successKinds.map((kind) => names.subjects.fact(tenant, endpoint, "ok", kind)),
      names.subjects.fact(tenant, endpoint, "failure", "*")
    ],
    fromSeq: record.since + 1
  }).pipe(
    Stream.filter((message) => Option.exists(decodeFact(message.string()), goesOn)),
    Stream.runHead
  )
  return Option.isSome(found)
})
