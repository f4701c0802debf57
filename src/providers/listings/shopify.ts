import { momentAt, textAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { itemsOf, nextInHeader, queryOfLink } from "./items.ts"
import { isoTime, jsonHeaders, type Listing, queryOf } from "./listing.ts"

const perPage = 250

/** The topic that tells of a change, by what the API lists. */
const topics: Readonly<Record<string, string>> = {
  orders: "orders/updated",
  products: "products/update",
  customers: "customers/update"
}

/** Returns which state of an order, a product or a customer it is. */
const stateOf = (json: unknown): { readonly of: string; readonly at: number } | undefined => {
  const [of, at] = [textAt(json, "id"), momentAt(json, "ms", "updated_at")]
  return of === undefined || at === undefined ? undefined : { of, at }
}

/**
 * Shopify lists no webhooks. Its API says what has changed since, and what each is now: one that came
 * in no webhook in this state, or a later one, is fetched as one of its topic. What it was in between
 * is lost.
 */
export const shopifyListing: Listing = {
  title: "Shopify",
  webhook: {
    isRequired: true,
    form: /^(?:orders|products|customers)$/,
    text: "what is listed: orders, products or customers",
    example: "orders"
  },
  key: "an access token of the Admin API that may read them",
  keepsMs: daysMs(60),
  perSecond: 2,
  words: {
    listed: "what has changed since, as it is now; not the webhooks",
    comes: "with the list, as one `orders/updated`, `products/update` or `customers/update`"
  },
  authorize: (key) => ({ "x-shopify-access-token": key }),
  // The query of a further page has nothing of the first's beside its limit.
  page: ({ since, until, webhook }, cursor) => ({
    path: `/${webhook}.json?${
      cursor ??
      queryOf({
        limit: perPage,
        status: webhook === "orders" ? "any" : undefined,
        updated_at_min: isoTime(since),
        updated_at_max: isoTime(until)
      })
    }`
  }),
  read: (answer, { webhook }) => {
    const topic = topics[webhook] ?? ""
    const items = itemsOf(answer, webhook)
    if (items === undefined) return undefined
    const listed = items.map(({ bytes, json }) => {
      const state = stateOf(json)
      const id = state === undefined ? "" : `${webhook}-${state.of}-${isoTime(state.at)}`
      return {
        ...{ id, state, at: state?.at, type: topic },
        carried: {
          headers: { ...jsonHeaders, "x-shopify-topic": topic, "x-shopify-webhook-id": id },
          body: bytes
        }
      }
    })
    return { listed, next: queryOfLink(nextInHeader(answer.headers.link)) }
  },
  states: {
    // `orders/create`, `orders/paid` and the others of orders.
    isOf: (type, { webhook }) => type.startsWith(`${webhook}/`),
    stateOf
  }
}
