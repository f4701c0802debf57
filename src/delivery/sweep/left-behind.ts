import type { StoredMsg } from "@nats-io/jetstream"
import { Cause, Clock, Effect, Queue, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readBatch, scanQueue } from "../../broker/scan.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import type { PlacedDelivery } from "../../domain/placed-delivery.ts"
import type { Facts } from "../../history/facts.ts"
import type { LocateQuery, Sighting } from "../../history/locate.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { Decisions } from "../execution/decisions.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import { isCompletedElsewhere } from "../recovery/partition-memory.ts"
import { attemptsIn } from "../retry/applied-steps.ts"
import { handleOf } from "./sweep.ts"

/*
 * A broker that is killed may keep that its consumer has passed a message, and forget that the
 * message was removed; or it loses the end of a queue, and stores new messages at sequences that
 * the consumer has passed. Such a message is left behind: it is in the queue, and the consumer
 * neither redelivers it nor waits for its acknowledgement.
 */

/**
 * Pause before a search is repeated that left messages, ms: doubles from the first to the second.
 * The second is the interval of the check for messages that were left behind, too.
 */
const pausesMs = [10_000, 600_000] as const
/** How often messages are counted before they are searched: others come and go between two counts. */
const maxCounts = 5
/** Pause between two counts, ms. */
const countPauseMs = 1_000
/** Pause before it is asked again whether anything may be decided, ms. */
const notReadyPauseMs = 250
/** Messages that are held, with their bodies, while it is searched where they may have moved to. */
const maxLookedFor = 64
/** Records that are read, and messages that are released or moved, at the same time. */
const maxConcurrent = 16

export interface LeftBehindOptions {
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

/** A message that may have been left behind. */
interface Candidate {
  readonly handle: AckHandle
  /** Attempts of the delivery that are known at its place. */
  readonly attempts: number
  /** True where it is known to have left its place: it has ended, or was moved. */
  readonly isSettled: boolean
}

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
 * there, or was attempted more often elsewhere. Anything less proves nothing: the place where it was
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
  const { header, place } = sighting
  if (placeName(place) === here) return false
  return header("petrel-origin") === here || attemptsIn(header("petrel-progress")) > at.attempts
}

/** Returns those of some candidates that have left their place. */
const findSettled = Effect.fnUntraced(function* (
  partition: number,
  candidates: ReadonlyArray<Candidate>
) {
  const settled = new Set(candidates.filter(({ isSettled }) => isSettled))
  const open = candidates.filter((candidate) => !settled.has(candidate))
  if (open.length === 0) return settled
  const keyOf = ({ endpoint, tenant }: Addressee, round: string) =>
    `${endpointKey(tenant, endpoint)}.${round}`
  const byRound = Map.groupBy(open, ({ handle: { delivery } }) =>
    keyOf(delivery, roundKey(delivery))
  )
  const endpoints = new Map(
    open.map(({ handle: { delivery } }) => {
      const { endpoint, tenant } = delivery
      return [endpointKey(tenant, endpoint), { tenant, endpoint }]
    })
  )
  const fromTime = Math.min(...open.map(({ handle }) => handle.place.at)) - maxClockSkewMs
  const query: LocateQuery = {
    within: { partition },
    endpoints: [...endpoints.values()],
    places: ["queue", "schedules", "backlog", "history"],
    backlogSince: fromTime,
    historySince: { fromTime }
  }
  yield* locate(query, (sighting) => {
    for (const candidate of byRound.get(keyOf(sighting, roundKeyOf(sighting))) ?? [])
      if (hasLeft({ place: candidate.handle.place, ...candidate }, sighting)) settled.add(candidate)
    return settled.size === candidates.length
  })
  return settled
})

/** Returns what is to be done about a message; undefined where it is to be left. */
const candidateIn = Effect.fnUntraced(function* (
  { isInFlight, memory, recall }: LeftBehindOptions,
  message: StoredMsg,
  left: () => void
) {
  const handle = yield* handleOf(memory, message, left)
  if (handle === undefined) return undefined
  if (isInFlight(handle)) {
    left()
    return undefined
  }
  const { delivery, place } = handle
  const hasEnded = memory.completed.has(place.seq, place.at)
  const stored = hasEnded ? ("released" as const) : yield* recall(handle)
  if (stored === "released") return { handle, attempts: 0, isSettled: true } satisfies Candidate
  if (stored !== undefined) {
    const { decision, progress } = stored.record
    const isWaiting = decision._tag === "Nak" && decision.at > (yield* Clock.currentTimeMillis)
    // The consumer may hold it until then.
    if (isWaiting) left()
    return isWaiting
      ? undefined
      : ({ handle, attempts: progress.attempts, isSettled: false } satisfies Candidate)
  }
  const isSettled = isCompletedElsewhere(memory, delivery)
  return { handle, attempts: delivery.progress.attempts, isSettled } satisfies Candidate
})

/** Searches a queue up to a sequence. Returns true where messages may have been left. */
const search = Effect.fnUntraced(function* (options: LeftBehindOptions, upTo: number) {
  const { adopt, memory } = options
  const { names } = yield* Broker
  let isAnyLeft = false
  const left = () => {
    isAnyLeft = true
  }
  const subject = names.subjects.deliveriesOf(memory.index)
  yield* scanQueue(memory.stream, subject, 1, upTo).pipe(
    Stream.mapEffect((message) => candidateIn(options, message, left), {
      concurrency: maxConcurrent
    }),
    Stream.filter((candidate) => candidate !== undefined),
    Stream.grouped(maxLookedFor),
    Stream.runForEach(
      Effect.fnUntraced(function* (candidates) {
        const settled = yield* findSettled(memory.index, candidates)
        yield* Effect.forEach(
          candidates,
          (candidate) => adopt(candidate.handle, settled.has(candidate)),
          { concurrency: maxConcurrent, discard: true }
        )
        yield* Effect.logInfo("messages were left behind in a queue", {
          stream: memory.stream,
          ended: settled.size,
          moved: candidates.length - settled.size
        })
      })
    )
  )
  return isAnyLeft
})

/**
 * Finds messages of a partition's queue that were left behind, and releases those whose delivery
 * has ended or was moved. The others go to their endpoints' backlogs. It looks for them at the
 * start, after each reconnect, and at intervals, and searches only where the consumer does not
 * account for all messages of the queue. Runs until it is interrupted.
 */
export const recoverLeftBehind = Effect.fnUntraced(function* (options: LeftBehindOptions) {
  const { onReconnect } = yield* Broker
  const { mayDecide, memory } = options
  const reconnects = yield* Queue.sliding<void>(1)
  const forget = onReconnect(() => Queue.offerUnsafe(reconnects, undefined))
  yield* Effect.addFinalizer(() => Effect.sync(forget))

  const look = Effect.gen(function* () {
    while (!mayDecide()) yield* Effect.sleep(notReadyPauseMs)
    const upTo = yield* suspectedUpTo(memory)
    return upTo !== undefined && (yield* search(options, upTo))
  }).pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        Effect.as(
          Effect.logWarning(`a search of ${memory.stream} failed; trying again`, cause),
          true
        )
    )
  )
  const [first, last] = pausesMs
  let pause: number = first
  return yield* Effect.forever(
    Effect.gen(function* () {
      const isAnyLeft = yield* look
      pause = isAnyLeft ? Math.min(2 * pause, last) : last
      const isReconnected = yield* Effect.race(
        Effect.as(Queue.take(reconnects), true),
        Effect.as(Effect.sleep(pause), false)
      )
      if (isReconnected || !isAnyLeft) pause = first
    })
  )
}, Effect.scoped)
