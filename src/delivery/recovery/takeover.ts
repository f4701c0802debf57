import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { Layout } from "../../broker/installed.ts"
import { endOf, firstSince, readStream, seeStream, storedAt } from "../../broker/scan.ts"
import { readValue, writeValue } from "../../broker/values.ts"
import {
  backlogEntriesIn,
  labelIn,
  originStreams,
  waitingIn
} from "../../domain/backlog-message.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { EventIdentity } from "../../domain/event.ts"
import type { Place } from "../../domain/fact.ts"
import { Fact, isSuccess, readPlace, slotOf, successKinds } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { progressFrom } from "../../history/delivery-facts.ts"
import { listRecords } from "../retry/retry-records.ts"
import { AttemptedPlaces } from "./attempted-places.ts"
import { type BacklogOwner, isLate, readOwners } from "./backlog-owners.ts"
import type { HistoryPosition, KnownFact } from "./completed-deliveries.ts"
import { CompletedDeliveries } from "./completed-deliveries.ts"
import { DirectDeliveryRegistry } from "./direct-delivery-registry.ts"
import { unpackMemory } from "./handed-memory.ts"
import type { PartitionMemory, StreamMemory } from "./partition-memory.ts"
import { eventAtPlace, isUntriedFirst, RecordedAttempts } from "./partition-memory.ts"
import { PoisonGuard } from "./poison-guard.ts"
import { EndedMessages, removeFromBacklog, removeRecorded } from "./remove-ended.ts"

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/**
 * Key of a partition's watermark: the fact up to which all of the partition's facts are settled.
 */
export const watermarkKey = (partition: number) => `watermark.${partition}`

const decodeFloor = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ seq: Schema.Int, at: Schema.Number }))
)

/**
 * Stores a partition's watermark. A low watermark costs a new owner time. It must never be too
 * high: a new owner would miss facts.
 */
export const writeWatermark = Effect.fnUntraced(function* (partition: number, floor: KnownFact) {
  const { names } = yield* Broker
  yield* writeValue(names.buckets.workers, watermarkKey(partition), JSON.stringify(floor))
})

const readFloor = Effect.fnUntraced(function* (partition: number) {
  const { names } = yield* Broker
  const entry = yield* readValue(names.buckets.workers, watermarkKey(partition))
  const floor = Option.getOrUndefined(decodeFloor(entry?.string() ?? ""))
  return floor ?? { seq: 0, at: 0 }
})

/** Reads when the fact at a sequence of the history was stored, from the leader. */
export const readKnownFact = Effect.fnUntraced(function* (seq: number) {
  if (seq === 0) return { seq, at: 0 } satisfies KnownFact
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage("look at the history", names.history, { seq })
  return { seq, at: message?.time.getTime() ?? 0 } satisfies KnownFact
})

/**
 * Returns the last sequence of the history that lies before everything stored since `fact`. That is
 * the fact's own sequence, if the fact is still there or has expired. A truncated history reuses
 * sequences; the time of the fact then shows it.
 */
export const settledUpTo = Effect.fnUntraced(function* (
  fact: KnownFact
): Effect.fn.Return<{ readonly seq: number; readonly isLost: boolean }, BrokerError, Broker> {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  if (fact.seq <= state.last_seq) {
    const { at } = yield* readKnownFact(fact.seq)
    if (at === fact.at || (at === 0 && fact.seq < state.first_seq))
      return { seq: fact.seq, isLost: false }
  }
  yield* Effect.logWarning(
    "the history has lost its end: what was stored there lately is read again",
    {
      known: fact.seq,
      last: state.last_seq
    }
  )
  const since = yield* firstSince(names.history, Math.max(0, fact.at - maxClockSkewMs))
  return { seq: since - 1, isLost: true }
})

/** Brings what a worker knows of the end of the history up to date. */
const readPosition = Effect.fnUntraced(function* (historyPosition: HistoryPosition) {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  historyPosition.stored(state.last_seq)
  if (state.last_seq > historyPosition.lastRead.seq && !historyPosition.isDoubtful)
    historyPosition.lastRead = { seq: state.last_seq, at: Date.parse(state.last_ts) }
})

/**
 * Makes the memory of a partition from what its former owner has handed over, which then had nothing
 * in flight. Returns undefined where this version cannot read it.
 */
export const takeOverHanded = Effect.fnUntraced(function* (
  index: number,
  historyPosition: HistoryPosition,
  handed: Uint8Array
) {
  const { names } = yield* Broker
  const restored = unpackMemory(handed, historyPosition)
  if (restored === undefined) return undefined
  const { backlog, directDeliveries, ...ofQueue } = restored
  const [queue, inBacklog] = yield* Effect.all(
    [
      streamMemory(index, names.deliveries(index), ofQueue, directDeliveries),
      streamMemory(index, names.backlog(index), backlog, directDeliveries),
      readPosition(historyPosition)
    ],
    { concurrency: "unbounded" }
  )
  yield* Effect.forEach([queue, inBacklog], removeRecorded, { discard: true })
  return { ...queue, backlog: inBacklog } satisfies PartitionMemory
})

