import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { itemsOf } from "./items.ts"
import { bearer, jsonHeaders, type Listing, queryOf } from "./listing.ts"

const perPage = 100

/** Newest first. The list has events of all types, whatever the endpoint gets. */
export const stripeListing: Listing = {
  title: "Stripe",
  url: "https://api.stripe.com",
  webhook: {
    isRequired: false,
    form: /^we_\w+$/,
    text: "the id of the endpoint, whose types are then asked for",
    example: "we_1PX"
  },
  key: "a secret or restricted key that may read events and webhook endpoints",
  keepsMs: daysMs(30),
  perSecond: 20,
  words: { listed: "`GET /v1/events`", comes: "with the list" },
  authorize: bearer,
  subscription: {
    request: ({ webhook }) =>
      webhook === "" ? undefined : { path: `/v1/webhook_endpoints/${webhook}` },
    types: ({ json }) => {
      const types = valueAt(json, "enabled_events")
      return Array.isArray(types) ? types.filter((type) => typeof type === "string") : undefined
    }
  },
  page: ({ since, until }, cursor) => ({
    path: `/v1/events?${queryOf({
      limit: perPage,
      "created[gte]": Math.floor(since / 1_000),
      "created[lte]": Math.ceil(until / 1_000),
      starting_after: cursor
    })}`
  }),
  read: (answer) => {
    const items = itemsOf(answer, "data")
    if (items === undefined) return undefined
    const listed = items.map(({ bytes, json }) => ({
      id: textAt(json, "id") ?? "",
      at: momentAt(json, "s", "created"),
      type: textAt(json, "type"),
      carried: { headers: jsonHeaders, body: bytes }
    }))
    if (valueAt(answer.json, "has_more") !== true) return { listed }
    // More without an event to go on from is no end: what follows would not be compared.
    const last = listed.at(-1)
    return last === undefined ? undefined : { listed, next: last.id }
  }
}
