import { Effect, Schema } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import { Bytes, Following, Replied, Unchanged } from "../operations/operation.ts"
import { follow } from "./following.ts"
import { RequestNotes } from "./request-notes.ts"
import { withHeader } from "./with-header.ts"

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
