import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Problem } from "../../domain/problem.ts"
import { PublishedEvent } from "../../operations/events/publish-event.ts"
import { Access, Needs } from "../access.ts"
import { Conflict } from "../problems.ts"
import { Tenant, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

/** Upper bound of the events of one request. */
export const maxBatch = 1_000
/** Upper bound of the body of a request that publishes, bytes. */
export const maxEventsBytes = 16 * 1024 * 1024

const hasOneBody = (event: object): string | undefined => {
  const given = ["data", "text", "base64"].filter((name) => name in event)
  return given.length === 1
    ? undefined
    : "must have one of `data`, `text` and `base64`: what receivers get"
}

const base64Problem = (text: string): string | undefined =>
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
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
    type: "Such as invoice.paid.",
    id: "The same id within 10 minutes (as `petrel init --event-dedupe` says) is the same event. The tenant and a dot are put before it. (Default: a new one)",
    contentType:
      "What receivers are told that the body is. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`)",
    headers:
      "Stored with the event. Receivers get traceparent and tracestate, and those that their endpoint or tenant names.",
    data: "Any JSON. Receivers get it without white space, with its numbers as they are written here.",
    text: "Receivers get it in UTF-8.",
    base64: "Receivers get the bytes."
  },
  examples: [{ type: "invoice.paid", id: "invoice-42-paid", data: { invoice: 42, total: "10.00" } }]
})

/** An event as it is published in JSON. */
export const EventInput = Described.check(Schema.makeFilter(hasOneBody)).annotate({
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
    errors: Schema.optionalKey(Schema.Array(Problem))
  }),
  {
    identifier: "BatchAnswer",
    fields: {
      status:
        "As of a request for this event alone: 201 stored, 200 there already, 400 not valid, 409 another event has the id, 413 too large, 503 not known to be stored.",
      id: publishedTexts.id,
      seq: publishedTexts.seq,
      detail: "Why it was not stored, and what to do.",
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
      failed: "How many were neither: see each.",
      events: "What became of each, in the order of the request."
    }
  }
)

const idempotency = {
  "idempotency-key": Schema.optionalKey(
    Schema.String.annotateKey({
      description: "The id of the event, if the event itself has none. Not for a batch.",
      examples: ["invoice-42-paid"]
    })
  )
}

const created = HttpApiSchema.status(201)
const bothStatuses = [Published, Published.pipe(created)] as const

const publish = HttpApiEndpoint.post("publish", `${tenantPath}/events`, {
  params: { tenant: Tenant },
  headers: idempotency,
  payload: [
    EventInput,
    Schema.Array(EventInput),
    Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" }))
  ],
  success: [Schema.Union([Published, BatchResult]), Published.pipe(created)],
  error: [Conflict]
})
  .annotate(Needs, "events:publish")
  .annotate(OpenApi.Summary, "Publish an event, or up to 1,000 at once")
  .annotate(
    OpenApi.Description,
    "One event is answered with 201 when the broker has it, and 200 if it had it already. An array, or NDJSON with an event a line, is answered with 200 and what became of each; with 503 only if nothing was stored."
  )

const publishRaw = HttpApiEndpoint.post("publishRaw", `${tenantPath}/events/:event`, {
  params: {
    tenant: Tenant,
    // OpenAPI knows one name for it, and with GET it is an event's id.
    event: Schema.String.annotateKey({
      description: "The event's type.",
      examples: ["invoice.paid"]
    })
  },
  headers: idempotency,
  payload: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "*/*" })),
  success: bothStatuses,
  error: [Conflict]
})
  .annotate(Needs, "events:publish")
  .annotate(OpenApi.Summary, "Publish the body as it is")
  .annotate(
    OpenApi.Description,
    "Receivers get the body byte for byte, with its Content-Type (application/json where there is none), traceparent and tracestate."
  )

/** Routes of events. */
export class EventsGroup extends HttpApiGroup.make("events")
  .add(publish, publishRaw)
  .middleware(Access)
  .annotate(OpenApi.Description, "What happens at a tenant, and goes to its endpoints.") {}
