import { Clock, Effect, Schema } from "effect"
import { Broker } from "../../broker/connection.ts"
import { eraseValue, readNote, readValue, writeValue } from "../../broker/values.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { Progress } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { Fact } from "../../domain/fact.ts"
import { DeadReason } from "../../domain/outcome.ts"

/** A decision about a delivery that did not succeed. `at` in ms since the epoch. */
export const Decision = Schema.Union([
  Schema.TaggedStruct("Nak", { at: Schema.Number }),
  Schema.TaggedStruct("Schedule", { at: Schema.Number }),
  Schema.TaggedStruct("Dead", { reason: DeadReason }),
  /**
   * No decision yet: an attempt is marked because its message may have crashed earlier workers.
   * `times` counts the marked attempts.
   */
  Schema.TaggedStruct("Trying", { times: Schema.Int })
])
export type Decision = typeof Decision.Type

/**
 * The value under `<stream>.<sequence>` in the retries bucket. It is stored before a decision is
 * applied: after a crash, the same decision is applied instead of a new one.
 */
export const RetryRecord = Schema.Struct({
  v: Schema.Literal(1),
  /**
   * Identity of the delivery, checked on reading: a truncated stream reuses the message's sequence.
   */
  eventSeq: Schema.Int,
  eventAt: Schema.Number,
  tenant: Schema.String,
  endpoint: Schema.String,
  round: Schema.String,
  progress: Progress,
  decision: Decision,
  decidedAt: Schema.Number,
  /**
   * The fact of the attempt that led to the decision, and the message id under which it is stored.
   */
  outcome: Schema.optionalKey(Schema.Struct({ fact: Fact, id: Schema.String }))
})
export type RetryRecord = typeof RetryRecord.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(RetryRecord))

/**
 * Time to live of a record beyond its delivery's deadline, ms. A record that is not erased expires.
 */
const afterlife = 24 * 60 * 60 * 1000

const keyOf = (stream: string, seq: number) => `${stream}.${seq}`

type Whose = Pick<Delivery, "tenant" | "endpoint" | "eventSeq" | "eventAt" | "round">

/** True for a record of this delivery and round. */
export const isOf = (record: RetryRecord, delivery: Whose): boolean =>
  record.eventSeq === delivery.eventSeq &&
  record.eventAt === delivery.eventAt &&
  record.round === delivery.round &&
  record.tenant === delivery.tenant &&
  record.endpoint === delivery.endpoint

/** Stores a decision. The caller repeats this until the broker acknowledges. */
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

/** Reads the record of a message from the leader; undefined where there is none. */
export const readRecord = Effect.fnUntraced(function* (stream: string, seq: number) {
  const entry = yield* readEntry(stream, seq)
  return entry === undefined ? undefined : yield* decode(entry.string())
})

/**
 * Copies a record unread for the message that replaces another one elsewhere.
 *
 * @param until when its delivery expires, ms since the epoch.
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
 * Erases the record of a message that has ended. If that fails, the record expires.
 *
 * A broker that is killed may have stored the erasure but not the acknowledgement before it, and
 * redeliver the message (seen in 1 of 25 kills). So the identity of the delivery is kept for one
 * more minute.
 */
export const eraseRecord = Effect.fnUntraced(function* (stream: string, seq: number, of: Whose) {
  const { names } = yield* Broker
  const { retries } = names.buckets
  yield* Effect.ignore(eraseValue(retries, keyOf(stream, seq), undefined, noteOf(of)))
})

/** True where the record of this delivery and round was erased because its message has ended. */
export const isErased = Effect.fnUntraced(function* (stream: string, seq: number, of: Whose) {
  const { bucket, names } = yield* Broker
  const note = yield* readNote(yield* bucket(names.buckets.retries), keyOf(stream, seq))
  return note === noteOf(of)
})

/** Lists the sequences of a stream's messages that have a record, or had one a minute ago. */
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
