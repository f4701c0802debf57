import { Effect, Result, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import { type Content, contentOf } from "../domain/event.ts"
import type { ApiChannel } from "../domain/origin.ts"
import { Invalid, invalid } from "../domain/problem.ts"
import type { NewEvent } from "../operations/events/new-event.ts"
import {
  type Publication,
  type PublishedEvent,
  publishEvents
} from "../operations/events/publish-events.ts"
import { operation, operationGroup, Replied, withStatus } from "../operations/operation.ts"
import { PathText, Tenant, tenantPath } from "../operations/parameters.ts"
import { EventConflict, EventNotStored } from "../operations/refusals.ts"
import { withoutCommands } from "../text/plain-text.ts"
import { Insider } from "./credential.ts"
import { type ReadEvent, readEvents, refused } from "./event-bodies.ts"
import {
  type BatchAnswer,
  BatchResult,
  EventInput,
  maxBatch,
  maxEventsBytes,
  Published
} from "./event-input.ts"
import { awaySeconds, unavailable } from "./failures.ts"
import { answeredProblems } from "./problems.ts"
import { freeBytes, readBody } from "./request-body.ts"
import { withHeader } from "./request-notes.ts"

/** How the events of a request come. */
const channel = Effect.map(
  Insider,
  (insider): ApiChannel => (insider === undefined ? "http" : "nats-api")
)

/** Publishes those that are valid. Returns what became of each. */
const publishValid = Effect.fnUntraced(function* (events: ReadonlyArray<ReadEvent>) {
  const valid = events.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  const published = yield* publishEvents(valid, yield* channel)
  let next = 0
  return events.map(
    (one): Publication => (Result.isFailure(one) ? one.failure : (published[next++] ?? refused([])))
  )
})

const answerOf = (publication: Publication): BatchAnswer => {
  if (publication instanceof EventConflict)
    return { status: 409, id: publication.id, detail: publication.message }
  if (publication instanceof EventNotStored) {
    const detail = withoutCommands(publication.message)
    return publication.reason === "too-large"
      ? { status: 413, detail }
      : { status: 503, detail, retryAfter: awaySeconds }
  }
  if ("_tag" in publication)
    return { status: 400, errors: answeredProblems(publication.problems, "event") }
  const { duplicate, id, seq } = publication
  return { status: duplicate ? 200 : 201, id, ...(seq === undefined ? {} : { seq }) }
}

/** Answers for one event. */
const answerOne = (
  publication: Publication
): Effect.Effect<
  PublishedEvent | Replied<PublishedEvent>,
  EventConflict | EventNotStored | Invalid
> => {
  if (publication instanceof EventConflict || publication instanceof EventNotStored)
    return Effect.fail(publication)
  if ("_tag" in publication) return Effect.fail(new Invalid({ problems: publication.problems }))
  const { duplicate, id, tenant } = publication
  return Effect.succeed(
    duplicate
      ? publication
      : new Replied({
          output: publication,
          status: 201,
          location: `/v1/tenants/${tenant}/events/${encodeURIComponent(id)}`
        })
  )
}

/** Upper bound of the problems that the answer to a batch names, in addition to the first one of each event. */
const maxFurtherProblems = 1_000

/** Leaves out what is told of the last events once enough is told. */
const withinBound = (answers: ReadonlyArray<BatchAnswer>): ReadonlyArray<BatchAnswer> => {
  let left = maxFurtherProblems
  return answers.map((answer) => {
    const { errors = [] } = answer
    const kept = errors.slice(0, 1 + left)
    left -= Math.max(0, kept.length - 1)
    return kept.length < errors.length ? { ...answer, errors: kept } : answer
  })
}

/**
 * Answers for a batch: for each of its events, unless nothing at all was stored. Where some are worth
 * sending again, the header Retry-After says when.
 */
const answerBatch = Effect.fnUntraced(function* (publications: ReadonlyArray<Publication>) {
  const events = withinBound(publications.map(answerOf))
  const count = (status: number) => events.filter((one) => one.status === status).length
  const [stored, duplicates] = [count(201), count(200)]
  const first = events.find(({ status }) => status === 503)
  if (stored + duplicates === 0 && first !== undefined)
    return yield* unavailable(`nothing was stored: ${first.detail}`)
  const waits = events.flatMap(({ retryAfter }) => retryAfter ?? [])
  if (waits.length > 0) yield* withHeader("retry-after", String(Math.max(...waits)))
  return { stored, duplicates, failed: events.length - stored - duplicates, events }
})

const withKey = (one: ReadEvent, key: string | undefined): ReadEvent =>
  key === undefined
    ? one
    : Result.flatMap(one, (item) =>
        item.event.id === undefined || item.event.id === key
          ? Result.succeed({ ...item, event: { ...item.event, id: key } })
          : Result.fail(
              refused([{ field: "id", message: "and the header Idempotency-Key differ" }])
            )
      )

/**
 * Gives an event the trace of its request, unless it names one itself: whoever is instrumented sends
 * it there (W3C Trace Context). One that is not valid counts as none.
 */
const withTrace = (one: ReadEvent, { traceparent, tracestate }: Content): ReadEvent =>
  traceparent === undefined
    ? one
    : Result.map(one, (item) => {
        const { headers = {} } = item.event
        if (Object.keys(headers).some((name) => /^trace(parent|state)$/i.test(name))) return item
        const trace = { traceparent, ...(tracestate === undefined ? {} : { tracestate }) }
        return { ...item, event: { ...item.event, headers: { ...headers, ...trace } } }
      })

const publishBody = Effect.fnUntraced(function* (
  tenant: string,
  { headers }: HttpServerRequest.HttpServerRequest,
  key: string | undefined,
  body: Uint8Array<ArrayBuffer>
) {
  const contentType = headers["content-type"] ?? "application/json"
  const trace = contentOf((name) => headers[name])
  // What is refused as a whole is in no event.
  const { events, isBatch } = yield* readEvents(tenant, contentType, body).pipe(
    Effect.tapError(() => Effect.sync(() => freeBytes(body)))
  )
  if (isBatch && key !== undefined)
    return yield* invalid("idempotency-key", "is for one event: give each event of a batch an `id`")
  const publications = yield* publishValid(events.map((one) => withTrace(withKey(one, key), trace)))
  const [first] = publications
  return isBatch || first === undefined ? yield* answerBatch(publications) : yield* answerOne(first)
})

/** Headers of a raw request that are stored with its event. */
const carried = ["traceparent", "tracestate"] as const

const rawEvent = (
  { headers }: HttpServerRequest.HttpServerRequest,
  { tenant, type }: { readonly tenant: string; readonly type: string },
  id: string | undefined
): NewEvent => ({
  tenant,
  type,
  id,
  contentType: headers["content-type"] ?? "application/json",
  headers: Object.fromEntries(
    carried.flatMap((name) => {
      const value = headers[name]
      return value === undefined ? [] : [[name, value]]
    })
  )
})

const idempotency = {
  "idempotency-key": Schema.optionalKey(
    Schema.String.annotateKey({
      description: "The id of the event, if the event itself has none. Not for a batch.",
      examples: ["invoice-42-paid"]
    })
  )
}

const publish = operation("publish", "POST", `${tenantPath}/events`, {
  scope: "events:publish",
  isRaw: true,
  refusals: ["conflict"],
  summary: "Publish an event, or up to 1,000 at once",
  description:
    "One event is answered with 201 when the broker has it, and 200 if it had it already. An array, or NDJSON with an event a line, is answered with 200 and what became of each; with 503 only if nothing was stored. Those of the array that are worth sending again have `retryAfter`, and the answer `Retry-After`. An event without a `traceparent` of its own has that of the request, with its `tracestate`.",
  params: { tenant: Tenant },
  headers: idempotency,
  payload: [
    EventInput,
    Schema.Array(EventInput).check(Schema.isMinLength(1), Schema.isMaxLength(maxBatch)),
    Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" }))
  ],
  output: [Schema.Union([Published, BatchResult]), withStatus(Published, 201)],
  run: ({ headers, params: { tenant } }) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(readBody(maxEventsBytes), (body) =>
        publishBody(tenant, request, headers["idempotency-key"], body)
      )
    )
})

const publishRaw = operation("publishRaw", "POST", `${tenantPath}/raw-events/:type`, {
  insteadOverNats: "publish the body to events.<tenant>.<type>",
  scope: "events:publish",
  isRaw: true,
  refusals: ["conflict"],
  summary: "Publish the body as it is",
  description:
    "Receivers get the body byte for byte, with its Content-Type (application/json where there is none), traceparent and tracestate.",
  params: {
    tenant: Tenant,
    type: PathText.annotateKey({
      description: "The event's type.",
      examples: ["invoice.paid"]
    })
  },
  headers: idempotency,
  payload: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "*/*" })),
  output: [Published, withStatus(Published, 201)],
  run: ({ headers, params }) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(readBody(maxEventsBytes), (body) =>
        Effect.flatMap(
          publishEvents(
            [{ event: rawEvent(request, params, headers["idempotency-key"]), body }],
            "http"
          ),
          ([one = refused([])]) => answerOne(one)
        )
      )
    )
})

/**
 * Publishing. It is part of this room, since a body need not be JSON: NDJSON, or any bytes with
 * headers of their own.
 */
export const publishing = operationGroup(
  "events",
  "What happens at a tenant and goes to its endpoints.",
  publish,
  publishRaw
)
