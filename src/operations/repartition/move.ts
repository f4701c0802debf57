import type { StoredMsg } from "@nats-io/jetstream"
import { Clock, Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import type { Gate } from "../../broker/gate.ts"
import type { PubAck, PublishError } from "../../broker/publication.ts"
import { publishOnce } from "../../broker/publish-once.ts"
import { readBatch } from "../../broker/scan.ts"
import { readBacklogEnd } from "../../delivery/backlog/backlog-end.ts"
import { type BacklogOwner, replacedBy } from "../../delivery/recovery/backlog-owners.ts"
import type { PartitionMemory, StreamMemory } from "../../delivery/recovery/partition-memory.ts"
import { isCompletedElsewhere } from "../../delivery/recovery/partition-memory.ts"
import {
  copyRecord,
  eraseRecord,
  readEnded,
  readRecord
} from "../../delivery/retry/retry-records.ts"
import type { DeliveryReference } from "../../domain/backlog-message.ts"
import { labelHeaders, originStreams, referencesIn } from "../../domain/backlog-message.ts"
import type { Delivery, DeliveryIdentity, Progress } from "../../domain/delivery.ts"
import { deliveryIn, roundKey } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName, slotOf } from "../../domain/fact.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"
import { findHandled } from "./late.ts"
import {
  type Arrivals,
  type Arrived,
  inPartition,
  namedIn,
  type Relocation,
  relocated,
  relocatedRaw,
  relocatedReferences,
  removeMessage
} from "./relocation.ts"

const limits = { batch: 256, max_bytes: 4 * 1024 * 1024 }
/** Concurrent requests about the messages of one batch. */
const maxConcurrentMoves = 32

/** The result of moving some messages. */
export interface Moved {
  readonly partition: number
  readonly kind: "queue" | "schedules" | "backlog"
  readonly messages: number
  /** The number of these that had ended or were moved before, and were only removed. */
  readonly ended: number
}

/** What all parts of a move share. */
export interface Moving {
  readonly arrivals: Arrivals
  /** Deliveries that were moved as schedules, and fired in their old place nevertheless. */
  readonly fired: Set<string>
  /** Passes while no other process can own the partitions. */
  readonly asOwner: Effect.Effect<void>
  /** Repeats stores while the broker does not accept them. */
  readonly gate: Gate
  /** How long the broker remembers a `Nats-Msg-Id`, ms. */
  readonly moveDedupe: number
  readonly moved: (moved: Moved) => Effect.Effect<void>
}

/** Messages under one subject that belong to another partition. */
interface Misplaced {
  readonly partition: PartitionMemory
  /** Of the partition's queue or backlog. */
  readonly memory: StreamMemory
  /** Of the partition, the oldest first. */
  readonly owners: ReadonlyArray<BacklogOwner>
  readonly kind: "queue" | "backlog"
  readonly subject: string
  readonly tenant: string
  readonly endpoint: string
  readonly to: number
  /** Sequences of messages of a backlog whose entries later ones hold again. */
  readonly replaced: Set<number>
  /** How many deliveries were ever stored in its new backlog, see `BacklogLabel`. */
  stored: number
}

export const firedKey = (delivery: Delivery): string =>
  `${delivery.tenant}.${delivery.endpoint}.${roundKey(delivery)}`

/**
 * Stores a message in its new partition, once, however often it is called.
 *
 * @param delivery undefined if its identity is unknown.
 * @returns the place where it is stored.
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
    publishOnce(broker.publish(subject, body, headers), find)
  )
  reached("moved")
  return found ?? { stream, seq }
})

/** What is known of the deliveries of a batch. */
interface Known {
  readonly arrived: Arrived
  /** Slots of a backlog that need not be delivered from there. */
  readonly handled: ReadonlySet<number>
}

/** What is to be done with one message of a batch. */
interface Considered {
  readonly place: Place
  /** The identity of the delivery, if its headers have it. */
  readonly name: ReturnType<typeof namedIn>
  /** The give-up deadline, ms since the epoch; 0 if it is unreadable. */
  readonly deadline: number
  /** The place where it is stored already. */
  readonly there?: Place
  readonly relocation?: Relocation
  /** Its retry record holds more than its headers can, so it is copied. */
  readonly takesRecord: boolean
  /** The places of its entries; absent for a message with one delivery. */
  readonly entries?: ReadonlyArray<Place>
}

/** Returns the progress that is stored of a delivery, where that is more than its message has. */
const storedProgress = Effect.fnUntraced(function* (
  { unreadRecords }: StreamMemory,
  place: Place
): Effect.fn.Return<Progress | undefined, BrokerError, Broker> {
  if (!unreadRecords.has(slotOf(place))) return undefined
  const record = yield* Effect.catchTag(readRecord(place), "SchemaError", () => Effect.undefined)
  return record?.progress
})

