import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { itemsOf, queryOfLink } from "./items.ts"
import { basic, bearer, isoTime, jsonHeaders, type Listing, queryOf } from "./listing.ts"

const perPage = 100

/** Events of the app, of all types, whatever its webhook gets. */
export const paypalListing: Listing = {
  title: "PayPal",
  url: "https://api-m.paypal.com",
  webhook: {
    isRequired: false,
    form: /^\w+$/,
    text: "the id of the webhook, whose types are then asked for (by default the source's own)",
    example: "5GP028458E2496506"
  },
  key: "the app's client id and secret, with : between them",
  keepsMs: daysMs(30),
  perSecond: 3,
  words: { listed: "`GET /v1/notifications/webhooks-events`", comes: "with the list" },
  authorize: bearer,
  login: {
    request: (key) => ({
      method: "POST",
      path: "/v1/oauth2/token",
      headers: { "content-type": "application/x-www-form-urlencoded", ...basic(key) },
      body: "grant_type=client_credentials"
    }),
    token: ({ json }) => textAt(json, "access_token")
  },
  subscription: {
    request: ({ webhook }) =>
      webhook === "" ? undefined : { path: `/v1/notifications/webhooks/${webhook}` },
    types: ({ json }) => {
      const types = valueAt(json, "event_types")
      return Array.isArray(types) ? types.flatMap((type) => textAt(type, "name") ?? []) : undefined
    }
  },
  page: ({ since, until }, cursor) => ({
    path: `/v1/notifications/webhooks-events?${
      cursor ??
      queryOf({ page_size: perPage, start_time: isoTime(since), end_time: isoTime(until) })
    }`
  }),
  read: (answer) => {
    const items = itemsOf(answer, "events")
    if (items === undefined) return undefined
    const listed = items.map(({ bytes, json }) => ({
      id: textAt(json, "id") ?? "",
      at: momentAt(json, "s", "create_time"),
      type: textAt(json, "event_type"),
      carried: { headers: jsonHeaders, body: bytes }
    }))
    const links = valueAt(answer.json, "links")
    const next = Array.isArray(links)
      ? links.find((link) => valueAt(link, "rel") === "next")
      : undefined
    // An empty page is the last one, whatever its links say.
    return { listed, next: items.length === 0 ? undefined : queryOfLink(textAt(next, "href")) }
  }
}
