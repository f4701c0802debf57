import type { StoredMsg } from "@nats-io/jetstream"
import { Clock, Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import { scanQueue } from "../../broker/scan.ts"
import { isConflict } from "../../broker/values.ts"
import type { StreamMemory } from "../../delivery/recovery/partition-memory.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { deliveryHeaders, deliveryIn, deliverySubject, roundKey } from "../../domain/delivery.ts"
import { partitionOf } from "../../domain/names.ts"
import type { Moving } from "./move.ts"
import { firedKey, storeRelocation } from "./move.ts"
import { namedIn, relocated, relocatedRaw, removeMessage } from "./relocation.ts"

/** Schedules that are moved at the same time. */
const maxConcurrentMoves = 32

/** Header with the time of a postponed schedule, ms since the epoch. */
const dueHeader = "petrel-due"
const never = "@at 2200-01-01T00:00:00Z"

/** Returns the partition of the endpoint in a subject. */
export const home = (target: string, partitions: number): number => {
  const [tenant = "", endpoint = ""] = target.split(".").slice(-2)
  return partitionOf(tenant, endpoint, partitions)
}

/**
 * Keeps a schedule from firing while it is moved.
 *
 * @returns its new sequence, or undefined if it has fired.
 */
const postpone = Effect.fnUntraced(function* (
  schedule: StoredMsg,
  delivery: Delivery,
  due: number
) {
  const { publish } = yield* Broker
  const reached = yield* Failpoint
  const { seq, subject } = schedule
  const postponed = yield* publish(subject, schedule.data, [
    ...deliveryHeaders(delivery, `${subject}.${seq}.postponed`),
    [dueHeader, String(due)],
    ["Nats-Schedule", never],
    ["Nats-Schedule-Target", deliverySubject(schedule)],
    ["Nats-Expected-Last-Subject-Sequence", String(seq)]
  ]).pipe(
    Effect.map((ack) => ack.seq),
    Effect.catchIf(isConflict, () => Effect.undefined)
  )
  reached("postponed")
  return postponed
})

/** Returns when a message was stored, ms since the epoch; 0 if it is gone. */
const storedAtSeq = Effect.fnUntraced(function* (stream: string, seq: number) {
  const { readMessage } = yield* Broker
  const message = yield* readMessage("look at a schedule", stream, { seq })
  return message?.time.getTime() ?? 0
})

/** Returns the time of a schedule, ms since the epoch; undefined if it is unreadable. */
const dueOf = ({ header }: StoredMsg): number | undefined => {
  const stored = header.get(dueHeader)
  const due = stored === "" ? Date.parse(header.get("Nats-Schedule").slice(4)) : Number(stored)
  return Number.isFinite(due) ? due : undefined
}

/**
 * Moves the schedules that belong to other partitions. Each is first replaced, by compare-and-set,
 * by one that never fires. A schedule that has fired is in the queue.
 *
 * @returns the number of schedules found. Call again until it is 0.
 */
export const moveSchedules = Effect.fnUntraced(function* (
  moving: Moving,
  { index, stream }: StreamMemory,
  partitions: number
) {
  const { names, streamInfo } = yield* Broker
  const reached = yield* Failpoint
  const { state } = yield* streamInfo(`look at ${stream}`, stream)
  let found = 0

  const moveRaw = Effect.fnUntraced(function* (message: StoredMsg, to: number) {
    const { seq } = message
    const place = { stream, seq, at: message.time.getTime() }
    yield* Effect.logWarning("an unreadable schedule is moved as it is", { stream, seq })
    const name = namedIn(message)
    const arrived = name === undefined ? undefined : yield* moving.arrivals.of(to, name)
    if (name === undefined || arrived?.has(roundKey(name)) !== true) {
      const relocation = relocatedRaw(message, place, [index, to], names)
      yield* storeRelocation(moving, relocation, name, to)
    }
    yield* removeMessage(stream, seq)
  })

  const move = Effect.fnUntraced(function* (message: StoredMsg) {
    const to = home(deliverySubject(message), partitions)
    if (to === index) return
    found++
    yield* moving.asOwner
    const delivery = deliveryIn(message)
    const due = dueOf(message)
    const counted = { partition: index, kind: "schedules", messages: 1 } as const
    if (delivery === undefined || due === undefined) {
      yield* moveRaw(message, to)
      return yield* moving.moved({ ...counted, ended: 0 })
    }
    const isPostponed = message.header.get(dueHeader) !== ""
    const seq = isPostponed ? message.seq : yield* postpone(message, delivery, due)
    if (seq === undefined) return
    const there = (yield* moving.arrivals.of(to, delivery)).get(roundKey(delivery))
    if (there === undefined) {
      const now = yield* Clock.currentTimeMillis
      const relocation = relocated(
        message,
        delivery,
        { stream, seq, at: yield* storedAtSeq(stream, seq) },
        [index, to],
        Math.max(due, now),
        names
      )
      // The process may have been frozen since the last check.
      yield* moving.asOwner
      yield* storeRelocation(moving, relocation, delivery, to)
    }
    // If it is gone, it fired while it was postponed.
    if (!(yield* removeMessage(stream, seq))) moving.fired.add(firedKey(delivery))
    reached("released")
    yield* moving.moved({ ...counted, ended: there === undefined ? 0 : 1 })
  })

  yield* scanQueue(stream, names.subjects.schedulesOf(index)).pipe(
    // Postponed schedules appear again at the end of the stream.
    Stream.takeWhile(({ seq }) => seq <= state.last_seq),
    Stream.mapEffect(move, { concurrency: maxConcurrentMoves, unordered: true }),
    Stream.runDrain
  )
  return found
})
