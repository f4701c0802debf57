import type { StoredMsg } from "@nats-io/jetstream"
import { Clock, Effect } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import type { Gate } from "../../broker/gate.ts"
import { publishOnce } from "../../broker/publish-once.ts"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import { readBatch } from "../../broker/scan.ts"
import type { DirectDeliveryRegistry } from "../../delivery/recovery/direct-delivery-registry.ts"
import type { StreamMemory } from "../../delivery/recovery/partition-memory.ts"
import { isCompletedElsewhere } from "../../delivery/recovery/partition-memory.ts"
import { copyRecord, eraseRecord, readRecord } from "../../delivery/retry/retry-records.ts"
import type { Delivery, DeliveryIdentity } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"
import { isRecordOf } from "../../domain/retry-record.ts"
import type { Arrivals } from "./arrivals.ts"
import { deliveryOf, namedIn } from "./arrivals.ts"
import { removeMessage } from "./release.ts"
import type { Relocation } from "./relocation.ts"
import { relocated, relocatedRaw } from "./relocation.ts"

const limits = { batch: 256, max_bytes: 4 * 1024 * 1024 }
/** Requests about messages of one batch that are made at the same time. */
const maxConcurrentMoves = 32

/** Where a message lay, and what came of it. */
export interface Moved {
  readonly partition: number
  readonly kind: "queue" | "schedules" | "backlog"
  readonly messages: number
  /** Of these, those that had ended or were moved before, and were only removed. */
  readonly ended: number
}

/** What all parts of a move share. */
export interface Moving {
  readonly arrivals: Arrivals
  /** Deliveries that were moved as schedules and have fired in their old place all the same. */
  readonly fired: Set<string>
  /** Passes while nobody else can be owner. */
  readonly asOwner: Effect.Effect<void>
  /** Through which everything is stored in its new place. */
  readonly gate: Gate
  /** How long the broker knows a `Nats-Msg-Id`, ms. */
  readonly moveDedupe: number
  readonly moved: (moved: Moved) => Effect.Effect<void>
}

/** Messages under one subject that belong into another partition. */
export interface Misplaced {
  readonly memory: StreamMemory
  /** Of its partition, where it is in the queue. */
  readonly directDeliveries: DirectDeliveryRegistry | undefined
  readonly kind: "queue" | "backlog"
  readonly subject: string
  readonly tenant: string
  readonly endpoint: string
  readonly to: number
}

export const firedKey = (delivery: Delivery): string =>
  `${delivery.tenant}.${delivery.endpoint}.${roundKey(delivery)}`

/**
 * Stores what a message becomes, once however often it is tried.
 *
 * @param delivery undefined where nothing says which it is.
 * @returns where it lies.
 */
export const storeRelocation = Effect.fnUntraced(function* (
  { arrivals, gate, moveDedupe }: Moving,
  { body, headers, subject }: Relocation,
  delivery: DeliveryIdentity | undefined,
  to: number
): Effect.fn.Return<Pick<Place, "seq" | "stream">, PublishError, Broker> {
  const broker = yield* Broker
  const reached = yield* Failpoint
  let found: Place | undefined
  const find =
    delivery === undefined
      ? Effect.succeed(false)
      : Effect.map(arrivals.now(to, delivery), (arrived) => {
          found = arrived.get(roundKey(delivery))
          return found !== undefined
        }).pipe(Effect.provideService(Broker, broker))
  const { seq, stream }: PubAck = yield* gate.within(
    moveDedupe / 2,
    publishOnce(broker.publisher.publish(subject, body, headers), find)
  )
  reached("moved")
  return found ?? { stream, seq }
})

/** What is to be done about one message of a batch. */
interface Considered {
  readonly seq: number
  /** Undefined where it cannot be read. */
  readonly delivery: Delivery | undefined
  /** The same as far as its headers name it. */
  readonly name: ReturnType<typeof namedIn>
  /** When it is given up, ms since the epoch; 0 where that cannot be read. */
  readonly deadline: number
  /** Where it lies already. */
  readonly there?: Place
  readonly relocation?: Relocation
  /** Its record says more than its headers can, and goes with it. */
  readonly takesRecord: boolean
}

