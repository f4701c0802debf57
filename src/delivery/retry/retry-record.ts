import { Clock, Effect, Schema } from "effect"
import { Broker } from "../../broker/connection.ts"
import { eraseValue, readNote, readValue, writeValue } from "../../broker/values.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { Progress } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { Fact } from "../../domain/fact.ts"
import { DeadReason } from "../../domain/outcome.ts"

/** What was decided about a delivery that did not succeed. `at` in ms since the epoch. */
export const Decision = Schema.Union([
  Schema.TaggedStruct("Nak", { at: Schema.Number }),
  Schema.TaggedStruct("Schedule", { at: Schema.Number }),
  Schema.TaggedStruct("Dead", { reason: DeadReason }),
  /** Nothing yet: it is tried with caution, so often so far, for its workers may die of it. */
  Schema.TaggedStruct("Trying", { times: Schema.Int })
])
export type Decision = typeof Decision.Type

/**
 * The value under `<stream>.<sequence>` in the retries bucket, written before anything is done
 * about a failure: after a crash the same decision is carried out, not a new one made.
 */
export const RetryRecord = Schema.Struct({
  v: Schema.Literal(1),
  /** Whose record this is: checked on reading, for a stream may give the sequence of its message again. */
  eventSeq: Schema.Int,
  eventAt: Schema.Number,
  tenant: Schema.String,
  endpoint: Schema.String,
  round: Schema.String,
  progress: Progress,
  decision: Decision,
  decidedAt: Schema.Number,
  /** The fact of the attempt that led here, and the id it is stored under. */
  outcome: Schema.optionalKey(Schema.Struct({ fact: Fact, id: Schema.String }))
})
export type RetryRecord = typeof RetryRecord.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(RetryRecord))

/** A record outlives its delivery's deadline by this, ms: it is erased after the end, or ends by itself. */
const afterlife = 24 * 60 * 60 * 1000

const keyOf = (stream: string, seq: number) => `${stream}.${seq}`

type Whose = Pick<Delivery, "tenant" | "endpoint" | "eventSeq" | "eventAt" | "round">

/** True for a record of this very delivery and round. */
export const isOf = (record: RetryRecord, delivery: Whose): boolean =>
  record.eventSeq === delivery.eventSeq &&
  record.eventAt === delivery.eventAt &&
  record.round === delivery.round &&
  record.tenant === delivery.tenant &&
  record.endpoint === delivery.endpoint

/** Stores a decision. To be repeated until it is acknowledged. */
export const writeRecord = Effect.fnUntraced(function* (
  stream: string,
  seq: number,
  record: RetryRecord,
  deadline: number
) {
  const { names } = yield* Broker
  return yield* writeValue(names.buckets.retries, keyOf(stream, seq), JSON.stringify(record), {
    ttl: Math.max(0, deadline - record.decidedAt) + afterlife
  })
})

const readEntry = Effect.fnUntraced(function* (stream: string, seq: number) {
  const { bucket, names } = yield* Broker
  return yield* readValue(yield* bucket(names.buckets.retries), keyOf(stream, seq))
})

/** The record of a message, from the leader; undefined where there is none. */
export const readRecord = Effect.fnUntraced(function* (stream: string, seq: number) {
  const entry = yield* readEntry(stream, seq)
  return entry === undefined ? undefined : yield* decode(entry.string())
})

/**
 * Stores a record as it is, whatever it says, for the message that another one becomes elsewhere.
 *
 * @param until when its delivery is given up, ms since the epoch.
 */
export const copyRecord = Effect.fnUntraced(function* (
  from: Pick<Place, "seq" | "stream">,
  to: Pick<Place, "seq" | "stream">,
  until: number
) {
  const entry = yield* readEntry(from.stream, from.seq)
  if (entry === undefined) return
  const now = yield* Clock.currentTimeMillis
  const { names } = yield* Broker
  yield* writeValue(names.buckets.retries, keyOf(to.stream, to.seq), entry.string(), {
    ttl: Math.max(0, until - now) + afterlife
  })
})

const noteOf = ({ endpoint, eventAt, eventSeq, round, tenant }: Whose): string =>
  JSON.stringify([eventSeq, eventAt, tenant, endpoint, round])

/**
 * Erases the record of a message that has ended. What fails here ends by its own time.
 *
 * A broker that is killed may have stored this and not the acknowledgement before it, and hand out
 * the message again (1 in 25 kills had such messages). So whose it was is known for a minute more.
 */
export const eraseRecord = Effect.fnUntraced(function* (stream: string, seq: number, of: Whose) {
  const { names } = yield* Broker
  const { retries } = names.buckets
  yield* Effect.ignore(eraseValue(retries, keyOf(stream, seq), undefined, noteOf(of)))
})

/** True where the record of this very delivery and round was erased, for its message has ended. */
export const isErased = Effect.fnUntraced(function* (stream: string, seq: number, of: Whose) {
  const { bucket, names } = yield* Broker
  const note = yield* readNote(yield* bucket(names.buckets.retries), keyOf(stream, seq))
  return note === noteOf(of)
})

/** Sequences of a stream's messages that have a record, or had one a minute ago. */
export const listRecords = Effect.fnUntraced(function* (stream: string) {
  const { ask, jsm, names } = yield* Broker
  const prefix = `$KV.${names.buckets.retries}.${stream}.`
  const info = yield* ask(`list the records of ${stream}`, () =>
    jsm.streams.info(`KV_${names.buckets.retries}`, { subjects_filter: `${prefix}*` })
  )
  return new Set(
    Object.keys(info.state.subjects ?? {}).map((subject) => Number(subject.slice(prefix.length)))
  )
})
