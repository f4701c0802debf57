import { Effect, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { Problem } from "../../domain/problem.ts"
import type { NewEvent } from "../../operations/events/new-event.ts"
import { EventNotStored } from "../../operations/events/publish-event.ts"
import type { EventToPublish, Publication } from "../../operations/events/publish-events.ts"
import { EventConflict, publishEvents } from "../../operations/events/publish-events.ts"
import { readInput } from "../../operations/input.ts"
import { textOf } from "../../operations/text/utf8.ts"
import { withHeader, withStatus } from "../answer.ts"
import { Api } from "../definition/api.ts"
import type { BatchAnswer } from "../definition/events.ts"
import { EventInput, maxBatch, maxEventsBytes } from "../definition/events.ts"
import { parseExact } from "../exact-json.ts"
import { listing, unavailable, withoutCommands } from "../failures.ts"
import { Conflict, TooLarge } from "../problems.ts"
import { withLargeBody } from "../request-body.ts"
import { invalidRequest } from "../validation.ts"

/** Seconds after which an event that was not stored is worth publishing again. */
const retryAfter = 2

const ndjson = /^application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines)$/

const bodyOf = ({ base64, data, text }: EventInput): Uint8Array => {
  if (text !== undefined) return Buffer.from(text, "utf8")
  return base64 === undefined
    ? Buffer.from(JSON.stringify(data), "utf8")
    : Buffer.from(base64, "base64")
}

const usualType = ({ base64, text }: EventInput): string => {
  if (text !== undefined) return "text/plain; charset=utf-8"
  return base64 === undefined ? "application/json" : "application/octet-stream"
}

type Read = Result.Result<EventToPublish, ReadonlyArray<Problem>>

const readEvent = (tenant: string, value: unknown): Read =>
  Result.map(readInput(EventInput, value), (input) => {
    const { contentType = usualType(input), headers, id, type } = input
    const event: NewEvent = { tenant, type, id, contentType, headers }
    return { event, body: bodyOf(input) }
  })

const notJson = (field: string): Problem => ({ field, message: "is no valid JSON" })

const parsed = (text: string): Result.Result<unknown, ReadonlyArray<Problem>> => {
  try {
    return Result.succeed(parseExact(text))
  } catch {
    return Result.fail([notJson("")])
  }
}

/** The events of a request, and whether it is answered as a batch. */
interface Publishing {
  readonly events: ReadonlyArray<Read>
  readonly isBatch: boolean
}

const readLines = (tenant: string, text: string): Publishing => ({
  events: text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => Result.flatMap(parsed(line), (value) => readEvent(tenant, value))),
  isBatch: true
})

const batchProblem = ({ events }: Publishing): Problem | undefined => {
  if (events.length === 0) return { field: "", message: "must have an event at least" }
  return events.length > maxBatch
    ? {
        field: "",
        message: `must have at most ${maxBatch} events, not ${events.length}: send several`
      }
    : undefined
}

/** Reads the events in the body of a request. */
const readEvents = (
  tenant: string,
  contentType: string,
  body: Uint8Array
): Result.Result<Publishing, ReadonlyArray<Problem>> => {
  const text = textOf(body)
  if (text === undefined)
    return Result.fail([{ field: "", message: "must be UTF-8: send other bytes as `base64`" }])
  const [media = ""] = contentType.toLowerCase().split(";")
  if (ndjson.test(media.trim())) return Result.succeed(readLines(tenant, text))
  return Result.map(parsed(text), (value) =>
    Array.isArray(value)
      ? { events: value.map((one) => readEvent(tenant, one)), isBatch: true }
      : { events: [readEvent(tenant, value)], isBatch: false }
  )
}

const refused = (problems: ReadonlyArray<Problem>): Publication => ({ _tag: "Refused", problems })

/** Publishes those that are valid. Returns what became of each. */
const publishValid = Effect.fnUntraced(function* (events: ReadonlyArray<Read>) {
  const valid = events.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  const published = yield* listing(publishEvents(valid))
  let next = 0
  return events.map(
    (one): Publication =>
      Result.isFailure(one) ? refused(one.failure) : (published[next++] ?? refused([]))
  )
})

