import { Context, Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"

/** What is found out about a request on its way, for the access log. */
export interface Notes {
  /** The id of its token, if that is valid. */
  token: string | undefined
  /** Its status, if that differs from that of the answer's schema. */
  status: number | undefined
}

/** The notes of the request that is being answered. */
export const RequestNotes = Context.Reference<Notes>("petrel/api/RequestNotes", {
  defaultValue: () => ({ token: undefined, status: undefined })
})

/** Gives the answer of this request headers. */
export const withHeaders = (headers: Readonly<Record<string, string>>) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeaders(response, headers))
  )

/** Gives the answer of this request a header. */
export const withHeader = (name: string, value: string) => withHeaders({ [name]: value })
