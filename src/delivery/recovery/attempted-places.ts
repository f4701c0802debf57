import type { DeliveryIdentity } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import { isFollowedBy } from "../retry/applied-steps.ts"

/** Where a delivery was seen, and how many attempts it had by then. */
interface Seen {
  readonly place: Place
  readonly attempts: number
}

/**
 * Where deliveries of a history were attempted and failed. Whoever has ended, or goes on from a
 * later message with as many attempts, has left that place, though its acknowledgement may have been
 * lost: a message names only the place that it came from itself, and what lay between is gone.
 */
export class AttemptedPlaces {
  /** Where each delivery failed last, by endpoint and round. */
  readonly #last = new Map<string, Seen>()

  /** Notes a failed attempt. Returns the place that its delivery had left before, if any. */
  failed(of: DeliveryIdentity, seen: Seen, origin: string | undefined): Place | undefined {
    const key = keyOf(of)
    const last = this.#last.get(key)
    const isHere = last !== undefined && placeName(last.place) === placeName(seen.place)
    const isLater = last === undefined || hasGoneOn(last, { ...seen, origin })
    if (isHere || isLater) this.#last.set(key, seen)
    return isLater && !isHere ? last?.place : undefined
  }

  /** Returns the place that a delivery has left which waits at another one, if any. */
  waits(of: DeliveryIdentity, seen: Seen, origin: string | undefined): Place | undefined {
    const last = this.#last.get(keyOf(of))
    return last !== undefined && hasGoneOn(last, { ...seen, origin }) ? last.place : undefined
  }

  /** Notes the end of a delivery. Returns the place where it had failed, if any. */
  ended(of: DeliveryIdentity): Place | undefined {
    const key = keyOf(of)
    const last = this.#last.get(key)
    this.#last.delete(key)
    return last?.place
  }
}

const keyOf = (of: DeliveryIdentity) => `${endpointKey(of.tenant, of.endpoint)} ${roundKey(of)}`

const hasGoneOn = (last: Seen, seen: Seen & { readonly origin: string | undefined }): boolean =>
  seen.attempts >= last.attempts && isFollowedBy(last.place, seen)
