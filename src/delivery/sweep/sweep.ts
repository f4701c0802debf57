import type { StoredMsg } from "@nats-io/jetstream"
import type { Schema, Semaphore } from "effect"
import { Cause, Clock, Effect, Queue, Schedule, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { removeIf } from "../../broker/removal.ts"
import { scanQueue } from "../../broker/scan.ts"
import { isConflict } from "../../broker/values.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { Delivery } from "../../domain/delivery.ts"
import {
  deliveryHeaders,
  deliveryIn,
  deliverySubject,
  isSchedule,
  scheduleHeaders
} from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { partitionOf } from "../../domain/names.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import { Directory } from "../../endpoints/directory.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"

/** Dead-letters one waiting delivery. Calls `nak` for one that is in flight. */
export type EndWaiting = (
  handle: AckHandle,
  reason: DeadReason
) => Effect.Effect<void, BrokerError | Schema.SchemaError, Broker>

/**
 * Returns the queue subjects of endpoints with deliveries that were left for later: in flight, refused
 * by DEAD, or with an endpoint whose configuration is unreadable.
 */
type Swept = Effect.Effect<
  ReadonlySet<string>,
  BrokerError | Schema.SchemaError,
  Broker | Directory
>

/** Ends the messages that wait for a disabled or removed endpoint. */
const sweep = (
  memory: PartitionMemory,
  messages: Stream.Stream<StoredMsg, BrokerError, Broker>,
  end: EndWaiting
): Swept =>
  Effect.gen(function* () {
    const directory = yield* Directory
    const left = new Set<string>()
    const consider = Effect.fnUntraced(function* (message: StoredMsg) {
      const handle = yield* handleOf(memory, message, () => left.add(deliverySubject(message)))
      if (handle === undefined || awaitsSpace(message, handle.delivery)) return
      const standing = yield* directory
        .standing(handle.delivery)
        .pipe(Effect.catchTag("EndpointUnreadable", () => Effect.undefined))
      if (standing === undefined) return handle.nak()
      if (standing._tag === "Live") return
      if (isSchedule(message)) {
        if (!(yield* fireNow(message, handle.delivery))) handle.nak()
        return
      }
      yield* end(handle, standing._tag === "Removed" ? "endpoint-removed" : "endpoint-disabled")
    })
    yield* messages.pipe(
      Stream.mapEffect(consider, { concurrency: 16, unordered: true }),
      Stream.runDrain
    )
    return left
  })

/** True for one whose delivery has ended and waits for space in DEAD: nothing else wakes it. */
const awaitsSpace = (message: StoredMsg, { progress }: Delivery): boolean =>
  isSchedule(message) && progress.ends !== undefined

/**
 * Replaces a schedule by one that fires now, unless it has fired. Its delivery is then redelivered
 * and ends like any other. A schedule may fire at any moment, so handling it in place could happen
 * twice.
 *
 * @returns false where the broker did not accept it.
 */
export const fireNow = Effect.fnUntraced(function* (schedule: StoredMsg, delivery: Delivery) {
  const { publish } = yield* Broker
  const now = yield* Clock.currentTimeMillis
  return yield* publish(schedule.subject, schedule.data, [
    ...deliveryHeaders(delivery, `${schedule.subject}.${schedule.seq}.now`),
    ...scheduleHeaders(now, deliverySubject(schedule)),
    ["Nats-Expected-Last-Subject-Sequence", String(schedule.seq)]
  ]).pipe(
    Effect.as(true),
    Effect.catch((error) => Effect.succeed(isConflict(error)))
  )
})

/**
 * Ends all that waits for disabled or removed endpoints: in the queue, by NAK, and as schedules. A
 * delivery in an attempt ends by its own outcome, or is left for later. The schedules are read once,
 * however many endpoints there are: the broker cannot tell those of one endpoint from the others.
 *
 * @param subjects queue subjects of the endpoints.
 */
const sweepEndpoints = (
  memory: PartitionMemory,
  subjects: ReadonlySet<string>,
  end: EndWaiting
): Swept =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const queued = Stream.fromIterable(subjects).pipe(
      Stream.flatMap((subject) => scanQueue(memory.stream, subject))
    )
    const scheduled = scanQueue(memory.stream, names.subjects.schedulesOf(memory.index)).pipe(
      Stream.filter((message) => subjects.has(deliverySubject(message)))
    )
    return yield* sweep(memory, Stream.concat(queued, scheduled), end)
  })

/** Does the same for all schedules of a partition, whichever their endpoint. */
export const sweepSchedules = (memory: PartitionMemory, end: EndWaiting): Swept =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const subject = names.subjects.schedulesOf(memory.index)
    return yield* sweep(memory, scanQueue(memory.stream, subject), end)
  })

/**
 * Returns a handle of a message that was read from the stream and not delivered by the consumer;
 * undefined where it is unreadable.
 *
 * @param later called instead of a NAK: the message stays where it is.
 */
