import type { Delivery } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { EventIdentity } from "../../domain/event.ts"
import type { Place } from "../../domain/fact.ts"
import { readPlace, slotOf } from "../../domain/fact.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"
import type { CompletedDeliveries } from "./completed-deliveries.ts"
import type { DirectDeliveryRegistry } from "./direct-delivery-registry.ts"
import type { PoisonGuard } from "./poison-guard.ts"

/** A message of a stream: a truncated stream reuses the sequence, but not the time. */
export type MessageIdentity = Pick<Place, "at" | "entry" | "seq">

/** An attempt at a message, and when the message was stored, ms since the epoch. */
export interface RecordedAttempt {
  readonly at: number
  readonly attempt: number
}

/**
 * The last attempt in the history for each message of a stream; 0 for one that a former owner has
 * stored late, and its owner delivers from.
 */
export class RecordedAttempts {
  readonly #last: Map<number, RecordedAttempt>

  /** @param last by slot. (Default: none) */
  constructor(last: ReadonlyMap<number, RecordedAttempt> = new Map()) {
    this.#last = new Map(last)
  }

  /** The last attempts, by slot. */
  get last(): ReadonlyMap<number, RecordedAttempt> {
    return this.#last
  }

  add(place: MessageIdentity, attempt: number): void {
    this.#last.set(slotOf(place), { at: place.at, attempt })
  }

  /** True for a message that has an attempt in the history, or is delivered from. */
  isBegun(place: MessageIdentity): boolean {
    return this.#last.get(slotOf(place))?.at === place.at
  }

  /** Forgets a message that is gone for good. */
  delete(slot: number): void {
    this.#last.delete(slot)
  }

  /** True where the last attempt in the history for a message has this number. */
  has(place: MessageIdentity, attempt: number): boolean {
    const last = this.#last.get(slotOf(place))
    return last?.at === place.at && last.attempt === attempt
  }
}

/** A delivery that failed and waits, as its owner remembers it. */
export interface WaitingDelivery {
  readonly record: RetryRecord
  /** Revision of the record in its bucket. */
  readonly revision: number
  /** When its message was stored, ms since the epoch: a truncated stream reuses the sequence. */
  readonly storedAt: number
  /** True where the history holds the fact of its last attempt. */
  isOutcomeRecorded: boolean
}

/** What an owner knows of the deliveries in one stream, by slot (`slotOf`). */
export interface StreamMemory {
  /** Index of the partition. */
  readonly index: number
  readonly stream: string
  readonly waiting: Map<number, WaitingDelivery>
  /**
   * Messages whose retry record was in the bucket when this owner began, and has not been read yet:
   * when each was stored, ms since the epoch.
   */
  readonly unreadRecords: Map<number, number>
  /** Attempts that the history holds. Only for messages that a former owner had in flight. */
  readonly recordedAttempts: RecordedAttempts
  readonly completed: CompletedDeliveries
  readonly poisonGuard: PoisonGuard
  /** Shared by the partition's queue and backlog. */
  readonly directDeliveries: DirectDeliveryRegistry
}

/** What a partition's owner knows of its queue and its backlog. */
export interface PartitionMemory extends StreamMemory {
  readonly backlog: StreamMemory
  /**
   * The last sequence of the backlogs as they were read: a former owner stored late what follows.
   * Undefined where it handed over, and so had nothing under way.
   */
  readonly backlogEnd?: number
}

/** A delivery in a backlog. */
type Moved = Omit<Delivery, "content" | "event" | "type">

/**
 * Notes that a delivery in the backlog has left the place from which it was moved.
 *
 * @param events the stream of events.
 */
export const noteLeft = (memory: PartitionMemory, events: string, delivery: Moved): void => {
  const { endpoint, origin, tenant } = delivery
  const place = origin === undefined ? undefined : readPlace(origin)
  if (place?.stream === memory.stream) memory.completed.add(slotOf(place), place.at)
  if (place?.stream === events || isUntriedFirst(delivery))
    memory.directDeliveries.add(endpointKey(tenant, endpoint), delivery)
}

/**
 * True for a first round that was not attempted. It may come directly from its event and through the
 * queue, and is one and the same.
 */
export const isUntriedFirst = ({ progress, round }: Pick<Delivery, "progress" | "round">) =>
  round === firstRound && progress.attempts === 0 && progress.ends === undefined

/**
 * True where a delivery that a former owner stored late has ended, waits, or is attempted now: its
 * event or its message in the queue was redelivered to this owner, or has been taken care of.
 *
 * @param events the stream of events.
 */
export const isKnown = (memory: PartitionMemory, events: string, delivery: Moved): boolean => {
  const { endpoint, origin, tenant } = delivery
  const place = origin === undefined ? undefined : readPlace(origin)
  const { completed, directDeliveries } = memory
  if (place?.stream === memory.stream && completed.has(slotOf(place), place.at)) return true
  return (
    (place?.stream === events || isUntriedFirst(delivery)) &&
    (directDeliveries.isDone(endpointKey(tenant, endpoint), delivery) ||
      directDeliveries.isInFlight(delivery))
  )
}

/** Returns the event that is stored at a place of the events stream. */
export const eventAtPlace = ({ at, seq }: Place): EventIdentity => ({ eventSeq: seq, eventAt: at })

/**
 * True where a delivery in a queue has since ended, or waits in the backlog, after it was taken
 * directly from its event. A delivery with attempts is in the queue for its retry, and one that has
 * ended is there to become a dead letter: it may never have been attempted in the backlog.
 */
export const isCompletedElsewhere = (
  { directDeliveries }: Pick<PartitionMemory, "directDeliveries">,
  delivery: Delivery
): boolean =>
  isUntriedFirst(delivery) &&
  directDeliveries.isDone(endpointKey(delivery.tenant, delivery.endpoint), delivery)

/**
 * Remembers for as long again that a delivery in a queue has ended in another place. Called when its
 * message was redelivered: an acknowledgement was lost, and the next one may be lost, too.
 */
export const renewCompletedElsewhere = (
  { completed, directDeliveries }: Pick<PartitionMemory, "completed" | "directDeliveries">,
  delivery: Delivery
): void => {
  const key = endpointKey(delivery.tenant, delivery.endpoint)
  // Both are rotated together.
  completed.keepBelow(directDeliveries.renew(key, delivery))
}
