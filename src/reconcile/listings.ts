import type { Listing } from "./listing.ts"
import { stripeListing } from "./listings/stripe.ts"

/** The listings that there are, by the names of their providers. */
export const listings: ReadonlyMap<string, Listing> = new Map([["stripe", stripeListing]])
