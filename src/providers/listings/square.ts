import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { itemsOf } from "./items.ts"
import { bearer, isoTime, jsonHeaders, type Listing } from "./listing.ts"

const perPage = 100

/** Events of the application are only kept once that was switched on (PUT /v2/events/enable). */
export const squareListing: Listing = {
  title: "Square",
  url: "https://connect.squareup.com",
  webhook: {
    isRequired: false,
    form: /^\w+$/,
    text: "the id of the subscription, whose types are then asked for",
    example: "wbhk_b35f6b3145074cf9ad513610786c19d5"
  },
  key: "the application's personal access token",
  keepsMs: daysMs(28),
  perSecond: 5,
  words: { listed: "`POST /v2/events` (to be enabled first)", comes: "with the list" },
  authorize: bearer,
  subscription: {
    request: ({ webhook }) =>
      webhook === "" ? undefined : { path: `/v2/webhooks/subscriptions/${webhook}` },
    types: ({ json }) => {
      const types = valueAt(json, "subscription", "event_types")
      return Array.isArray(types) ? types.filter((type) => typeof type === "string") : undefined
    }
  },
  page: ({ since, until }, cursor) => ({
    method: "POST",
    path: "/v2/events",
    headers: jsonHeaders,
    body: JSON.stringify({
      limit: perPage,
      ...(cursor === undefined ? {} : { cursor }),
      query: {
        filter: { created_at: { start_at: isoTime(since), end_at: isoTime(until) } },
        sort: { field: "DEFAULT", order: "DESC" }
      }
    })
  }),
  read: (answer) => {
    // Without any event the answer has no list.
    const items = itemsOf(answer, "events") ?? (isEmpty(answer.json) ? [] : undefined)
    if (items === undefined) return undefined
    const listed = items.map(({ bytes, json }) => ({
      id: textAt(json, "event_id") ?? "",
      at: momentAt(json, "s", "created_at"),
      type: textAt(json, "type"),
      carried: { headers: jsonHeaders, body: bytes }
    }))
    return { listed, next: textAt(answer.json, "cursor") }
  }
}

const isEmpty = (json: unknown): boolean =>
  typeof json === "object" &&
  json !== null &&
  !Array.isArray(json) &&
  valueAt(json, "events") === undefined &&
  valueAt(json, "errors") === undefined
