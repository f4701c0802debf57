import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"

/** Gives the answer of this request a header. */
export const withHeader = (name: string, value: string) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, name, value))
  )
