import { momentAt, textAt, valueAt } from "../body.ts"
import { daysMs } from "../kind.ts"
import { itemsOf } from "./items.ts"
import { basic, jsonHeaders, type Listing, queryOf } from "./listing.ts"

const perPage = 300

/** Returns the part of a link that says which page: the last of `/v3/<domain>/events/<page>`. */
const pageOf = (link: string | undefined): string | undefined =>
  /\/events\/([\w%=.~-]+)$/.exec(link ?? "")?.[1]

/**
 * Oldest first, of a domain. Every page has a link to the next one; the first empty page is the last.
 * Webhooks are sent of some types only.
 */
export const mailgunListing: Listing = {
  title: "Mailgun",
  url: "https://api.mailgun.net",
  webhook: {
    isRequired: true,
    form: /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/,
    text: "the domain",
    example: "mg.example.com"
  },
  key: "an API key of the account or the domain",
  keepsMs: daysMs(3),
  perSecond: 5,
  words: {
    listed: "`GET /v3/<domain>/events`; name the types that are webhooks",
    comes: "with the list, as `event-data`"
  },
  authorize: (key) => basic(`api:${key}`),
  page: ({ since, until, webhook }, cursor) => ({
    path:
      cursor === undefined
        ? `/v3/${webhook}/events?${queryOf({
            begin: Math.floor(since / 1_000),
            end: Math.ceil(until / 1_000),
            ascending: "yes",
            limit: perPage
          })}`
        : `/v3/${webhook}/events/${cursor}`
  }),
  read: (answer) => {
    const items = itemsOf(answer, "items")
    if (items === undefined) return undefined
    const listed = items.map(({ bytes, json }) => ({
      id: textAt(json, "id") ?? "",
      at: momentAt(json, "s", "timestamp"),
      type: textAt(json, "event"),
      carried: {
        headers: jsonHeaders,
        body: Buffer.concat([Buffer.from('{"event-data":'), bytes, Buffer.from("}")])
      }
    }))
    const next = pageOf(textAt(valueAt(answer.json, "paging"), "next"))
    return { listed, next: items.length === 0 ? undefined : next }
  }
}
