import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/connection.ts"
import { isNoSuchMessage, readStream, storedAt } from "../broker/scan.ts"
import { readValue, writeValue } from "../broker/values.ts"
import { Fact } from "../domain/fact.ts"
import type { PartitionMemory } from "./partition-memory.ts"
import { eraseRecord, hasRecord, listRecords } from "./retry-record.ts"
import type { Horizon } from "./settled.ts"
import { Settled } from "./settled.ts"
import { Suspicion } from "./suspicion.ts"

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/** Key of a partition's floor: the HISTORY sequence below which all of its facts are settled. */
const floorKey = (partition: number) => `floor.${partition}`

/** Stores a partition's floor. Behind the truth it costs a new owner time; ahead it must never be. */
export const writeFloor = Effect.fnUntraced(function* (partition: number, floor: number) {
  const { names } = yield* Broker
  yield* writeValue(names.buckets.workers, floorKey(partition), String(floor))
})

const readFloor = Effect.fnUntraced(function* (partition: number) {
  const { bucket, names } = yield* Broker
  const entry = yield* readValue(yield* bucket(names.buckets.workers), floorKey(partition))
  const floor = Number(entry?.string() ?? 0)
  return Number.isSafeInteger(floor) ? floor : 0
})

/**
 * Asks the history first: what a new owner must know of its partitions before its first attempt.
 * Facts above the lowest floor say which messages have ended though the broker may hand them out
 * again; the list of records says which have failed before.
 */
export const takeOver = Effect.fnUntraced(function* (
  indexes: ReadonlyArray<number>,
  horizon: Horizon
) {
  const { ask, jsm, names } = yield* Broker
  const history = yield* ask("look at the history", () => jsm.streams.info(names.history))
  horizon.stored(history.state.last_seq)
  const memories = new Map<string, PartitionMemory & { readonly isOurs: IsOurs }>()
  yield* Effect.forEach(indexes, (index) =>
    Effect.gen(function* () {
      const stream = names.deliveries(index)
      memories.set(stream, {
        index,
        stream,
        isOurs: yield* sequencesOf(stream),
        waiting: new Map(),
        recorded: yield* listRecords(stream),
        told: new Map(),
        settled: new Settled(horizon),
        suspicion: new Suspicion()
      })
    })
  )
  const floors = yield* Effect.forEach(indexes, readFloor, { concurrency: 8 })
  const { subjects } = names
  yield* readStream({
    stream: names.history,
    subjects: [
      subjects.fact("*", "*", "ok", "delivered"),
      subjects.fact("*", "*", "failure", "attempt-failed"),
      subjects.fact("*", "*", "failure", "dead-lettered")
    ],
    fromSeq: Math.min(...floors) + 1
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const fact = Option.getOrUndefined(decodeFact(message.string()))
        const memory = memories.get(fact?.from?.stream ?? "")
        if (memory === undefined || fact?.from === undefined) return
        if (!memory.isOurs(fact.from.seq, storedAt(message))) return
        if (fact.kind !== "attempt-failed") memory.settled.add(fact.from.seq)
        else memory.told.set(fact.from.seq, fact.attempt ?? 0)
      })
    )
  )
  yield* Effect.forEach(memories.values(), removeEnded, { discard: true })
  return [...memories.values()]
})

/** Whether a fact stored at a time (ms) means a message of this stream by a sequence. */
type IsOurs = (seq: number, at: number) => boolean

/**
 * A stream that was made anew counts from 1 again: what the history tells of the old one says
 * nothing about its messages.
 */
const sequencesOf = Effect.fnUntraced(function* (stream: string) {
  const { ask, jsm } = yield* Broker
  const { created, state } = yield* ask(`look at ${stream}`, () => jsm.streams.info(stream))
  const since = Math.floor(Date.parse(created))
  const isOurs: IsOurs = (seq, at) => seq <= state.last_seq && at >= since
  return isOurs
})

/**
 * Removes what is left of messages that have ended and whose owner came no further than the fact.
 * Those that it found by looking through the stream may be waiting out the delay of a NAK: they
 * would come back when nobody remembers their end.
 */
const removeEnded = Effect.fnUntraced(function* ({ recorded, settled, stream }: PartitionMemory) {
  const { ask, jsm } = yield* Broker
  const remove = Effect.fnUntraced(function* (seq: number) {
    recorded.delete(seq)
    // The list knows those that were erased lately too.
    if (!(yield* hasRecord(stream, seq))) return
    yield* ask("remove a delivery that has ended", () =>
      jsm.streams.deleteMessage(stream, seq, false)
    ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.void))
    yield* eraseRecord(stream, seq)
  })
  const ended = [...recorded].filter((seq) => settled.has(seq))
  yield* Effect.forEach(ended, remove, { concurrency: 64, discard: true })
})
