import { Effect, Option, Schema, Semaphore, Stream } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { firstSince, isNoSuchMessage, readStream, scanQueue } from "../../broker/scan.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { RoundIdentity } from "../../domain/delivery.ts"
import { roundKey, roundKeyIn } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { Fact, placeName, successKinds } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"
import { readFact } from "../../history/fact-at.ts"
import type { RetryRecord } from "../retry/retry-record.ts"
import type { AckHandle } from "../source/ack-handle.ts"

/*
 * What was decided about a message is carried out in steps. After a crash, and after a try whose
 * end is unknown, these look whether a step was done already: the broker's own memory of message
 * ids ends with its time window, and for messages that have left their stream with a restart.
 */

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/**
 * From when the history may tell of what was decided, ms since the epoch. Not a sequence of it that
 * was known then: a history that loses its end gives that again.
 */
const toldSince = ({ decidedAt }: RetryRecord): number => decidedAt - maxClockSkewMs

/** True for a fact about a round. */
const isAbout = (of: RoundIdentity) => {
  const key = roundKey(of)
  return ({ eventAt = 0, eventSeq = 0, round = "" }: Fact): boolean =>
    roundKey({ eventSeq, eventAt, round }) === key
}

/** True where the history has the fact of the attempt that a record is about, as its leader knows it. */
export const isTold = Effect.fnUntraced(function* (held: AckHandle, record: RetryRecord) {
  const { ask, jsm, names } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const next_by_subj = names.subjects.fact(tenant, endpoint, "failure", "attempt-failed")
  const isOfRound = isAbout(held.delivery)
  const isIt = (fact: Fact) => isOfRound(fact) && fact.attempt === record.progress.attempts
  let seq = yield* firstSince(names.history, toldSince(record))
  while (true) {
    const query = { seq, next_by_subj }
    const next = yield* ask("look for an attempt", () =>
      jsm.streams.getMessage(names.history, query)
    )
    if (next === null) return false
    if (Option.exists(decodeFact(next.string()), isIt)) return true
    seq = next.seq + 1
  }
})

/** Dead letters of an endpoint that are about to be read. */
interface Reading {
  /** From when on, ms since the epoch. */
  since: number
  /** Their sequences in DEAD by where they came from. */
  readonly found: Effect.Effect<ReadonlyMap<string, number>, BrokerError>
}

/**
 * Makes what finds the dead letter that a message became, by its sequence in DEAD; undefined where
 * there is none. What is looked for while an endpoint's dead letters are read for others is looked for
 * together after that: after a crash there may be thousands.
 */
export const makeFindDeadLetter = Effect.gen(function* () {
  const broker = yield* Broker
  const { names } = broker
  const one = yield* Semaphore.make(1)
  const next = new Map<string, Reading>()

  const begin = Effect.fnUntraced(function* (subject: string, since: number) {
    const read = Effect.gen(function* () {
      if (next.get(subject) === reading) next.delete(subject)
      const found = new Map<string, number>()
      yield* readStream({
        stream: names.dead,
        subjects: [subject],
        fromTime: reading.since,
        headersOnly: true
      }).pipe(
        Stream.runForEach(({ headers, seq }) =>
          Effect.sync(() => found.set(headers?.get("petrel-origin") ?? "", seq))
        )
      )
      return found
    }).pipe(Effect.provideService(Broker, broker))
    const reading: Reading = { since, found: yield* Effect.cached(one.withPermit(read)) }
    return reading
  })

  return Effect.fnUntraced(function* ({ delivery, place }: AckHandle, decidedAt: number) {
    const subject = names.subjects.dead(delivery.tenant, delivery.endpoint)
    const since = decidedAt - maxClockSkewMs
    const reading = next.get(subject) ?? (yield* begin(subject, since))
    reading.since = Math.min(reading.since, since)
    next.set(subject, reading)
    return (yield* reading.found).get(placeName(place))
  })
})

/** True where a sequence of DEAD holds the dead letter that a message became, as its leader knows it. */
export const isDeadLetter = Effect.fnUntraced(function* (seq: number, { place }: AckHandle) {
  const { ask, jsm, names } = yield* Broker
  const letter = yield* ask("look at a dead letter", () =>
    jsm.streams.getMessage(names.dead, { seq })
  ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null)))
  return letter?.header.get("petrel-origin") === placeName(place)
})

/** True where a sequence of the history holds the fact of a round's end as a dead letter. */
export const isEndFact = Effect.fnUntraced(function* (seq: number, of: RoundIdentity) {
  const isOfRound = isAbout(of)
  return Option.exists(
    yield* readFact(seq),
    (fact) => fact.kind === "dead-lettered" && isOfRound(fact)
  )
})

/** What tells the schedule of a message from others: queue and backlog count each for itself. */
export const scheduleId = (
  { at, seq, stream }: Place,
  partition: number,
  names: Names,
  { progress }: Pick<RetryRecord, "progress">
): string => {
  const id = stream === names.backlog(partition) ? `backlog-${seq}-${at}` : `${seq}-${at}`
  return progress.ends === undefined ? id : `${endedPrefix}${id}`
}

/** What has ended and waits for room among the dead letters, among all that waits as schedules. */
export const endedPrefix = "ended."

/**
 * True where the schedule that a message was to become exists, has fired, or has come to its end.
 * In this order: it may go on while this looks.
 */
export const findMoved = Effect.fnUntraced(function* (
  held: AckHandle,
  partition: number,
  record: RetryRecord
) {
  const { ask, jsm, names } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const stream = names.deliveries(partition)
  const { place } = held
  const queued = place.stream === stream ? place.seq : undefined
  const kept = place.stream === stream ? undefined : place.seq
  const last_by_subj = names.subjects.schedule(
    partition,
    scheduleId(place, partition, names, record)
  )
  const schedule = yield* ask("look for a schedule", () =>
    jsm.streams.getMessage(stream, { last_by_subj })
  )
  if (schedule !== null) return true
  // Fired, it may have moved on to the backlog: nothing but its delivery tells it then.
  const key = roundKey(held.delivery)
  const isIt = (header: (name: string) => string | undefined) =>
    roundKeyIn(header) === key && attemptsIn(header("petrel-progress")) >= record.progress.attempts
  const fired = yield* scanQueue(stream, names.subjects.delivery(partition, tenant, endpoint)).pipe(
    Stream.filter((message) => message.seq !== queued && isIt((name) => message.header.get(name))),
    Stream.runHead
  )
  if (Option.isSome(fired)) return true
  const late = yield* readStream({
    stream: names.backlog(partition),
    subjects: [names.subjects.backlog(partition, tenant, endpoint)],
    fromTime: toldSince(record),
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
const hasGoneOn = Effect.fnUntraced(function* (held: AckHandle, record: RetryRecord) {
  const { names } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const isOfRound = isAbout(held.delivery)
  const goesOn = (fact: Fact) =>
    isOfRound(fact) &&
    (fact.kind !== "attempt-failed" || (fact.attempt ?? 0) > record.progress.attempts)
  const found = yield* readStream({
    stream: names.history,
    subjects: [
      ...successKinds.map((kind) => names.subjects.fact(tenant, endpoint, "ok", kind)),
      names.subjects.fact(tenant, endpoint, "failure", "*")
    ],
    fromTime: toldSince(record)
  }).pipe(
    Stream.filter((message) => Option.exists(decodeFact(message.string()), goesOn)),
    Stream.runHead
  )
  return Option.isSome(found)
})