/**
 * Reads what a new owner must know of its partitions before its first attempt. Facts above the
 * lowest watermark tell which messages have ended though the broker may redeliver them. The list of
 * retry records tells which have failed before.
 *
 * @param layout the number of partitions, and up to which fact it was another one.
 */
export const takeOver = Effect.fnUntraced(function* (
  indexes: ReadonlyArray<number>,
  historyPosition: HistoryPosition,
  { historyAtChange, partitions }: Pick<Layout, "historyAtChange" | "partitions">
) {
  const { names } = yield* Broker
  yield* readPosition(historyPosition)
  const memories = yield* Effect.forEach(indexes, (index) =>
    Effect.gen(function* () {
      const completed = new CompletedDeliveries(historyPosition)
      const directDeliveries = new DirectDeliveryRegistry()
      const unread = (completed: CompletedDeliveries) => ({
        completed,
        recordedAttempts: new RecordedAttempts()
      })
      const queue = yield* streamMemory(
        index,
        names.deliveries(index),
        unread(completed),
        directDeliveries
      )
      const backlog = yield* streamMemory(
        index,
        names.backlog(index),
        unread(completed.forBacklog()),
        directDeliveries
      )
      return { ...queue, backlog }
    })
  )
  const byStream = new Map(
    memories.flatMap((memory) => [memory, memory.backlog]).map((memory) => [memory.stream, memory])
  )
  const directDeliveriesOf = (tenant: string, endpoint: string) => {
    const partition = partitionOf(tenant, endpoint, partitions)
    return memories.find(({ index }) => index === partition)?.directDeliveries
  }
  const inBacklogs = memories.map(({ backlog }) => ({ backlog, ends: new EndedMessages() }))
  const endsByStream = new Map(inBacklogs.map(({ backlog, ends }) => [backlog.stream, ends]))
  const ended: Ended = (place, to) => {
    byStream.get(place.stream)?.completed.add(slotOf(place), place.at)
    endsByStream.get(place.stream)?.add(to, place.seq)
  }
  const left = whatHasLeft(ended, directDeliveriesOf, names.events)
  const attempted = new AttemptedPlaces()
  const tell = whatFactsTell(
    { attempted, ended, left },
    (stream) => byStream.get(stream)?.recordedAttempts,
    directDeliveriesOf,
    names.events
  )
  const floors = yield* Effect.forEach(indexes, readFloor, { concurrency: 8 })
  // Most partitions have the same watermark.
  const each = new Map(floors.map((floor) => [`${floor.seq}@${floor.at}`, floor])).values()
  const ends = yield* Effect.forEach(each, settledUpTo, { concurrency: 8 })
  const floor = Math.min(...ends.map(({ seq }) => seq))
  const { subjects } = names
  const isMine = partitionFilter(indexes, partitions)
  yield* seeStream(
    {
      stream: names.history,
      subjects: [
        ...successKinds.map((kind) => subjects.fact("*", "*", "ok", kind)),
        subjects.fact("*", "*", "failure", "attempt-failed"),
        subjects.fact("*", "*", "failure", "dead-lettered")
      ],
      fromSeq: floor + 1
    },
    (message) => {
      // A power cut may bring back what had ended in a queue before the change.
      const mayBeMine = message.seq <= historyAtChange || isMine(message.subject)
      const fact = mayBeMine ? Option.getOrUndefined(decodeFact(message.string())) : undefined
      if (fact !== undefined) tell(fact)
      return false
    }
  )
  const since = Math.min(...floors.map(({ at }) => at))
  const moves = yield* Effect.forEach(memories, ({ backlog }) =>
    readMoves(left, backlog, since, (of, place) => {
      left(of.origin, of, isUntriedFirst(of) ? of : undefined)
      const { attempts } = of.progress
      const before = attempted.waits(of, { place, attempts }, of.origin)
      if (before !== undefined) ended(before, of)
    })
  )
  yield* Effect.forEach(byStream.values(), removeRecorded, { discard: true })
  yield* Effect.forEach(
    inBacklogs,
    ({ backlog, ends }, at) => removeFromBacklog(backlog, ends, moves[at]?.owners ?? []),
    { discard: true }
  )
  return memories.map((memory, at): PartitionMemory => {
    const backlogEnd = moves[at]?.end
    return backlogEnd === undefined ? memory : { ...memory, backlogEnd }
  })
})

/**
 * Tells by the subject of a fact whether it is about an endpoint in one of these partitions. Most are
 * not, and to parse a fact takes longer than to receive it.
 */
