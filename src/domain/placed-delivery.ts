import type { Delivery } from "./delivery.ts"
import type { Place } from "./fact.ts"

/** A delivery and the message that holds it. */
export interface PlacedDelivery {
  readonly delivery: Delivery
  readonly place: Place
  readonly body: Uint8Array
}
