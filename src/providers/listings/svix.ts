import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { isOlder, itemsOf } from "./items.ts"
import { bearer, isoTime, type Listing, queryOf } from "./listing.ts"

const perPage = 250

/**
 * Newest first, for a sender that uses Svix: the messages of one endpoint. A payload that Svix has
 * dropped is not listed, and the message is asked for again.
 */
export const svixListing: Listing = {
  title: "Svix",
  webhook: {
    isRequired: true,
    form: /^app\/[\w.-]+\/endpoint\/[\w.-]+$/,
    text: "the endpoint's path in the API",
    example: "app/app_1srOr/endpoint/ep_1srOr"
  },
  key: "a token of the sender's or of its portal that may read messages",
  keepsMs: daysMs(90),
  perSecond: 10,
  words: {
    listed: "messages that were attempted at the endpoint",
    comes: "with the list; those without a payload are asked for again"
  },
  authorize: bearer,
  page: ({ until, webhook }, cursor) => ({
    path: `/api/v1/${webhook}/msg?${queryOf({
      limit: perPage,
      iterator: cursor,
      // Svix takes no `after` beside it.
      before: cursor === undefined ? isoTime(until) : undefined,
      with_content: "true"
    })}`
  }),
  read: (answer, { since }) => {
    const items = itemsOf(answer, "data")
    if (items === undefined) return undefined
    const listed = items.map(({ json }) => {
      const payload = valueAt(json, "payload")
      const isThere = typeof payload === "object" && payload !== null && !isExpunged(payload)
      const [id, at] = [textAt(json, "id") ?? "", momentAt(json, "s", "timestamp")]
      return {
        id,
        at,
        type: textAt(json, "eventType"),
        ...(isThere
          ? {
              carried: {
                headers: { "content-type": "application/json", "webhook-id": id },
                body: Buffer.from(JSON.stringify(payload))
              }
            }
          : {})
      }
    })
    if (valueAt(answer.json, "done") === true || isOlder(listed.at(-1)?.at, since))
      return { listed }
    // Not done and without an iterator is no end: what follows would not be compared.
    const next = textAt(answer.json, "iterator")
    return next === undefined ? undefined : { listed, next }
  },
  resend: ({ webhook }, { id }) => {
    const [app = "", endpoint = ""] = webhook.split("/endpoint/")
    return { method: "POST", path: `/api/v1/${app}/msg/${id}/endpoint/${endpoint}/resend` }
  }
}

/** True for what Svix shows instead of a payload that it has dropped. */
const isExpunged = (payload: object): boolean =>
  valueAt(payload, "expired") === true && Object.keys(payload).length === 1