/**
 * Decides what becomes of a message of references: those that have ended, or were moved before, are
 * left out.
 */
const considerReferences = Effect.fnUntraced(function* (
  { memory, to }: Pick<Misplaced, "memory" | "to">,
  { arrived, handled }: Known,
  subject: string,
  of: Place,
  references: ReadonlyArray<DeliveryReference>
): Effect.fn.Return<Considered, BrokerError, Broker> {
  const { names } = yield* Broker
  const { completed, index, unreadRecords } = memory
  const ended = new Set(unreadRecords.has(of.seq) ? (yield* readEnded(of)).ended : [])
  const remaining: Array<DeliveryReference> = []
  const entries: Array<Place> = []
  for (const [position, reference] of references.entries()) {
    const place = { ...of, entry: position + 1 }
    entries.push(place)
    const slot = slotOf(place)
    const hasEnded = ended.has(place.entry) || completed.has(slot, of.at) || handled.has(slot)
    if (hasEnded || arrived.has(roundKey(reference))) continue
    const progress = (yield* storedProgress(memory, place)) ?? reference.progress
    remaining.push({ ...reference, progress, origin: placeName(place) })
  }
  const [first] = remaining
  const common = { place: of, name: first, deadline: 0, takesRecord: false, entries }
  if (first === undefined) return common
  return {
    ...common,
    relocation: relocatedReferences(subject, remaining, of, [index, to], names)
  }
})

/** Decides what becomes of one message. */
const considerMessage = Effect.fnUntraced(function* (
  moving: Moving,
  { kind, memory, partition, replaced, to }: Misplaced,
  known: Known,
  message: StoredMsg
): Effect.fn.Return<Considered, BrokerError, Broker> {
  const { names } = yield* Broker
  const { completed, index, stream, unreadRecords } = memory
  const { arrived, handled } = known
  const { seq } = message
  const place = { stream, seq, at: message.time.getTime() }
  const get = (name: string) => message.header.get(name) || undefined
  const references = referencesIn(message.subject, get, originStreams(names, index))
  if (replaced.has(seq)) {
    const entries = (references ?? []).map((_, position) => ({ ...place, entry: position + 1 }))
    return { place, name: undefined, deadline: 0, takesRecord: false, entries }
  }
  if (references !== undefined)
    return yield* considerReferences({ memory, to }, known, message.subject, place, references)
  const found = deliveryIn(message)
  if (found === undefined) {
    yield* Effect.logWarning("an unreadable message is moved as it is", { stream, seq })
    const name = namedIn(message)
    const there = name === undefined ? undefined : arrived.get(roundKey(name))
    const deadline = Number(message.header.get("petrel-deadline")) || 0
    const takesRecord = unreadRecords.has(seq)
    const common = { place, name, deadline, takesRecord }
    if (there !== undefined) return { ...common, there }
    return { ...common, relocation: relocatedRaw(message, place, [index, to], names) }
  }
  const record = unreadRecords.has(seq)
    ? yield* readRecord(place).pipe(
        Effect.catchTag("SchemaError", () => Effect.succeed("unreadable" as const))
      )
    : undefined
  const own = record === "unreadable" ? undefined : record
  const takesRecord = record === "unreadable" || own?.decision._tag === "Trying"
  const delivery = own === undefined ? found : { ...found, progress: own.progress }
  const there = arrived.get(roundKey(delivery))
  const common = { place, name: delivery, deadline: delivery.deadline }
  if (there !== undefined) return { ...common, there, takesRecord }
  const isCompleted =
    kind === "queue" ? isCompletedElsewhere(partition, delivery) : handled.has(seq)
  if (isCompleted || completed.has(seq, place.at) || moving.fired.has(firedKey(delivery)))
    return { ...common, takesRecord: false }
  const at = yield* waitsUntil(delivery, own)
  const relocation = relocated(
    message,
    delivery,
    place,
    [index, to],
    // A backlog is read in order, and its owner waits for the time.
    kind === "queue" ? at : undefined,
    names
  )
  return { ...common, relocation, takesRecord }
})

/** Copies the retry record of a message to where the message is stored now. */
const takeRecord = Effect.fnUntraced(function* (
  from: Place,
  { seq, stream }: Pick<Place, "seq" | "stream">,
  deadline: number
) {
  const { readMessage } = yield* Broker
  const moved = yield* readMessage("look at what was moved", stream, { seq })
  if (moved !== null) yield* copyRecord(from, { stream, seq, at: moved.time.getTime() }, deadline)
})

