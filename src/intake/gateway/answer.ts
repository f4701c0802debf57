import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { timers } from "../../time/timers.ts"
import type { NotNow } from "./admission.ts"
import type { Outcome } from "./counts.ts"
import type { LiveSource } from "./live-sources.ts"
import { declaredLength } from "./read-body.ts"

/** What a request is answered with. */
export interface Answer {
  readonly status: number
  readonly outcome: Outcome
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Seconds for which a provider should stay away when the broker cannot store. */
const retryAfterS = 2

export const unavailable = (
  outcome: "broker-unavailable" | "not-verifiable",
  body: string
): Answer => ({
  status: 503,
  outcome,
  headers: { "retry-after": String(retryAfterS) },
  body
})

export const noStore = unavailable("broker-unavailable", "it cannot be stored now: send it again")

export const notReadable = unavailable(
  "not-verifiable",
  "the source's settings are not known to this version"
)

export const unknownSource: Answer = {
  status: 404,
  outcome: "unknown-source",
  body: "there is no such source"
}

/** @param max bytes of an event. */
export const tooLarge = (max: number): Answer => ({
  status: 413,
  outcome: "too-large",
  body: `an event may have ${max} bytes`
})

/** The answer to what is not taken now: 429 only where the provider is known to come again after it. */
export const notNow = (
  { provider }: Pick<LiveSource, "provider">,
  { outcome, retryAfterS }: NotNow
): Answer => ({
  status: outcome === "rate-limited" && provider?.retries429 === true ? 429 : 503,
  outcome,
  headers: { "retry-after": String(retryAfterS) }
})

/** Bytes of a body that Node reads after an answer, so that the connection can be used again. */
const maxDrained = 64 * 1024
/** Of a longer one, bytes and time for which it is read. A client that still writes reads no answer. */
const maxLingered = 16 * 1024 * 1024
const lingerMs = 2_000

/** Reads the rest of a long body without keeping it, for a while. Then its connection is destroyed. */
const linger = (request: IncomingMessage): void => {
  let left = maxLingered
  const late = timers.after(lingerMs, () => request.destroy())
  late.unref()
  request.on("data", (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) request.destroy()
  })
  for (const event of ["end", "close"]) request.once(event, () => timers.cancel(late))
}

/**
 * Sends an answer, if there is somebody who can get it.
 *
 * @param isLast closes the connection after it.
 */
export const send = (
  request: IncomingMessage,
  response: ServerResponse,
  answer: Omit<Answer, "outcome">,
  isLast: boolean
): void => {
  if (response.headersSent || response.destroyed) return
  const { body = "", headers = {}, status } = answer
  response.writeHead(status, {
    ...(body === "" ? {} : { "content-type": "text/plain; charset=utf-8" }),
    ...headers,
    ...(isLast ? { connection: "close" } : {}),
    ...(status === 204 ? {} : { "content-length": Buffer.byteLength(body) })
  })
  response.end(body)
  const length = declaredLength(request) ?? Number.POSITIVE_INFINITY
  if (!request.complete && length > maxDrained) linger(request)
}

/** The answer to a client whose connection another one has got. */
export const crowded =
  "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

/** Answers what is no request, and closes its connection. */
export const refuseConnection = (error: Error, socket: Socket): void => {
  const isLate = "code" in error && error.code === "ERR_HTTP_REQUEST_TIMEOUT"
  if (socket.writable)
    socket.end(
      `HTTP/1.1 ${isLate ? "408 Request Timeout" : "400 Bad Request"}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`
    )
  timers.after(500, () => socket.destroy()).unref()
}
