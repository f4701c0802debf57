import { Clock, Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { eraseValue, readNote, readValue, writeValue } from "../../broker/values.ts"
import type { DeliveryIdentity } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { RetryRecord } from "../../domain/retry-record.ts"

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(RetryRecord))

/**
 * Time to live of a record beyond its delivery's deadline, ms. A record that is not erased expires.
 */
const afterlife = 24 * 60 * 60 * 1000

const keyOf = (stream: string, seq: number) => `${stream}.${seq}`

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
  const { names } = yield* Broker
  return yield* readValue(names.buckets.retries, keyOf(stream, seq))
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

const noteOf = ({ endpoint, eventAt, eventSeq, round, tenant }: DeliveryIdentity): string =>
  JSON.stringify([eventSeq, eventAt, tenant, endpoint, round])

/**
 * Erases the record of a message that has ended. If that fails, the record expires.
 *
 * A broker that is killed may have stored the erasure but not the acknowledgement before it, and
 * redeliver the message (seen in 1 of 25 kills). So the identity of the delivery is kept for one
 * more minute.
 */
export const eraseRecord = Effect.fnUntraced(function* (
  stream: string,
  seq: number,
  of: DeliveryIdentity
) {
  const { names } = yield* Broker
  const { retries } = names.buckets
  yield* Effect.ignore(eraseValue(retries, keyOf(stream, seq), undefined, noteOf(of)))
})

/** True where the record of this delivery and round was erased because its message has ended. */
export const isErased = Effect.fnUntraced(function* (
  stream: string,
  seq: number,
  of: DeliveryIdentity
) {
  const { names } = yield* Broker
  const note = yield* readNote(names.buckets.retries, keyOf(stream, seq))
  return note === noteOf(of)
})

/** Lists the sequences of a stream's messages that have a record, or had one a minute ago. */
export const listRecords = Effect.fnUntraced(function* (stream: string) {
  const { names, streamInfo } = yield* Broker
  const prefix = `$KV.${names.buckets.retries}.${stream}.`
  const info = yield* streamInfo(`list the records of ${stream}`, `KV_${names.buckets.retries}`, {
    subjects_filter: `${prefix}*`
  })
  return new Set(
    Object.keys(info.state.subjects ?? {}).map((subject) => Number(subject.slice(prefix.length)))
  )
})
