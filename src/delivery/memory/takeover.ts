import { Effect, Option, Schema, Stream } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage, readStream, storedAt } from "../../broker/scan.ts"
import { readValue, writeValue } from "../../broker/values.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import { Fact, isSuccess, successKinds } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { endpointKey } from "../endpoints/endpoint-store.ts"
import { readPlace } from "../lanes/held.ts"
import type { PartitionMemory, StreamMemory } from "./partition-memory.ts"
import { eraseRecord, listRecords, readRecord } from "./retry-record.ts"
import type { Horizon, Identity } from "./settled.ts"
import { Settled } from "./settled.ts"
import { progressFrom, Straights } from "./straights.ts"
import { Suspicion } from "./suspicion.ts"
import { Told } from "./told.ts"

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/** Key of a partition's floor: the HISTORY sequence below which all of its facts are settled. */
export const floorKey = (partition: number) => `floor.${partition}`

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
 *
 * @param partitions how many there are.
 */
export const takeOver = Effect.fnUntraced(function* (
  indexes: ReadonlyArray<number>,
  horizon: Horizon,
  partitions: number
) {
  const { ask, jsm, names } = yield* Broker
  const history = yield* ask("look at the history", () => jsm.streams.info(names.history))
  horizon.stored(history.state.last_seq)
  const memories = yield* Effect.forEach(indexes, (index) =>
    Effect.gen(function* () {
      const settled = new Settled(horizon)
      const queue = yield* streamMemory(index, names.deliveries(index), settled)
      const backlog = yield* streamMemory(index, names.backlog(index), settled.beside())
      return { ...queue, backlog, straights: new Straights() }
    })
  )
  const byStream = new Map(
    memories.flatMap((memory) => [memory, memory.backlog]).map((memory) => [memory.stream, memory])
  )
  const straightsOf = (tenant: string, endpoint: string) => {
    const partition = partitionOf(tenant, endpoint, partitions)
    return memories.find(({ index }) => index === partition)?.straights
  }
  const left = whatHasLeft(byStream, straightsOf, names.events)
  const floor = Math.min(...(yield* Effect.forEach(indexes, readFloor, { concurrency: 8 })))
  const { subjects } = names
  yield* readStream({
    stream: names.history,
    subjects: [
      ...successKinds.map((kind) => subjects.fact("*", "*", "ok", kind)),
      subjects.fact("*", "*", "failure", "attempt-failed"),
      subjects.fact("*", "*", "failure", "dead-lettered")
    ],
    fromSeq: floor + 1
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const fact = Option.getOrUndefined(decodeFact(message.string()))
        if (fact?.from === undefined) return
        const at = storedAt(message)
        const { endpoint, eventSeq = 0, round = firstRound, tenant } = fact
        left(fact.origin, { tenant, endpoint, eventSeq, round }, at)
        if (fact.from.stream === names.events) {
          const straights = straightsOf(tenant, endpoint)
          const failed = progressFrom(fact, names.events)
          if (failed !== undefined) straights?.failed({ ...fact, eventSeq }, failed)
          else if (isSuccess(fact.kind) && fact.eventSeq !== undefined)
            straights?.add(endpointKey(tenant, endpoint), eventSeq, at)
        }
        const memory = byStream.get(fact.from.stream)
        if (memory?.isOurs(fact.from.seq, at) !== true) return
        if (fact.kind !== "attempt-failed") memory.settled.add(fact.from.seq, { eventSeq, round })
        else memory.told.add(fact.from.seq, { eventSeq, round }, fact.attempt ?? 0)
      })
    )
  )
  const since = yield* storedSince(floor)
  yield* Effect.forEach(memories, ({ backlog }) => readMoves(left, backlog.stream, since), {
    discard: true
  })
  yield* Effect.forEach(memories, removeEnded, { discard: true })
  return memories.map((memory): PartitionMemory => memory)
})

type Remembered = StreamMemory & { readonly isOurs: IsOurs }

const streamMemory = Effect.fnUntraced(function* (
  index: number,
  stream: string,
  settled: Settled
): Effect.fn.Return<Remembered, BrokerError, Broker> {
  return {
    index,
    stream,
    isOurs: yield* sequencesOf(stream),
    waiting: new Map(),
    recorded: yield* listRecords(stream),
    told: new Told(),
    settled,
    suspicion: new Suspicion()
  }
})

/** Notes that a delivery has left the place that it was moved from, at a time (ms since the epoch). */
type Left = (
  origin: string | undefined,
  of: Identity & Pick<Delivery, "tenant" | "endpoint"> & Partial<Pick<Delivery, "began">>,
  at: number
) => void

/** What has been moved elsewhere has left its old place, though the broker may hand it out again. */
const whatHasLeft =
  (
    byStream: ReadonlyMap<string, Remembered>,
    straightsOf: (tenant: string, endpoint: string) => Straights | undefined,
    events: string
  ): Left =>
  (origin, of, at) => {
    const place = origin === undefined ? undefined : readPlace(origin)
    if (place === undefined) return
    const { endpoint, tenant } = of
    if (place.stream === events)
      straightsOf(tenant, endpoint)?.add(endpointKey(tenant, endpoint), place.seq, of.began ?? at)
    const memory = byStream.get(place.stream)
    if (memory?.isOurs(place.seq, at) === true) memory.settled.add(place.seq, of)
  }

/** When the first fact beyond a floor was stored, ms since the epoch; 0 where that is not known. */
const storedSince = Effect.fnUntraced(function* (floor: number) {
  const { ask, jsm, names } = yield* Broker
  if (floor === 0) return 0
  const message = yield* ask("read the floor of the history", () =>
    jsm.streams.getMessage(names.history, { seq: floor })
  ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null)))
  return message?.time.getTime() ?? 0
})

/** Reads what was moved to a backlog lately. */
const readMoves = (left: Left, stream: string, since: number) =>
  readStream({ stream, subjects: [">"], fromTime: since, headersOnly: true }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const header = (name: string) => message.headers?.get(name)
        const eventSeq = Number(header("petrel-event-seq"))
        const round = header("petrel-round") || firstRound
        const [tenant = "", endpoint = ""] = message.subject.split(".").slice(-2)
        const began = Number(header("petrel-began"))
        const of = { tenant, endpoint, eventSeq, round, began }
        left(header("petrel-origin"), of, storedAt(message))
      })
    )
  )

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
const removeEnded = Effect.fnUntraced(function* ({ recorded, settled, stream }: StreamMemory) {
  const { ask, jsm } = yield* Broker
  const remove = Effect.fnUntraced(function* (seq: number) {
    // The list knows those that were erased lately too.
    const found = yield* Effect.option(readRecord(stream, seq))
    if (Option.isNone(found)) return
    const record = found.value
    if (record !== undefined && !settled.has(seq, record)) return
    recorded.delete(seq)
    if (record === undefined) return
    yield* ask("remove a delivery that has ended", () =>
      jsm.streams.deleteMessage(stream, seq, false)
    ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.void))
    yield* eraseRecord(stream, seq, record)
  })
  const ended = [...recorded].filter((seq) => settled.mayHave(seq))
  yield* Effect.forEach(ended, remove, { concurrency: 64, discard: true })
})
