import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"

/** Gives the answer of this request headers. */
export const withHeaders = (headers: Readonly<Record<string, string>>) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeaders(response, headers))
  )

/** Gives the answer of this request a header. */
export const withHeader = (name: string, value: string) => withHeaders({ [name]: value })
