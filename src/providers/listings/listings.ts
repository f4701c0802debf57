import { githubListing } from "./github.ts"
import { gitlabListing } from "./gitlab.ts"
import type { Listing } from "./listing.ts"
import { mailgunListing } from "./mailgun.ts"
import { paddleListing } from "./paddle.ts"
import { paypalListing } from "./paypal.ts"
import { petrelListing } from "./petrel.ts"
import { shopifyListing } from "./shopify.ts"
import { squareListing } from "./square.ts"
import { stripeListing } from "./stripe.ts"
import { svixListing } from "./svix.ts"

/** The listings that there are, by the names of their providers. */
export const listings: ReadonlyMap<string, Listing> = new Map([
  ["petrel", petrelListing],
  ["standard-webhooks", svixListing],
  ["stripe", stripeListing],
  ["github", githubListing],
  ["gitlab", gitlabListing],
  ["paddle", paddleListing],
  ["paypal", paypalListing],
  ["square", squareListing],
  ["mailgun", mailgunListing],
  ["shopify", shopifyListing]
])
