import { ByteSize, Effect } from "effect"
import { HttpIncomingMessage, HttpServerError, HttpServerRequest } from "effect/http"
import { bytesText } from "../operations/text/bytes.ts"
import { unavailable } from "./failures.ts"
import { InvalidRequest, TooLarge } from "./problems.ts"

/** Upper bound of the large bodies in memory at the same time, bytes. */
const maxTogether = 256 * 1024 * 1024
let together = 0

const isTooLarge = (error: HttpServerError.HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

/** Reads the body of the request. */
const readWithin = (max: number) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => request.arrayBuffer).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(max)),
    Effect.mapError((error) =>
      HttpServerError.isHttpServerError(error) && isTooLarge(error)
        ? new TooLarge({ detail: `the body is larger than the ${bytesText(max)} taken here` })
        : new InvalidRequest({ detail: "the body ended before it was complete" })
    ),
    Effect.map((buffer) => new Uint8Array(buffer))
  )

/**
 * Reads a large body and uses it. Answers 413 if it is larger than `max` bytes, and 503 while the
 * bodies that are in use take too much memory together.
 */
export const withLargeBody = <A, E, R>(
  max: number,
  use: (body: Uint8Array) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const declared = Number(headers["content-length"] ?? max)
    const bytes = Math.min(Number.isFinite(declared) ? declared : max, max)
    if (together + bytes > maxTogether)
      return yield* unavailable("too much is being published at the same time", 1)
    together += bytes
    return yield* readWithin(max).pipe(
      Effect.flatMap(use),
      Effect.ensuring(
        Effect.sync(() => {
          together -= bytes
        })
      )
    )
  })
