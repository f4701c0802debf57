import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { isOlder, itemsOf, queryOfLink } from "./items.ts"
import { bearer, jsonHeaders, type Listing, queryOf } from "./listing.ts"

const perPage = 200

/** Newest first, of all types, whatever the destination gets. It takes no time. */
export const paddleListing: Listing = {
  title: "Paddle",
  url: "https://api.paddle.com",
  webhook: {
    isRequired: false,
    form: /^ntfset_\w+$/,
    text: "the id of the notification destination, whose types are then asked for",
    example: "ntfset_01gkpjp8bkm3tm53kdgkx6sms7"
  },
  key: "an API key that may read events and notification settings",
  keepsMs: daysMs(90),
  perSecond: 3,
  words: { listed: "`GET /events`", comes: "with the list" },
  authorize: bearer,
  subscription: {
    request: ({ webhook }) =>
      webhook === "" ? undefined : { path: `/notification-settings/${webhook}` },
    types: ({ json }) => {
      const types = valueAt(json, "data", "subscribed_events")
      return Array.isArray(types) ? types.flatMap((type) => textAt(type, "name") ?? []) : undefined
    }
  },
  page: (_, cursor) => ({
    path: `/events?${cursor ?? queryOf({ per_page: perPage, order_by: "id[DESC]" })}`
  }),
  read: (answer, { since }) => {
    const items = itemsOf(answer, "data")
    if (items === undefined) return undefined
    const listed = items.map(({ bytes, json }) => ({
      id: textAt(json, "event_id") ?? "",
      at: momentAt(json, "s", "occurred_at"),
      type: textAt(json, "event_type"),
      carried: { headers: jsonHeaders, body: bytes }
    }))
    const pagination = valueAt(answer.json, "meta", "pagination")
    const hasMore = valueAt(pagination, "has_more") === true
    if (!hasMore || isOlder(listed.at(-1)?.at, since)) return { listed }
    // More without a link to it is no end: what follows would not be compared.
    const next = queryOfLink(textAt(pagination, "next"))
    return next === undefined ? undefined : { listed, next }
  }
}
