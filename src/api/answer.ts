import { Context, Deferred, Effect, Schedule, Schema, Stream } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import type { BrokerError } from "../broker/broker-error.ts"
import { Caller } from "../operations/caller.ts"
import type { LiveMessage } from "../operations/operation.ts"
import { Bytes, Following, Replied, Unchanged } from "../operations/operation.ts"
import { RequestNotes, withHeader } from "./request-notes.ts"
import { holdSlot, Slots } from "./tokens/caller-limits.ts"

/** Completes when the server begins to stop, so that answers without an end do not hold it up. */
export class Stopping extends Context.Service<Stopping, Deferred.Deferred<void>>()(
  "petrel/api/Stopping"
) {}

/** Pause between the lines that keep a quiet connection open. */
const heartbeat = "15 seconds"
/** Pause between looks whether the token of a follower is still valid. */
const checkedEvery = "500 millis"

const bytes = (text: string): Uint8Array => Buffer.from(text, "utf8")

/** Pause before a client that was cut off comes back, ms. */
const reconnectMs = 2_000

/** Returns a server-sent event. JSON has no line breaks. */
const event = (name: string, data: object, id?: number): string =>
  `event: ${name}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`

/** Returns a message as a server-sent event. One without data only tells the client where it is. */
const asEvents = (message: LiveMessage): Uint8Array => {
  switch (message.tells) {
    case "position":
      return bytes(`id: ${message.seq}\n\n`)
    case "failure":
      return bytes(event("failure", { seq: message.seq, ...message.record }, message.seq))
    case "dropped": {
      const { tells: _, ...gap } = message
      return bytes(event("dropped", gap))
    }
  }
}

/**
 * Answers with failures until the client leaves, its token is revoked, the server stops, or failures
 * may have been missed.
 */
export const follow = Effect.fnUntraced(function* <R>(
  failures: Stream.Stream<LiveMessage, BrokerError, R>
) {
  const stopping = yield* Stopping
  const caller = yield* Caller
  yield* holdSlot((yield* Slots).streams, caller, {
    bound: "streams",
    things: "streams of failures",
    advice: "end some of them; one stream may follow all endpoints of the tenant"
  })
  const context = yield* Effect.context<R>()
  const invalid = Effect.repeat(Effect.sleep(checkedEvery), { until: () => !caller.isValid() })
  const beats = Stream.fromSchedule(Schedule.spaced(heartbeat)).pipe(
    Stream.map(() => bytes(": still there\n\n"))
  )
  const lines = Stream.make(bytes(`: following\nretry: ${reconnectMs}\n\n`)).pipe(
    Stream.concat(Stream.map(failures, asEvents)),
    Stream.merge(beats, { haltStrategy: "left" }),
    Stream.interruptWhen(Effect.raceFirst(Deferred.await(stopping), Effect.asVoid(invalid))),
    Stream.provideContext(context)
  )
  return HttpServerResponse.stream(lines, {
    contentType: "text/event-stream",
    // Or else nginx keeps what comes until it has some KiB: a client does not even get the headers.
    headers: { "x-accel-buffering": "no" }
  })
})

const firstRefusal = 400

/** Gives the answer of this request another status, unless making the answer fails. */
const withStatus = (status: number) =>
  Effect.andThen(
    noteStatus(status),
    HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(
        response.status >= firstRefusal ? response : HttpServerResponse.setStatus(response, status)
      )
    )
  )

const noteStatus = (status: number) =>
  Effect.map(RequestNotes, (notes) => {
    notes.status = status
  })

/** The header of an answer that names a revision. */
export const etag = {
  etag: Schema.String.annotateKey({ description: "Its revision, in quotes." })
}

const tagOf = (revision: number): string => `"${revision}"`

/** Answers with what an operation returned. */
export const answerWith = Effect.fnUntraced(function* (result: unknown) {
  if (result instanceof Following) return yield* follow(result.failures)
  if (result instanceof Bytes)
    return HttpServerResponse.uint8Array(result.body, {
      contentType: result.contentType,
      // A receiver's HTML must not run as a page of this server.
      headers: { "content-disposition": "attachment" }
    })
  if (result instanceof Unchanged)
    return HttpServerResponse.empty({ status: 304, headers: { etag: tagOf(result.revision) } })
  if (!(result instanceof Replied)) return result
  const { isRepeated, location, output, revision, status } = result
  if (isRepeated === true) yield* withHeader("idempotency-replayed", "true")
  if (status !== undefined) yield* withStatus(status)
  if (location !== undefined) yield* withHeader("location", location)
  return revision === undefined
    ? output
    : HttpApiSchema.withHeaders({ body: output, headers: { etag: tagOf(revision) } })
})
