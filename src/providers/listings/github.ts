import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { isOlder, itemsOf, nextInHeader, queryOfLink } from "./items.ts"
import { bearer, carriedHeaders, type Listing, queryOf } from "./listing.ts"

const perPage = 100

const headers = {
  accept: "application/vnd.github+json",
  "x-github-api-version": "2022-11-28"
}

/**
 * Newest first; a delivery that was sent again is listed again with the same id. Deliveries are of
 * one webhook, so their types need not be asked for.
 */
export const githubListing: Listing = {
  title: "GitHub",
  url: "https://api.github.com",
  webhook: {
    isRequired: true,
    form: /^(?:repos\/[\w.-]+\/[\w.-]+|orgs\/[\w.-]+)\/hooks\/\d+$|^app\/hook$/,
    text: "the webhook's path in the API",
    example: "repos/acme/shop/hooks/42"
  },
  key: "a token that may read webhooks; of an app its JWT",
  keepsMs: daysMs(3),
  perSecond: 10,
  words: { listed: "deliveries of the webhook", comes: "each by a request of its own" },
  authorize: bearer,
  page: ({ webhook }, cursor) => ({
    path: `/${webhook}/deliveries?${cursor ?? queryOf({ per_page: perPage })}`,
    headers
  }),
  read: (answer, { since }) => {
    const items = itemsOf(answer)
    if (items === undefined) return undefined
    const listed = items.map(({ json }) => {
      const [event, action] = [textAt(json, "event"), textAt(json, "action")]
      return {
        id: textAt(json, "guid") ?? "",
        ref: textAt(json, "id"),
        at: momentAt(json, "s", "delivered_at"),
        type: action === undefined ? event : `${event}.${action}`
      }
    })
    const next = queryOfLink(nextInHeader(answer.headers.link))
    return { listed, next: isOlder(listed.at(-1)?.at, since) ? undefined : next }
  },
  fetch: {
    request: ({ webhook }, { ref = "" }) => ({ path: `/${webhook}/deliveries/${ref}`, headers }),
    carried: ({ json }) => {
      const payload = valueAt(json, "request", "payload")
      if (typeof payload !== "object" || payload === null) return undefined
      return {
        // Whatever its content type was: a form has the same JSON in a field.
        headers: {
          ...carriedHeaders(valueAt(json, "request", "headers")),
          "content-type": "application/json"
        },
        body: Buffer.from(JSON.stringify(payload))
      }
    }
  },
  resend: ({ webhook }, { ref = "" }) => ({
    method: "POST",
    path: `/${webhook}/deliveries/${ref}/attempts`,
    headers
  })
}