/** Moves what lies under one subject to its new partition, in order. */
export const moveSubject = Effect.fnUntraced(function* (moving: Moving, from: Misplaced) {
  const { ask, jsm, names } = yield* Broker
  const reached = yield* Failpoint
  const { kind, memory, directDeliveries, subject, to } = from
  const { completed, index, stream, unreadRecords } = memory
  const arrived = yield* moving.arrivals.of(to, from)

  const consider = Effect.fnUntraced(function* (
    message: StoredMsg
  ): Effect.fn.Return<Considered, BrokerError, Broker> {
    const { seq } = message
    const place = { stream, seq, at: message.time.getTime() }
    const found = deliveryOf(message)
    if (found === undefined) {
      yield* Effect.logWarning("an unreadable message is moved as it is", { stream, seq })
      const name = namedIn(message)
      const there = name === undefined ? undefined : arrived.get(roundKey(name))
      const deadline = Number(message.header.get("petrel-deadline")) || 0
      const takesRecord = unreadRecords.has(seq)
      const common = { seq, delivery: undefined, name, deadline, takesRecord }
      if (there !== undefined) return { ...common, there }
      return { ...common, relocation: relocatedRaw(message, place, [index, to], names) }
    }
    const record = unreadRecords.has(seq)
      ? yield* readRecord(stream, seq).pipe(
          Effect.catchTag("SchemaError", () => Effect.succeed("unreadable" as const))
        )
      : undefined
    const own = record !== undefined && record !== "unreadable" && isRecordOf(record, found)
    const takesRecord = record === "unreadable" || (own && record.decision._tag === "Trying")
    const delivery = own ? { ...found, progress: record.progress } : found
    const there = arrived.get(roundKey(delivery))
    const common = { seq, delivery, name: delivery, deadline: delivery.deadline }
    if (there !== undefined) return { ...common, there, takesRecord }
    const isElsewhere =
      directDeliveries !== undefined && isCompletedElsewhere({ directDeliveries }, delivery)
    if (isElsewhere || completed.has(seq, delivery) || moving.fired.has(firedKey(delivery)))
      return { ...common, takesRecord: false }
    const at = yield* waitsUntil(delivery, own ? record : undefined)
    const relocation = relocated(
      message,
      delivery,
      place,
      [index, to],
      // A backlog is read in order, and by its owner, who waits for the time.
      kind === "queue" ? at : undefined,
      names
    )
    return { ...common, relocation, takesRecord }
  })

  const moveBatch = Effect.fnUntraced(function* (messages: ReadonlyArray<StoredMsg>) {
    const all = yield* Effect.forEach(messages, consider, { concurrency: maxConcurrentMoves })
    yield* moving.asOwner
    const places = yield* Effect.forEach(
      all,
      ({ name, relocation, there }) =>
        relocation === undefined
          ? Effect.succeed(there)
          : storeRelocation(moving, relocation, name, to),
      // They are sent in this order, on one connection: so they are stored in it.
      { concurrency: "unbounded" }
    )
    yield* Effect.forEach(
      all,
      ({ deadline, seq, takesRecord }, index) => {
        const place = places[index]
        return takesRecord && place !== undefined
          ? copyRecord({ stream, seq }, place, deadline)
          : Effect.void
      },
      { concurrency: maxConcurrentMoves, discard: true }
    )
    const last = all.at(-1)?.seq ?? 0
    if (kind === "backlog")
      yield* ask("purge what lies elsewhere now", () =>
        jsm.streams.purge(stream, { filter: subject, seq: last + 1 })
      )
    else
      yield* Effect.forEach(all, ({ seq }) => removeMessage(stream, seq), {
        concurrency: maxConcurrentMoves,
        discard: true
      })
    reached("released")
    yield* Effect.forEach(
      all,
      ({ delivery, seq }) =>
        delivery !== undefined && unreadRecords.has(seq)
          ? eraseRecord(stream, seq, delivery)
          : Effect.void,
      { concurrency: maxConcurrentMoves, discard: true }
    )
    const ended = all.filter(({ relocation }) => relocation === undefined).length
    yield* moving.moved({ partition: index, kind, messages: all.length, ended })
    return last
  })

  let next = 1
  while (true) {
    const messages = yield* readBatch(stream, subject, next, limits)
    if (messages.length === 0) return
    next = (yield* moveBatch(messages)) + 1
  }
})

/** When a delivery is attempted next, where that is later than now. */
const waitsUntil = (delivery: Delivery, record: RetryRecord | undefined) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const decision = record?.decision
    const at = decision?._tag === "Nak" ? decision.at : delivery.progress.nextAttemptAt
    return at !== undefined && at > now ? at : undefined
  })