const partitionFilter = (indexes: ReadonlyArray<number>, partitions: number) => {
  const mine = new Set(indexes)
  const known = new Map<string, boolean>()
  return (subject: string): boolean => {
    const [tenant = "", endpoint = ""] = subject.split(".").slice(-4)
    const key = endpointKey(tenant, endpoint)
    const found = known.get(key) ?? mine.has(partitionOf(tenant, endpoint, partitions))
    known.set(key, found)
    return found
  }
}

const streamMemory = Effect.fnUntraced(function* (
  index: number,
  stream: string,
  known: Pick<StreamMemory, "completed" | "recordedAttempts">,
  directDeliveries: DirectDeliveryRegistry
): Effect.fn.Return<StreamMemory, BrokerError, Broker> {
  return {
    ...known,
    index,
    stream,
    waiting: new Map(),
    unreadRecords: yield* listRecords(stream),
    poisonGuard: new PoisonGuard(),
    directDeliveries
  }
})

/** Notes that the message at a place has ended, or has left it. */
type Ended = (place: Place, to: Addressee) => void

/**
 * Notes that a delivery has left the place from which it was moved.
 *
 * @param first its event, where it may have come through the queue as well as directly.
 */
type Left = (origin: string | undefined, to: Addressee, first?: EventIdentity) => void

type DirectDeliveriesOf = (tenant: string, endpoint: string) => DirectDeliveryRegistry | undefined

/** A delivery that was moved has left its old place, though the broker may redeliver it there. */
const whatHasLeft =
  (ended: Ended, directDeliveriesOf: DirectDeliveriesOf, events: string): Left =>
  (origin, to, first) => {
    const place = origin === undefined ? undefined : readPlace(origin)
    if (place === undefined) return
    const { endpoint, tenant } = to
    const event = place.stream === events ? eventAtPlace(place) : first
    if (event !== undefined)
      directDeliveriesOf(tenant, endpoint)?.add(endpointKey(tenant, endpoint), event)
    ended(place, to)
  }

/** Notes what facts tell: which messages have ended or were left, and how often others failed. */
const whatFactsTell =
  (
    {
      attempted,
      ended,
      left
    }: { readonly attempted: AttemptedPlaces; readonly ended: Ended; readonly left: Left },
    recordedAttemptsOf: (stream: string) => RecordedAttempts | undefined,
    directDeliveriesOf: DirectDeliveriesOf,
    events: string
  ) =>
  (fact: Fact): void => {
    const { attempt = 0, from, kind, origin, round = firstRound } = fact
    if (from === undefined) return
    const { endpoint, eventAt = 0, eventSeq = 0, tenant } = fact
    const of = { tenant, endpoint, eventSeq, eventAt, round }
    left(origin, of)
    if (from.stream === events) {
      const directDeliveries = directDeliveriesOf(tenant, endpoint)
      const failed = progressFrom(fact, events)
      if (failed !== undefined) directDeliveries?.failed(of, failed)
      else if (isSuccess(kind)) directDeliveries?.add(endpointKey(tenant, endpoint), of)
    }
    const recorded = recordedAttemptsOf(from.stream)
    let before: Place | undefined
    if (kind !== "attempt-failed") {
      ended(from, of)
      before = attempted.ended(of)
    } else if (recorded !== undefined) {
      recorded.add(from, attempt)
      before = attempted.failed(of, { place: from, attempts: attempt }, origin)
    }
    if (before !== undefined) ended(before, of)
  }

/**
 * Reads what was recently moved to the backlogs of a partition, up to the end that they have now.
 * Returns that end, and the partition's owners, the oldest first. What a former owner has stored late,
 * or stores from now on, proves nothing: whoever delivers from there looks whether something else
 * holds it.
 */
const readMoves = Effect.fnUntraced(function* (
  left: Left,
  { index, stream }: Pick<StreamMemory, "index" | "stream">,
  since: number,
  waits: (of: ReturnType<typeof waitingIn>, place: Place) => void
): Effect.fn.Return<
  { readonly end: number; readonly owners: ReadonlyArray<BacklogOwner> },
  BrokerError,
  Broker
> {
  const streams = originStreams((yield* Broker).names, index)
  const end = yield* endOf(stream)
  const owners = yield* readOwners(index)
  yield* readStream({ stream, subjects: [">"], fromTime: since, headersOnly: true }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const { headers, seq, subject } = message
        const header = (name: string) => headers?.get(name) || undefined
        const at = storedAt(message)
        const writer = labelIn(header)?.owner
        if (seq > end || (writer !== undefined && isLate(owners, seq, writer))) return
        const entries = backlogEntriesIn(subject, header, streams)
        if (entries === undefined) {
          const [tenant = "", endpoint = ""] = subject.split(".").slice(-2)
          left(header("petrel-origin"), { tenant, endpoint })
        }
        for (const held of entries ?? []) {
          const { entry } = held
          waits(waitingIn(held), { stream, seq, at, ...(entry === undefined ? {} : { entry }) })
        }
      })
    )
  )
  return { end, owners }
})
