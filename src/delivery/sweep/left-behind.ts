import type { StoredMsg } from "@nats-io/jetstream"
import { Cause, Clock, Effect, Queue, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { readBatch, scanQueue } from "../../broker/scan.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { Addressee, PlacedDelivery } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"
import type { Facts } from "../../history/facts.ts"
import type { LocateQuery, Sighting } from "../../history/locate.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { Decisions } from "../execution/decisions.ts"
import { readOwners } from "../recovery/backlog-owners.ts"
import { isUndecided } from "../recovery/late-entries.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import { isCompletedElsewhere } from "../recovery/partition-memory.ts"
import { readRecord } from "../retry/retry-records.ts"
import { handleOf } from "./sweep.ts"

/*
 * A broker that is killed may keep that its consumer has passed a message, and forget that the
 * message was removed. The message is left behind: it is in the queue again, and the consumer
 * neither redelivers it nor waits for its acknowledgement. A consumer that is ahead of a queue that
 * lost its end is no such case: nats-server sets it back.
 */

/**
 * Pause between two checks, ms: doubles from the first, after the start or a reconnect, to the
 * second. A consumer may at first account for messages that are gone, and so for too many.
 */
const pausesMs = [10_000, 600_000] as const
/** How often messages are counted before they are searched: others come and go between two counts. */
const maxCounts = 5
/** Pause between two counts, ms. */
const countPauseMs = 1_000
/**
 * A retry whose time came so long ago, and that the consumer has not redelivered, is looked at by
 * itself, ms: the counts do not show it while the consumer accounts for messages that are gone.
 */
const overdueMs = 10_000
/** Pause between looks for such retries, ms. */
const overdueEveryMs = 5_000
/** Retries that one such look takes care of. */
const maxOverdue = 1_000
/** Decisions of former owners that one such look reads. */
const maxRead = 100
/** Pause before it is asked again whether anything may be decided, ms. */
const notReadyPauseMs = 250
/** Maximum messages of one search. It reads the history once, for all of them. */
const maxCandidates = 20_000
/** Records that are read, and messages that are released or moved, at the same time. */
const maxConcurrent = 16

interface LeftBehindOptions {
  readonly memory: PartitionMemory
  readonly recall: Decisions["recall"]
  /** True for a message in flight, or whose delivery is taken directly from its event now. */
  readonly isInFlight: (placed: PlacedDelivery) => boolean
  /** Releases a message that has left its place, else moves it to its endpoint's backlog. */
  readonly adopt: (
    handle: AckHandle,
    isSettled: boolean
  ) => Effect.Effect<unknown, unknown, Broker | Facts>
  /** False while nothing may be decided: the partition is not owned, or a stream may be truncated. */
  readonly mayDecide: () => boolean
}

/** A message that may have been left behind. Its body is not held: there may be thousands. */
interface Candidate {
  readonly place: Place
  readonly to: Addressee
  /** Endpoint and round of its delivery. */
  readonly key: string
  /** Attempts of the delivery that are known at its place. */
  readonly attempts: number
  /** True where it is known to have left its place: it has ended, or was moved. */
  readonly isSettled: boolean
}

const keyOf = ({ endpoint, tenant }: Addressee, round: string) =>
  `${endpointKey(tenant, endpoint)}.${round}`

/**
 * Returns how many messages of a queue its consumer does not account for, and the last sequence that
 * it has passed. The counts are not read at the same moment.
 */
const countLeftBehind = Effect.fnUntraced(function* ({ index, stream }: PartitionMemory) {
  const { consumerInfo, names } = yield* Broker
  const subject = names.subjects.deliveriesOf(index)
  const [first] = yield* readBatch(stream, subject, 1, { batch: 1, max_bytes: 1 })
  const stored = first === undefined ? 0 : 1 + Number(first.header.get("Nats-Num-Pending"))
  const { delivered, num_ack_pending, num_pending } = yield* consumerInfo(
    `look at what ${stream} has delivered`,
    stream,
    names.deliverConsumer
  )
  return { count: stored - num_ack_pending - num_pending, passed: delivered.stream_seq }
})

/**
 * Returns the sequence up to which messages may have been left behind; undefined for none. What the
 * consumer passes while they are counted again is not meant: it is on its usual way.
 */
const suspectedUpTo = Effect.fnUntraced(function* (memory: PartitionMemory) {
  const first = yield* countLeftBehind(memory)
  let { count } = first
  for (let n = 1; n < maxCounts && count > 0; n++) {
    yield* Effect.sleep(countPauseMs)
    count = (yield* countLeftBehind(memory)).count
  }
  return count > 0 ? first.passed : undefined
})

/**
 * True where a sighting shows that a delivery has left a place: it has ended, or was moved from
 * there, or was attempted more often in another place. Anything less proves nothing: the place where it was
 * before looks the same.
 *
 * @param at the place, and the attempts of the delivery that are known there.
 */
export const hasLeft = (
  at: { readonly place: Place; readonly attempts: number },
  sighting: Sighting
): boolean => {
  const here = placeName(at.place)
  if (sighting.where === "history")
    return sighting.fact.kind !== "attempt-failed" || sighting.fact.origin === here
  const { attempts, origin, place } = sighting
  if (placeName(place) === here) return false
  return origin === here || attempts > at.attempts
}

/**
 * Returns those of some candidates that have left their place. What a former owner stored late in a
 * backlog proves it once it is delivered from there: until then the queue is what counts.
 */
const findSettled = Effect.fnUntraced(function* (
  { backlog, index: partition }: PartitionMemory,
  candidates: ReadonlyArray<Candidate>
) {
  const settled = new Set(candidates.filter(({ isSettled }) => isSettled))
  const open = candidates.filter((candidate) => !settled.has(candidate))
  if (open.length === 0) return settled
  const byKey = Map.groupBy(open, ({ key }) => key)
  const endpoints = new Map(open.map(({ to }) => [endpointKey(to.tenant, to.endpoint), to]))
  const first = open.reduce((least, { place }) => Math.min(least, place.at), Number.MAX_VALUE)
  const fromTime = first - maxClockSkewMs
  const query: LocateQuery = {
    within: { partition },
    endpoints: [...endpoints.values()],
    places: ["queue", "schedules", "backlog", "history"],
    backlogSince: fromTime,
    historySince: { fromTime }
  }
  const owners = yield* readOwners(partition)
  const isProof = (sighting: Sighting) =>
    sighting.where !== "backlog" || !isUndecided(owners, backlog, sighting.place, sighting.owner)
  yield* locate(query, (sighting) => {
    if (!isProof(sighting)) return false
    for (const candidate of byKey.get(keyOf(sighting, roundKeyOf(sighting))) ?? [])
      if (hasLeft(candidate, sighting)) settled.add(candidate)
    return settled.size === candidates.length
  })
  return settled
})

/** Returns what is known of a message; undefined where it is to be left. */
const candidateIn = Effect.fnUntraced(function* (
  { isInFlight, memory, recall }: LeftBehindOptions,
  message: StoredMsg
) {
  const handle = yield* handleOf(memory, message, () => undefined)
  if (handle === undefined || isInFlight(handle)) return undefined
  const { delivery, place } = handle
  const { endpoint, tenant } = delivery
  const known = { place, to: { tenant, endpoint }, key: keyOf(delivery, roundKey(delivery)) }
  const hasEnded = memory.completed.has(place.seq, place.at)
  const stored = hasEnded ? ("released" as const) : yield* recall(handle)
  if (stored === "released") return { ...known, attempts: 0, isSettled: true } satisfies Candidate
  if (stored === undefined) {
    const { attempts } = delivery.progress
    const isSettled = isCompletedElsewhere(memory, delivery)
    return { ...known, attempts, isSettled } satisfies Candidate
  }
  const { decision, progress } = stored.record
  // The consumer may hold it until then.
  if (decision._tag === "Nak" && decision.at > (yield* Clock.currentTimeMillis)) return undefined
  return { ...known, attempts: progress.attempts, isSettled: false } satisfies Candidate
})

/** Finds retries that the consumer should have redelivered a while ago. */
class OverdueRetries {
  readonly #memory: PartitionMemory
  /** When those come that a former owner decided about, ms since the epoch, by sequence. */
  readonly #known = new Map<number, number>()

  constructor(memory: PartitionMemory) {
    this.#memory = memory
  }

  /** Reads when some more of those come that a former owner decided about. */
  readonly #learn = Effect.fnUntraced({ self: this }, function* () {
    const { stream, unreadRecords } = this.#memory
    for (const seq of this.#known.keys()) if (!unreadRecords.has(seq)) this.#known.delete(seq)
    const unknown = [...unreadRecords].filter(([seq]) => !this.#known.has(seq)).slice(0, maxRead)
    // It stays unread: what it says besides is for whoever settles its message.
    const learn = ([seq, at]: readonly [number, number]) =>
      Effect.map(readRecord({ stream, seq, at }), (record) =>
        this.#known.set(seq, record === undefined ? Number.POSITIVE_INFINITY : dueAt(record))
      )
    yield* Effect.forEach(unknown, learn, { concurrency: maxConcurrent, discard: true })
  })

  /** Reads their messages. */
  readonly read = Effect.fnUntraced({ self: this }, function* () {
    const { readMessage } = yield* Broker
    const { stream, unreadRecords, waiting } = this.#memory
    yield* this.#learn()
    const before = (yield* Clock.currentTimeMillis) - overdueMs
    const overdue = [
      ...[...waiting].flatMap(([seq, { record, storedAt }]) =>
        dueAt(record) < before ? [[seq, storedAt] as const] : []
      ),
      ...[...unreadRecords].filter(([seq]) => (this.#known.get(seq) ?? before) < before)
    ]
    const message = ([seq, at]: readonly [number, number]) =>
      Effect.map(readMessage("read an overdue retry", stream, { seq }), (found) =>
        found?.time.getTime() === at ? found : undefined
      )
    return Stream.fromIterable(overdue.slice(0, maxOverdue)).pipe(
      Stream.mapEffect(message, { concurrency: maxConcurrent }),
      Stream.filter((found) => found !== undefined)
    )
  })
}

/** When a delivery that waits by NAK comes, ms since the epoch. */
const dueAt = ({ decision }: RetryRecord): number =>
  decision._tag === "Nak" ? decision.at : Number.POSITIVE_INFINITY

/** Takes care of those of some messages of a queue that were left behind. */
const recover = Effect.fnUntraced(function* (
  options: LeftBehindOptions,
  messages: Stream.Stream<StoredMsg, BrokerError, Broker>
) {
  const { adopt, memory } = options
  const { stream } = memory
  const { readMessage } = yield* Broker
  const candidates = yield* messages.pipe(
    Stream.mapEffect((message) => candidateIn(options, message), { concurrency: maxConcurrent }),
    Stream.filter((candidate) => candidate !== undefined),
    Stream.take(maxCandidates),
    Stream.runCollect
  )
  if (candidates.length === 0) return
  const settled = yield* findSettled(memory, candidates)
  const moved = candidates.length - settled.size
  yield* Effect.logInfo("messages were left behind in a queue", {
    ...{ stream, settled: settled.size, moved }
  })
  const take = Effect.fnUntraced(function* (candidate: Candidate) {
    const { at, seq } = candidate.place
    const message = yield* readMessage("read what was left behind", stream, { seq })
    if (message === null || message.time.getTime() !== at) return
    // What is not taken now is found again.
    const handle = yield* handleOf(memory, message, () => undefined)
    if (handle !== undefined) yield* adopt(handle, settled.has(candidate))
  })
  yield* Effect.forEach(candidates, take, { concurrency: maxConcurrent, discard: true })
})

/**
 * Finds messages of a partition's queue that were left behind, and releases those whose delivery
 * has ended or was moved. The others go to their endpoints' backlogs. It looks for them at the
 * start, after each reconnect, and at intervals, and searches only where the consumer does not
 * account for all messages of the queue. Retries that are overdue it finds by their time. Runs until
 * it is interrupted.
 */
export const recoverLeftBehind = Effect.fnUntraced(function* (options: LeftBehindOptions) {
  const { names, onReconnect } = yield* Broker
  const { mayDecide, memory } = options
  const reconnects = yield* Queue.sliding<void>(1)
  const forget = onReconnect(() => Queue.offerUnsafe(reconnects, undefined))
  yield* Effect.addFinalizer(() => Effect.sync(forget))

  const look = Effect.gen(function* () {
    while (!mayDecide()) yield* Effect.sleep(notReadyPauseMs)
    const upTo = yield* suspectedUpTo(memory)
    if (upTo === undefined) return
    const subject = names.subjects.deliveriesOf(memory.index)
    yield* recover(options, scanQueue(memory.stream, subject, 1, upTo))
  }).pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => Effect.logWarning(`a search of ${memory.stream} failed; trying again`, cause)
    )
  )
  const overdue = new OverdueRetries(memory)
  const lookForOverdue = Effect.gen(function* () {
    yield* Effect.sleep(overdueEveryMs)
    if (mayDecide()) yield* recover(options, yield* overdue.read())
  })
  yield* Effect.forkScoped(
    keepGoing(`look for overdue retries in ${memory.stream}`, lookForOverdue, overdueEveryMs)
  )
  const [first, last] = pausesMs
  let pause: number = first
  return yield* Effect.forever(
    Effect.gen(function* () {
      yield* look
      const isReconnected = yield* Effect.race(
        Effect.as(Queue.take(reconnects), true),
        Effect.as(Effect.sleep(pause), false)
      )
      pause = isReconnected ? first : Math.min(2 * pause, last)
    })
  )
}, Effect.scoped)
