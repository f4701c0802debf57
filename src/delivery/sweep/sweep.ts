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
 * Returns how many deliveries were left for later: in flight, refused by DEAD, or with an endpoint
 * whose configuration is unreadable.
 */
type Swept = Effect.Effect<number, BrokerError | Schema.SchemaError, Broker | Directory>

/** Ends the messages that wait for a disabled or removed endpoint. */
const sweep = (
  memory: PartitionMemory,
  messages: Stream.Stream<StoredMsg, BrokerError, Broker>,
  end: EndWaiting
): Swept =>
  Effect.gen(function* () {
    const directory = yield* Directory
    let left = 0
    const consider = Effect.fnUntraced(function* (message: StoredMsg) {
      const handle = yield* handleOf(memory, message, () => left++)
      if (handle === undefined || awaitsSpace(message, handle.delivery)) return
      const standing = yield* directory
        .standing(handle.delivery)
        .pipe(Effect.catchTag("EndpointUnreadable", () => Effect.undefined))
      if (standing === undefined) return handle.nak()
      if (standing._tag === "Live") return
      if (isSchedule(message)) {
        if (!(yield* fireNow(message, handle.delivery))) left++
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
 * Ends all that waits for a disabled or removed endpoint: in the queue, by NAK, and as schedules. A
 * delivery in an attempt ends by its own outcome, or is left for later.
 */
export const sweepEndpoint = (
  memory: PartitionMemory,
  tenant: string,
  endpoint: string,
  end: EndWaiting
): Swept =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const subject = names.subjects.delivery(memory.index, tenant, endpoint)
    const scheduled = scanQueue(memory.stream, names.subjects.schedulesOf(memory.index)).pipe(
      Stream.filter((message) => deliverySubject(message) === subject)
    )
    return yield* sweep(memory, Stream.concat(scanQueue(memory.stream, subject), scheduled), end)
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
 * Lists, as `[tenant, endpoint]`, endpoints that have messages in a partition's stream but are
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
    if (live === undefined || live.config.disabled !== undefined) return [tenant, endpoint] as const
    if (live.config.createdAt < Date.parse(state.first_ts) - maxClockSkewMs) return undefined
    const oldest = yield* readMessage(`read the oldest of ${subject}`, memory.stream, {
      seq: 1,
      next_by_subj: subject
    })
    const meant = oldest?.header.get("petrel-generation")
    return meant === undefined || meant === live.config.generation
      ? undefined
      : ([tenant, endpoint] as const)
  })
  const found = yield* Effect.forEach(Object.keys(state.subjects ?? {}), isStranded, {
    concurrency: 16
  })
  return found.filter((pair) => pair !== undefined)
})

/**
 * Pause before a sweep is repeated that left deliveries, ms: doubles from the first to the second.
 */
const pauses = [1_000, 60_000] as const

interface Task {
  /** Endpoint to sweep; undefined for all stranded endpoints of the partition. */
  readonly endpoint?: readonly [tenant: string, endpoint: string]
  readonly pause: number
}

/**
 * Ends what waits in a partition for disabled or removed endpoints: once at the start, and again
 * whenever an endpoint becomes unavailable. A sweep is repeated until nothing is left, for an
 * attempt that was in flight may fail and then wait like the others.
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
  const tasks = yield* Queue.unbounded<Task>()
  const stop = directory.onUnavailable((tenant, endpoint) => {
    if (partitionOf(tenant, endpoint, partitions) === memory.index)
      Queue.offerUnsafe(tasks, { endpoint: [tenant, endpoint], pause: pauses[0] })
  })
  yield* Effect.addFinalizer(() => Effect.sync(stop))
  Queue.offerUnsafe(tasks, { pause: pauses[0] })

  const sweep = ({ endpoint }: Task) =>
    Effect.gen(function* () {
      if (endpoint !== undefined) return yield* sweepEndpoint(memory, ...endpoint, endWaiting)
      let left = yield* sweepSchedules(memory, endWaiting)
      for (const stranded of yield* strandedEndpoints(memory))
        left += yield* sweepEndpoint(memory, ...stranded, endWaiting)
      return left
    }).pipe(
      Effect.map((left) => left === 0),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          Effect.as(Effect.logWarning("a sweep of endpoints failed; trying again", cause), false)
      )
    )

  return yield* Effect.forever(
    Effect.gen(function* () {
      const task = yield* Queue.take(tasks)
      if (yield* turn.withPermit(sweep(task))) return
      const again = { ...task, pause: Math.min(task.pause * 2, pauses[1]) }
      yield* Effect.sync(() => Queue.offerUnsafe(tasks, again)).pipe(
        Effect.delay(task.pause),
        Effect.forkScoped
      )
    })
  )
}, Effect.scoped)
