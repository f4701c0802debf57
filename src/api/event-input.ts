import { Schema } from "effect"
import { Problem } from "../domain/problem.ts"
import { PublishedEvent } from "../operations/events/publish-events.ts"
import { documented } from "../operations/operation.ts"

/** Upper bound of the events of one request. */
export const maxBatch = 1_000
/** Upper bound of the body of a request that publishes, bytes. */
export const maxEventsBytes = 16 * 1024 * 1024

/** What a receiver gets is given in one of these. */
const bodies = ["data", "text", "base64"]

const hasOneBody = (event: object) => {
  const given = bodies.filter((name) => Object.hasOwn(event, name))
  // The problem shows the value of its field; that of `data` is not read here.
  const last = given.pop()
  if (last === undefined)
    return {
      path: ["data"],
      issue: "is missing: give it, or `text` or `base64`, which receivers get"
    }
  return given.length === 0
    ? undefined
    : { path: [last], issue: `is given beside ${given.join(" and ")}: give one of them` }
}

const base64Problem = (text: string): string | undefined =>
  text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
    ? undefined
    : "must be base64, with + and / and padding"

const Fields = Schema.Struct({
  type: Schema.String,
  id: Schema.optionalKey(Schema.String),
  contentType: Schema.optionalKey(Schema.String),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  data: Schema.optionalKey(Schema.Unknown),
  text: Schema.optionalKey(Schema.String),
  base64: Schema.optionalKey(Schema.String.check(Schema.makeFilter(base64Problem)))
})

const Described = documented(Fields, {
  identifier: "NewEvent",
  description: "An event, with one of `data`, `text` and `base64`.",
  fields: {
    type: "The event's type, such as invoice.paid.",
    id: "The same id within 10 minutes (unless the installation has another time) is the same event. The tenant and a dot are put before it. (Default: a new one)",
    contentType:
      "The media type that receivers get with the body. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`)",
    headers:
      "Stored with the event. Receivers get traceparent and tracestate, and those that their endpoint or tenant names.",
    data: "Any JSON value. Receivers get it as it is written here, without white space.",
    text: "Receivers get it in UTF-8.",
    base64: "Receivers get the bytes."
  },
  examples: [{ type: "invoice.paid", id: "invoice-42-paid", data: { invoice: 42, total: "10.00" } }]
})

/** An event as it is published in JSON. */
export const EventInput = Described.check(
  Schema.makeFilter(hasOneBody, {
    toJsonSchema: () => ({ oneOf: bodies.map((name) => ({ required: [name] })) })
  })
).annotate({
  identifier: "NewEvent"
})
export type EventInput = typeof EventInput.Type

const publishedTexts = {
  id: "Its id, which receivers get.",
  seq: "Its sequence in the stream of events; absent where tenants have streams of their own.",
  duplicate: "True if the same event was there already: nothing new was stored.",
  unsent: "Headers that are stored with the event, and that receivers get only if they are named."
}

/** An event that the broker has. */
export const Published = documented(PublishedEvent, {
  identifier: "PublishedEvent",
  fields: publishedTexts
})

/** What became of an event of a batch. */
export const BatchAnswer = documented(
  Schema.Struct({
    status: Schema.Literals([201, 200, 400, 409, 413, 503]),
    id: Schema.optionalKey(Schema.String),
    seq: Schema.optionalKey(Schema.Int),
    detail: Schema.optionalKey(Schema.String),
    retryAfter: Schema.optionalKey(Schema.Int),
    errors: Schema.optionalKey(Schema.Array(Problem))
  }),
  {
    identifier: "BatchAnswer",
    fields: {
      status:
        "The status that a request for this event alone would get: 201 stored, 200 there already, 400 not valid, 409 another event has the id, 413 too large, 503 not known to be stored.",
      id: publishedTexts.id,
      seq: publishedTexts.seq,
      detail: "Why it was not stored, and what to do.",
      retryAfter:
        "With 503: seconds until it is worth sending it again, with the same id. The header Retry-After has the longest.",
      errors: "What is wrong with it, field by field."
    }
  }
)
export type BatchAnswer = typeof BatchAnswer.Type

/** What became of the events of a batch. */
export const BatchResult = documented(
  Schema.Struct({
    stored: Schema.Int,
    duplicates: Schema.Int,
    failed: Schema.Int,
    events: Schema.Array(BatchAnswer)
  }),
  {
    identifier: "BatchResult",
    fields: {
      stored: "How many were stored.",
      duplicates: "How many were there already.",
      failed: "How many were not stored: see each.",
      events: "What became of each, in the order of the request."
    }
  }
)
