import { momentAt, textAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { itemsOf } from "./items.ts"
import { bearer, isoTime, type Listing, queryOf } from "./listing.ts"

const perPage = 200

/**
 * The deliveries of one endpoint of another installation, newest first, from its log. They have no
 * bodies and no headers, so the sender sends missing ones again, signed.
 */
export const petrelListing: Listing = {
  title: "Petrel",
  webhook: {
    isRequired: true,
    form: /^[A-Za-z0-9_-]{1,64}\/[A-Za-z0-9_-]{1,64}$/,
    text: "the sender's tenant and endpoint",
    example: "acme/billing"
  },
  key: "a token of the sender's API with the scopes deliveries:read and replay:write",
  keepsMs: daysMs(31),
  perSecond: 10,
  words: { listed: "the log of the endpoint's deliveries", comes: "asked for again" },
  authorize: bearer,
  page: ({ since, webhook }, cursor) => {
    const [tenant = "", endpoint] = webhook.split("/")
    return {
      path: `/v1/tenants/${tenant}/deliveries?${queryOf({
        limit: perPage,
        endpoint,
        // What waits is on its way still. A delivery ends later than its event was published.
        since: isoTime(since),
        cursor
      })}&state=delivered&state=dead-lettered`
    }
  },
  read: (answer) => {
    const items = itemsOf(answer, "deliveries")
    if (items === undefined) return undefined
    const listed = items.map(({ json }) => ({
      id: textAt(json, "event") ?? "",
      ref: textAt(json, "delivery"),
      at: momentAt(json, "ms", "eventAt"),
      type: textAt(json, "type")
    }))
    return { listed, next: textAt(answer.json, "next") }
  },
  resend: ({ webhook }, { ref = "" }) => ({
    method: "POST",
    path: `/v1/tenants/${webhook.split("/")[0]}/deliveries/${encodeURIComponent(ref)}/resend`
  })
}
