import { Clock, Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import {
  eraseValue,
  isConflict,
  isErasedValue,
  readValue,
  writeValue
} from "../../broker/values.ts"
import type { Place } from "../../domain/fact.ts"
import { slotOf } from "../../domain/fact.ts"
import { RetryRecord, retryRecordKey } from "../../domain/retry-record.ts"

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(RetryRecord))

/**
 * Time to live of a record beyond its delivery's deadline, ms. A record that is not erased expires.
 */
const afterlife = 24 * 60 * 60 * 1000

/**
 * Stores a decision, and returns its revision. The caller repeats this until the broker acknowledges.
 *
 * @param over the revision that it replaces; 0 for none. Where another is there, it fails
 *   (`isConflict`): what a former owner sent before it stood still may arrive after the decisions of
 *   the next one, and would take their place.
 */
export const writeRecord = Effect.fnUntraced(function* (
  place: Place,
  record: RetryRecord,
  deadline: number,
  over = 0
) {
  const { names } = yield* Broker
  const { seq } = yield* writeValue(
    names.buckets.retries,
    retryRecordKey(place),
    JSON.stringify(record),
    {
      ttl: Math.max(0, deadline - record.decidedAt) + afterlife,
      expected: over,
      onAnyConnection: true
    }
  )
  return seq
})

/** Returns the revision that is there for a message, of a decision or of what erased it; 0 for none. */
export const readRevision = Effect.fnUntraced(function* (place: Place) {
  const { entry, names } = yield* Broker
  return (yield* entry(names.buckets.retries, retryRecordKey(place)))?.revision ?? 0
})

const readEntry = Effect.fnUntraced(function* (place: Place) {
  const { names } = yield* Broker
  return yield* readValue(names.buckets.retries, retryRecordKey(place))
})

/** Reads the record of a message from the leader, with its revision; undefined where there is none. */
export const readRevised = Effect.fnUntraced(function* (place: Place) {
  const entry = yield* readEntry(place)
  if (entry === undefined) return undefined
  return { record: yield* decode(entry.string()), revision: entry.revision }
})

/** Reads the record of a message from the leader; undefined where there is none. */
export const readRecord = (place: Place) => Effect.map(readRevised(place), (found) => found?.record)

/**
 * Copies a record unread for the message that replaces another one in another place.
 *
 * @param until when its delivery expires, ms since the epoch.
 */
export const copyRecord = Effect.fnUntraced(function* (from: Place, to: Place, until: number) {
  const entry = yield* readEntry(from)
  if (entry === undefined) return
  const now = yield* Clock.currentTimeMillis
  const { names } = yield* Broker
  yield* writeValue(names.buckets.retries, retryRecordKey(to), entry.string(), {
    ttl: Math.max(0, until - now) + afterlife
  })
})

/**
 * Erases the record of a message that has ended. If that fails, the record expires.
 *
 * A broker that is killed may have stored the erasure but not the acknowledgement before it, and
 * redeliver the message (seen in 1 of 25 kills). The delete marker shows that for one more minute.
 */
export const eraseRecord = Effect.fnUntraced(function* (place: Place) {
  const { names } = yield* Broker
  yield* Effect.ignore(eraseValue(names.buckets.retries, retryRecordKey(place)))
})

const Ended = Schema.Struct({ v: Schema.Literal(1), ended: Schema.Array(Schema.Int) })
const decodeEnded = Schema.decodeUnknownOption(Schema.fromJsonString(Ended))

/** Which entries of a backlog's message have ended or have left it, as far as that was stored. */
export interface StoredEnds {
  readonly ended: ReadonlyArray<number>
  readonly revision: number
}

const noEnds: StoredEnds = { ended: [], revision: 0 }

/** Reads which entries of a message have ended, from the leader. */
export const readEnded = Effect.fnUntraced(function* (place: Omit<Place, "entry">) {
  const { entry, names } = yield* Broker
  const found = yield* entry(names.buckets.retries, retryRecordKey(place))
  if (found === null) return noEnds
  const record = Option.getOrUndefined(decodeEnded(found.string()))
  return { ended: record?.ended ?? [], revision: found.revision } satisfies StoredEnds
})

/**
 * Stores which entries of a message have ended, or have left it. It stays in the stream for the
 * others. What another owner has stored meanwhile counts as well.
 *
 * @param place of the message.
 * @param deadline the last one of its entries, ms since the epoch.
 * @param before what this owner has read or stored of it. (Default: nothing)
 */
export const writeEnded = Effect.fnUntraced(function* (
  place: Omit<Place, "entry">,
  ended: ReadonlyArray<number>,
  deadline: number,
  before: StoredEnds = noEnds
): Effect.fn.Return<StoredEnds, PublishError | BrokerError, Broker> {
  const now = yield* Clock.currentTimeMillis
  const { names } = yield* Broker
  const record: typeof Ended.Type = { v: 1, ended: [...new Set([...before.ended, ...ended])] }
  const write = writeValue(names.buckets.retries, retryRecordKey(place), JSON.stringify(record), {
    ttl: Math.max(0, deadline - now) + afterlife,
    ...{ expected: before.revision, onAnyConnection: true }
  })
  return yield* write.pipe(
    Effect.map(({ seq }) => ({ ended: record.ended, revision: seq })),
    Effect.catchIf(isConflict, () =>
      Effect.flatMap(readEnded(place), (stored) => writeEnded(place, ended, deadline, stored))
    )
  )
})

/** True where the record of a message was erased because the message has ended. */
export const isErased = Effect.fnUntraced(function* (place: Place) {
  const { names } = yield* Broker
  return yield* isErasedValue(names.buckets.retries, retryRecordKey(place))
})

/**
 * Lists a stream's messages that have a record, or had one a minute ago: when each was stored, ms
 * since the epoch, by slot. Of messages that had the same sequence, only the newest is listed.
 */
export const listRecords = Effect.fnUntraced(function* (stream: string) {
  const { names, streamInfo } = yield* Broker
  const prefix = `$KV.${names.buckets.retries}.${stream}.`
  const info = yield* streamInfo(`list the records of ${stream}`, `KV_${names.buckets.retries}`, {
    subjects_filter: `${prefix}*.*`
  })
  const found = new Map<number, number>()
  for (const subject of Object.keys(info.state.subjects ?? {})) {
    const [of = "", at = ""] = subject.slice(prefix.length).split(".")
    const [seq, entry] = of.split("-").map(Number)
    const slot = slotOf({ seq: seq ?? 0, ...(entry === undefined ? {} : { entry }) })
    found.set(slot, Math.max(Number(at), found.get(slot) ?? 0))
  }
  return found
})
