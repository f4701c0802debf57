import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isNoSuchMessage } from "../../broker/broker-error.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { endOf, scanQueue } from "../../broker/scan.ts"
import { readValue } from "../../broker/values.ts"
import type { OriginStreams } from "../../domain/backlog-message.ts"
import { originStreams, referencesIn } from "../../domain/backlog-message.ts"
import { identifyDelivery, parseDelivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import { retryRecordKey } from "../../domain/retry-record.ts"
import type { About, RoundAt } from "../fact-record.ts"
import { roundName } from "../fact-record.ts"

/** A delivery that waits in a stream. */
export interface PendingMessage extends About {
  /** Deadline, ms since the epoch; undefined if this version cannot read the message. */
  readonly deadline: number | undefined
  /** Set if the delivery has ended for this reason and waits for space in DEAD. */
  readonly ends?: DeadReason | undefined
  readonly stream: string
  readonly seq: number
  /** Where it is an entry of a message of references; absent for a message with one delivery. */
  readonly reference?: Reference
}

/** An entry of a message that stays until all of its entries have left it. */
interface Reference {
  readonly place: Place
  /** Requests made in its round when it was stored. */
  readonly attempts: number
}

/** A message that waits in a stream and that this version cannot read. */
export interface UnreadableMessage {
  readonly stream: string
  readonly seq: number
  readonly tenant: string
  readonly endpoint: string
  /** Its delivery; undefined if its headers do not identify it. */
  readonly about: About | undefined
}

type See = (waiter: PendingMessage) => void
type SeeUnreadable = (message: UnreadableMessage) => void
type Header = (name: string) => string | undefined

/** A message that was read. */
interface WaitingMessage {
  readonly stream: string
  readonly seq: number
  readonly subject: string
  readonly header: Header
  /** When it was stored, ms since the epoch. */
  readonly at: number
}

const waitingMessage = (
  stream: string,
  { header, seq, subject, time }: StoredMsg
): WaitingMessage => ({
  stream,
  seq,
  subject,
  at: time.getTime(),
  header: (name) => header.get(name)
})

const show = (
  see: See,
  { at, header, seq, stream, subject }: WaitingMessage,
  streams: OriginStreams,
  seeUnreadable?: SeeUnreadable
) => {
  const target = header("Nats-Schedule-Target") || subject
  const get = (name: string) => header(name) || undefined
  const references = referencesIn(subject, get, streams)
  if (references !== undefined) {
    for (const [index, { progress, ...about }] of references.entries()) {
      const { attempts, ends } = progress
      const place = { stream, seq, at, entry: index + 1 }
      see({ ...about, ends, stream, seq, reference: { place, attempts } })
    }
    return
  }
  const delivery = parseDelivery(target, get)
  if (delivery !== undefined) {
    const { ends } = delivery.progress
    return see({ ...delivery, ends, stream, seq })
  }
  const about = identifyDelivery(target, get)
  if (about !== undefined) see({ ...about, deadline: undefined, stream, seq })
  const [tenant = "", endpoint = ""] = target.split(".").slice(-2)
  seeUnreadable?.({ stream, seq, tenant, endpoint, about })
}

/**
 * Scans everything that waits in a partition: its queue with the schedules, its backlog, and then
 * what came into either since. A delivery that moves is stored at the end of the other stream, so it
 * is seen in one of the two, unless it moves back and forth between the scans.
 */
const scanPartition = Effect.fnUntraced(function* (
  partition: number,
  see: See,
  seeUnreadable: SeeUnreadable
) {
  const { names } = yield* Broker
  const [queue, backlog] = [names.deliveries(partition), names.backlog(partition)]
  const streams = originStreams(names, partition)
  const lookAtQueue = (from: number) =>
    Stream.runForEach(scanQueue(queue, ">", from), (message) =>
      Effect.sync(() => show(see, waitingMessage(queue, message), streams, seeUnreadable))
    )
  const lookAtBacklog = (from: number, to: number) =>
    readThrough(
      { stream: backlog, subjects: [">"], from, to, headersOnly: true },
      ({ message: { headers, subject }, nanoseconds, seq }) => {
        const at = Number(BigInt(nanoseconds) / 1_000_000n)
        const header = (name: string) => headers?.get(name)
        show(see, { stream: backlog, seq, subject, at, header }, streams, seeUnreadable)
      }
    )
  const firstQueued = yield* endOf(queue)
  yield* lookAtQueue(1)
  const firstMoved = yield* endOf(backlog)
  yield* lookAtBacklog(1, firstMoved)
  yield* lookAtQueue(firstQueued + 1)
  yield* lookAtBacklog(firstMoved + 1, yield* endOf(backlog))
})

/** Scans everything that waits. */
export const scanAll = (partitions: number, see: See, seeUnreadable: SeeUnreadable) =>
  Effect.forEach(
    Array.from({ length: partitions }, (_, index) => index),
    (partition) => scanPartition(partition, see, seeUnreadable),
    { concurrency: 4, discard: true }
  )

/**
 * True where a delivery was attempted since it was stored as an entry of references. It has left the
 * entry, for the queue or for a later entry, unless {@link isStillDecided}; the message stays until
 * all of its entries have been left.
 *
 * @param attempts that the history has of its round.
 */
export const hasLeftEntry = ({ reference }: PendingMessage, attempts: number): boolean =>
  reference !== undefined && attempts > reference.attempts

/**
 * Whether the bucket's leader has a decision about an entry that was not carried out: its delivery
 * waits there for an owner.
 */
export const isStillDecided = Effect.fnUntraced(function* ({ reference }: PendingMessage) {
  const { names } = yield* Broker
  if (reference === undefined) return false
  const key = retryRecordKey(reference.place)
  return (yield* readValue(names.buckets.retries, key)) !== undefined
})

/** Concurrent reads from a stream's leader. */
const maxConcurrentReads = 16

/** Whether the leader of a stream has a message. */
export const isStillThere = Effect.fnUntraced(function* ({
  seq,
  stream
}: Pick<PendingMessage, "seq" | "stream">) {
  const { readMessage } = yield* Broker
  return yield* readMessage(`look for a delivery in ${stream}`, stream, { seq }).pipe(
    Effect.map((message) => message !== null),
    Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false))
  )
})
/** Partitions that are scanned concurrently. */
const partitionsAtOnce = 4