const answerOf = (publication: Publication): BatchAnswer => {
  if (publication instanceof EventConflict)
    return { status: 409, id: publication.id, detail: publication.message }
  if (publication instanceof EventNotStored)
    return {
      status: publication.reason === "too-large" ? 413 : 503,
      detail: withoutCommands(publication.message)
    }
  if ("_tag" in publication) return { status: 400, errors: publication.problems }
  const { duplicate, id, seq } = publication
  return { status: duplicate ? 200 : 201, id, ...(seq === undefined ? {} : { seq }) }
}

/** Answers for one event. */
const answerOne = Effect.fnUntraced(function* (publication: Publication) {
  if (publication instanceof EventConflict)
    return yield* new Conflict({ detail: publication.message })
  if (publication instanceof EventNotStored) {
    const detail = withoutCommands(publication.message)
    if (publication.reason === "too-large") return yield* new TooLarge({ detail })
    return yield* unavailable(detail, retryAfter)
  }
  if ("_tag" in publication) return yield* invalidRequest(publication.problems)
  if (!publication.duplicate) {
    yield* withStatus(201)
    const { id, tenant } = publication
    yield* withHeader("location", `/v1/tenants/${tenant}/events/${encodeURIComponent(id)}`)
  }
  return publication
})

/** Answers for a batch: for each of its events, unless nothing at all was stored. */
const answerBatch = Effect.fnUntraced(function* (publications: ReadonlyArray<Publication>) {
  const events = publications.map(answerOf)
  const count = (status: number) => events.filter((one) => one.status === status).length
  const [stored, duplicates] = [count(201), count(200)]
  const first = events.find(({ status }) => status === 503)
  if (stored + duplicates === 0 && first !== undefined)
    return yield* unavailable(`nothing was stored: ${first.detail}`, retryAfter)
  return { stored, duplicates, failed: events.length - stored - duplicates, events }
})

const withKey = (one: Read, key: string | undefined): Read =>
  key === undefined
    ? one
    : Result.flatMap(one, (item) =>
        item.event.id === undefined || item.event.id === key
          ? Result.succeed({ ...item, event: { ...item.event, id: key } })
          : Result.fail([{ field: "id", message: "and the header Idempotency-Key differ" }])
      )

const publish = Effect.fnUntraced(function* (
  tenant: string,
  contentType: string,
  key: string | undefined,
  body: Uint8Array
) {
  const read = readEvents(tenant, contentType, body)
  if (Result.isFailure(read)) return yield* invalidRequest(read.failure)
  const { events, isBatch } = read.success
  const problem = isBatch ? batchProblem(read.success) : undefined
  if (problem !== undefined) return yield* invalidRequest([problem])
  if (isBatch && key !== undefined)
    return yield* invalidRequest([
      { field: "idempotency-key", message: "is for one event: give each event of a batch an `id`" }
    ])
  const publications = yield* publishValid(events.map((one) => withKey(one, key)))
  const [first] = publications
  return isBatch || first === undefined ? yield* answerBatch(publications) : yield* answerOne(first)
})

/** Headers of a raw request that are stored with its event. */
const carried = ["traceparent", "tracestate"] as const

const rawEvent = (
  { headers }: HttpServerRequest.HttpServerRequest,
  { event: type, tenant }: { readonly tenant: string; readonly event: string },
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

/** Carries out the routes of events. */
export const eventsHandlers = HttpApiBuilder.group(Api, "events", (handlers) =>
  handlers
    .handleRaw("publish", ({ headers, params: { tenant }, request }) =>
      withLargeBody(maxEventsBytes, (body) =>
        publish(
          tenant,
          request.headers["content-type"] ?? "application/json",
          headers["idempotency-key"],
          body
        )
      )
    )
    .handleRaw("publishRaw", ({ headers, params, request }) =>
      withLargeBody(maxEventsBytes, (body) =>
        listing(
          publishEvents([{ event: rawEvent(request, params, headers["idempotency-key"]), body }])
        ).pipe(Effect.flatMap(([one = refused([])]) => answerOne(one)))
      )
    )
)