export const handleOf = Effect.fnUntraced(function* (
  memory: Pick<PartitionMemory, "stream">,
  message: StoredMsg,
  later: () => void
) {
  const { seq } = message
  const at = message.time.getTime()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  // The message was not delivered by the consumer, so it is removed from the stream instead of
  // acknowledged. The removal is retried until it succeeds, for the delivery is settled.
  const remove = removeIf(
    "remove a delivery that has ended",
    memory.stream,
    seq,
    ({ time }) => time.getTime() === at
  ).pipe(
    Effect.retry(Schedule.spaced("1 second")),
    Effect.provideContext(yield* Effect.context<Broker>())
  )
  const delivery = deliveryIn(message)
  if (delivery === undefined) return undefined
  return {
    place: { stream: memory.stream, seq, at },
    delivery,
    body: message.data,
    deliveryCount: 1,
    ack: (erase) => Effect.asVoid(Effect.sync(() => run(Effect.andThen(remove, erase)))),
    nak: later
  } satisfies AckHandle
})

/**
 * Lists the queue subjects of endpoints that have messages in a partition's stream but are
 * disabled or removed, or whose oldest message was meant for an earlier endpoint of the same name.
 */
export const strandedEndpoints = Effect.fnUntraced(function* (memory: PartitionMemory) {
  const { names, readMessage, streamInfo } = yield* Broker
  const directory = yield* Directory
  const { state } = yield* streamInfo(`list what waits in ${memory.stream}`, memory.stream, {
    subjects_filter: names.subjects.deliveriesOf(memory.index)
  })
  const isStranded = Effect.fnUntraced(function* (subject: string) {
    const [tenant = "", endpoint = ""] = subject.split(".").slice(-2)
    const live = directory.find(endpointKey(tenant, endpoint))
    if (live === undefined || live.config.disabled !== undefined) return subject
    if (live.config.createdAt < Date.parse(state.first_ts) - maxClockSkewMs) return undefined
    const oldest = yield* readMessage(`read the oldest of ${subject}`, memory.stream, {
      seq: 1,
      next_by_subj: subject
    })
    const meant = oldest?.header.get("petrel-generation")
    return meant === undefined || meant === live.config.generation ? undefined : subject
  })
  const found = yield* Effect.forEach(Object.keys(state.subjects ?? {}), isStranded, {
    concurrency: 16
  })
  return found.filter((subject) => subject !== undefined)
})

/**
 * Pause before a sweep is repeated that left deliveries, ms: doubles from the first to the second.
 */
const pauses = [1_000, 60_000] as const

interface Task {
  /** Queue subjects of endpoints to sweep; undefined for all stranded endpoints of the partition. */
  readonly subjects: ReadonlySet<string> | undefined
  readonly pause: number
}

/**
 * Ends what waits in a partition for disabled or removed endpoints: once at the start, and again
 * whenever an endpoint becomes unavailable. A sweep is repeated until nothing is left, for an
 * attempt that was in flight may fail and then wait like the others. Endpoints that became unavailable
 * during a sweep share the next one.
 *
 * @param partitions number of partitions.
 * @param turn lets one partition of a worker sweep at a time.
 */
export const sweepUnavailable = Effect.fnUntraced(function* (
  { endWaiting, memory }: { readonly endWaiting: EndWaiting; readonly memory: PartitionMemory },
  partitions: number,
  turn: Semaphore.Semaphore
) {
  const directory = yield* Directory
  const { names } = yield* Broker
  const queue = yield* Queue.unbounded<Task>()
  const stop = directory.onUnavailable((tenant, endpoint) => {
    if (partitionOf(tenant, endpoint, partitions) !== memory.index) return
    const subjects = new Set([names.subjects.delivery(memory.index, tenant, endpoint)])
    Queue.offerUnsafe(queue, { subjects, pause: pauses[0] })
  })
  yield* Effect.addFinalizer(() => Effect.sync(stop))
  Queue.offerUnsafe(queue, { subjects: undefined, pause: pauses[0] })

  const sweepAll = Effect.fnUntraced(function* (tasks: ReadonlyArray<Task>) {
    const subjects = new Set(tasks.flatMap((task) => [...(task.subjects ?? [])]))
    const left = new Set<string>()
    if (tasks.some((task) => task.subjects === undefined)) {
      for (const subject of yield* sweepSchedules(memory, endWaiting)) left.add(subject)
      for (const subject of yield* strandedEndpoints(memory)) subjects.add(subject)
    }
    if (subjects.size > 0)
      for (const subject of yield* sweepEndpoints(memory, subjects, endWaiting)) left.add(subject)
    return left
  })
  /** Returns what is to be done again. */
  const leftOf = (tasks: ReadonlyArray<Task>) =>
    sweepAll(tasks).pipe(
      Effect.map((subjects) => (subjects.size === 0 ? [] : [{ subjects }])),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          Effect.as(Effect.logWarning("a sweep of endpoints failed; trying again", cause), tasks)
      )
    )

  return yield* Effect.forever(
    Effect.gen(function* () {
      const tasks = yield* Queue.takeAll(queue)
      const left = yield* turn.withPermit(leftOf(tasks))
      if (left.length === 0) return
      const before = Math.min(...tasks.map(({ pause }) => pause))
      const pause = Math.min(before * 2, pauses[1])
      yield* Effect.sync(() => {
        for (const { subjects } of left) Queue.offerUnsafe(queue, { subjects, pause })
      }).pipe(Effect.delay(before), Effect.forkScoped)
    })
  )
}, Effect.scoped)
