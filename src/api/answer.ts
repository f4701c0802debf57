import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { RequestNotes } from "./request-notes.ts"

/** Gives the answer of this request a header. */
export const withHeader = (name: string, value: string) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, name, value))
  )

/** Gives the answer of this request another status. */
export const withStatus = (status: number) =>
  Effect.andThen(
    noteStatus(status),
    HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(HttpServerResponse.setStatus(response, status))
    )
  )

const noteStatus = (status: number) =>
  Effect.map(RequestNotes, (notes) => {
    notes.status = status
  })