/**
 * Shows the wanted deliveries under a subject that the stream's leader has. A scan may be served by a
 * replica, so each message that it shows is then read from the leader, one by one.
 */
const lookIn = Effect.fnUntraced(function* (
  stream: string,
  subject: string,
  wanted: ReadonlySet<string>,
  streams: OriginStreams,
  see: See
) {
  const seen: Array<PendingMessage> = []
  const note = (waiter: PendingMessage) => {
    if (wanted.has(roundName(waiter))) seen.push(waiter)
  }
  yield* Stream.runForEach(scanQueue(stream, subject), (message) =>
    Effect.sync(() => show(note, waitingMessage(stream, message), streams))
  )
  const there = yield* Effect.filter(seen, isStillThere, { concurrency: maxConcurrentReads })
  for (const waiter of there) see(waiter)
})

/**
 * Searches certain deliveries in all places where they may wait, twice, because they may move during
 * the search. The leader has confirmed each one that is shown.
 */
export const scanFor = Effect.fnUntraced(function* (
  lost: ReadonlyArray<RoundAt>,
  partitions: number,
  see: See
) {
  const { names } = yield* Broker
  const { subjects } = names
  const wanted = new Set(lost.map(roundName))
  const endpoints = new Map(lost.map((round) => [`${round.tenant}.${round.endpoint}`, round]))
  const partitionPlaces = new Map<number, Map<string, string>>()
  for (const { endpoint, tenant } of endpoints.values()) {
    const partition = partitionOf(tenant, endpoint, partitions)
    const places = partitionPlaces.get(partition) ?? new Map<string, string>()
    partitionPlaces.set(partition, places)
    places.set(subjects.schedulesOf(partition), names.deliveries(partition))
    places.set(subjects.delivery(partition, tenant, endpoint), names.deliveries(partition))
    places.set(subjects.backlog(partition, tenant, endpoint), names.backlog(partition))
  }
  // One place after the other, in the order in which a delivery moves.
  const scanPlaces = (partition: number, places: ReadonlyMap<string, string>) => {
    const streams = originStreams(names, partition)
    return Effect.forEach(
      places,
      ([subject, stream]) => lookIn(stream, subject, wanted, streams, see),
      { discard: true }
    )
  }
  yield* Effect.forEach(
    partitionPlaces,
    ([partition, places]) =>
      Effect.andThen(scanPlaces(partition, places), scanPlaces(partition, places)),
    { concurrency: partitionsAtOnce, discard: true }
  )
})
