import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { itemsOf } from "./items.ts"
import { carriedHeaders, type Listing, queryOf } from "./listing.ts"

const perPage = 20

/** The time of an event: its webhook's answer has one, which an event that got none lacks. */
const timeOf = (event: unknown): number | undefined =>
  momentAt(event, "s", "created_at") ??
  momentAt(event, "s", "response_headers", "Date") ??
  momentAt(event, "s", "response_headers", "date")

/**
 * Newest first, by number of page, so that pages overlap where more comes meanwhile. A large event is
 * listed without its data, and GitLab is asked to send it again.
 */
export const gitlabListing: Listing = {
  title: "GitLab",
  url: "https://gitlab.com/api/v4",
  webhook: {
    isRequired: true,
    form: /^(?:projects|groups)\/[\w.%-]+\/hooks\/\d+$/,
    text: "the webhook's path in the API",
    example: "projects/42/hooks/7"
  },
  key: "a token with the scope api of a maintainer",
  keepsMs: daysMs(7),
  perSecond: 5,
  words: {
    listed: "events of the webhook",
    comes: "with the list; large ones are asked for again (5 a minute)"
  },
  authorize: (key) => ({ "private-token": key }),
  page: ({ webhook }, cursor = "1") => ({
    path: `/${webhook}/events?${queryOf({ page: cursor, per_page: perPage })}`
  }),
  read: (answer, _, cursor = "1") => {
    const items = itemsOf(answer)
    if (items === undefined) return undefined
    const listed = items.map(({ json }) => {
      const headers = carriedHeaders(valueAt(json, "request_headers"))
      const data = valueAt(json, "request_data")
      const isWhole =
        typeof data === "object" && data !== null && valueAt(data, "oversize") !== true
      return {
        id: headers["webhook-id"] ?? headers["idempotency-key"] ?? "",
        ref: textAt(json, "id"),
        at: timeOf(json),
        type: textAt(data, "object_kind") ?? textAt(data, "event_name"),
        ...(isWhole
          ? {
              carried: {
                headers: { ...headers, "content-type": "application/json" },
                body: Buffer.from(JSON.stringify(data))
              }
            }
          : {})
      }
    })
    return { listed, next: items.length < perPage ? undefined : String(Number(cursor) + 1) }
  },
  resend: ({ webhook }, { ref = "" }) => ({
    method: "POST",
    path: `/${webhook}/events/${ref}/resend`
  })
}
