import type { Delivery } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { EventIdentity } from "../../domain/event.ts"
import type { Place } from "../../domain/fact.ts"
import { readPlace } from "../../domain/fact.ts"
import type { RetryRecord } from "../retry/retry-record.ts"
import type { CompletedDeliveries } from "./completed-deliveries.ts"
import type { DirectDeliveryRegistry } from "./direct-delivery-registry.ts"
import type { PoisonGuard } from "./poison-guard.ts"
import type { RecordedAttempts } from "./recorded-attempts.ts"

/** A delivery that failed and waits, as its owner remembers it. */
export interface WaitingDelivery {
  readonly record: RetryRecord
  /** Its last attempt's fact is in the history. */
  isOutcomeRecorded: boolean
}

/** What an owner knows of the messages of one stream, by their sequence. */
export interface StreamMemory {
  /** Of the partition. */
  readonly index: number
  readonly stream: string
  readonly waiting: Map<number, WaitingDelivery>
  /** Messages whose record was in the bucket when this owner began, not yet read. */
  readonly recorded: Set<number>
  /** Only of those that a former owner had in hand. */
  readonly told: RecordedAttempts
  readonly settled: CompletedDeliveries
  readonly poisonGuard: PoisonGuard
  /** One for the partition. */
  readonly directDeliveries: DirectDeliveryRegistry
}

/** What a partition's owner knows: of its queue, and of its backlog. */
export interface PartitionMemory extends StreamMemory {
  readonly backlog: StreamMemory
}

/**
 * Notes that a delivery that waits in the backlog has left the place that it was moved from.
 *
 * @param events the stream of events.
 */
export const noteLeft = (memory: PartitionMemory, events: string, delivery: Delivery): void => {
  const { endpoint, origin, tenant } = delivery
  const place = origin === undefined ? undefined : readPlace(origin)
  if (place?.stream === memory.stream) memory.settled.add(place.seq, delivery)
  else if (place?.stream === events)
    memory.directDeliveries.add(endpointKey(tenant, endpoint), eventAtPlace(place))
}

/** The event that a place in the stream of events stands for. */
export const eventAtPlace = ({ at, seq }: Place): EventIdentity => ({ eventSeq: seq, eventAt: at })

/**
 * True where a delivery that is found in a queue has ended or waits in the backlog since it was taken
 * from its event. One that was attempted since comes to the queue for its retry.
 */
export const isCompletedElsewhere = (
  { directDeliveries }: Pick<PartitionMemory, "directDeliveries">,
  delivery: Delivery
): boolean =>
  delivery.round === firstRound &&
  delivery.progress.attempts === 0 &&
  directDeliveries.isDone(endpointKey(delivery.tenant, delivery.endpoint), delivery)
