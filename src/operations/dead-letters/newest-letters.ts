import type { DeliveryIdentity } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"

/** A dead letter: its id, and the round that it ended. */
interface Letter {
  readonly id: number
  readonly delivery: DeliveryIdentity
}

/** The newest dead letter of a delivery. */
interface Newest {
  /** When its event was stored, ms since the epoch. */
  readonly eventAt: number
  readonly id: number
}

/**
 * Which dead letters are the newest of their deliveries. A delivery has several if it was replayed
 * or sent again, and failed again. There may be millions of dead letters, so a delivery is kept only
 * if it has one of a further round.
 */
export class NewestLetters {
  /** By endpoint and the sequence of the event. */
  readonly #byEndpoint = new Map<string, Map<number, Newest>>()

  /** Notes a dead letter. The oldest comes first. */
  note({ delivery: { endpoint, eventAt, eventSeq, round, tenant }, id }: Letter): void {
    const key = endpointKey(tenant, endpoint)
    const known = this.#byEndpoint.get(key)
    if (round === firstRound && known?.get(eventSeq)?.eventAt !== eventAt) return
    const ofEndpoint = known ?? new Map<number, Newest>()
    ofEndpoint.set(eventSeq, { eventAt, id })
    this.#byEndpoint.set(key, ofEndpoint)
  }

  /** Returns whether a newer dead letter of the same delivery was noted. */
  hasNewer({ delivery: { endpoint, eventAt, eventSeq, tenant }, id }: Letter): boolean {
    const newest = this.#byEndpoint.get(endpointKey(tenant, endpoint))?.get(eventSeq)
    return newest?.eventAt === eventAt && newest.id > id
  }
}