/** Numbers what goes to a backlog, by which its owner counts what waits. */
const labelled = (from: Misplaced, relocation: Relocation | undefined): Relocation | undefined => {
  if (relocation === undefined || from.kind === "queue") return relocation
  from.stored += relocation.deliveries
  const label = labelHeaders({ stored: from.stored, owner: undefined, replaces: [] })
  return { ...relocation, headers: [...relocation.headers, ...label] }
}

/** Removes what was moved from its old place: messages, then their retry records. */
const removeMoved = Effect.fnUntraced(function* (
  { kind, memory, subject }: Misplaced,
  all: ReadonlyArray<Considered>,
  last: number
) {
  const { purge } = yield* Broker
  const reached = yield* Failpoint
  const { stream, unreadRecords } = memory
  if (kind === "backlog")
    yield* purge("purge what was moved", stream, { filter: subject, seq: last + 1 })
  else
    yield* Effect.forEach(all, ({ place }) => removeMessage(stream, place.seq), {
      concurrency: maxConcurrentMoves,
      discard: true
    })
  reached("released")
  yield* Effect.forEach(
    all.flatMap(({ entries = [], place }) => [place, ...entries]),
    (place) => (unreadRecords.has(slotOf(place)) ? eraseRecord(place) : Effect.void),
    { concurrency: maxConcurrentMoves, discard: true }
  )
})

/**
 * Moves one batch: stores each message in its new place, then its retry record, then removes both
 * from the old place.
 */
const moveBatch = Effect.fnUntraced(function* (
  moving: Moving,
  from: Misplaced,
  arrived: Arrived,
  messages: ReadonlyArray<StoredMsg>
) {
  const { kind, memory, owners, partition, to } = from
  const { index } = memory
  const handled =
    kind === "queue" ? new Set<number>() : yield* findHandled(partition, owners, from, messages)
  const all = yield* Effect.forEach(
    messages,
    (message) => considerMessage(moving, from, { arrived, handled }, message),
    { concurrency: maxConcurrentMoves }
  )
  yield* moving.asOwner
  const places = yield* Effect.forEach(
    all.map((one) => ({ ...one, relocation: labelled(from, one.relocation) })),
    ({ name, relocation, there }) =>
      relocation === undefined
        ? Effect.succeed(there)
        : storeRelocation(moving, relocation, name, to),
    // They are sent on one connection, so they are stored in this order.
    { concurrency: "unbounded" }
  )
  yield* Effect.forEach(
    all,
    ({ deadline, place, takesRecord }, position) => {
      const to = places[position]
      return takesRecord && to !== undefined ? takeRecord(place, to, deadline) : Effect.void
    },
    { concurrency: maxConcurrentMoves, discard: true }
  )
  const last = all.at(-1)?.place.seq ?? 0
  yield* removeMoved(from, all, last)
  const ended = all.filter(({ relocation }) => relocation === undefined).length
  yield* moving.moved({ partition: index, kind, messages: all.length, ended })
})

/** Moves what lies under one subject to its new partition, in order. */
export const moveSubject = Effect.fnUntraced(function* (
  moving: Moving,
  of: Omit<Misplaced, "memory" | "replaced" | "stored">
) {
  const { kind, partition, subject, to } = of
  const memory = kind === "queue" ? partition : partition.backlog
  const { names } = yield* Broker
  const arrived = yield* moving.arrivals.of(to, of)
  const target = {
    stream: names.backlog(to),
    subject: inPartition(subject, partition.index, to, names)
  }
  const { stored } = kind === "queue" ? { stored: 0 } : yield* readBacklogEnd(target)
  const from: Misplaced = { ...of, memory, replaced: new Set(), stored }
  const read = (next: number) => readBatch(memory.stream, subject, next, limits)
  let messages = yield* read(1)
  while (messages.length > 0) {
    // What replaces the last message of a batch is the first one of the next.
    const following = yield* read((messages.at(-1)?.seq ?? 0) + 1)
    for (const message of [...messages, ...following.slice(0, 1)])
      for (const seq of replacedBy(message, of.owners)) from.replaced.add(seq)
    yield* moveBatch(moving, from, arrived, messages)
    messages = following
  }
})

/** Returns the time of the next attempt, if it is in the future. */
const waitsUntil = (delivery: Delivery, record: RetryRecord | undefined) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const decision = record?.decision
    const at = decision?._tag === "Nak" ? decision.at : delivery.progress.nextAttemptAt
    return at !== undefined && at > now ? at : undefined
  })
