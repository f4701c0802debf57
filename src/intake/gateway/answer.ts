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

const cannotStore = "it cannot be stored now: send it again"

export const noStore = unavailable("broker-unavailable", cannotStore)

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

const notNowTexts = {
  "rate-limited": "the source takes no more for now: send it again later",
  overloaded: "too much comes at once: send it again",
  "broker-unavailable": cannotStore
}

/** The answer to what is not taken now: 429 only where the provider is known to come again after it. */
export const notNow = (
  { provider }: Pick<LiveSource, "provider">,
  { outcome, retryAfterS }: NotNow
): Answer => ({
  status: outcome === "rate-limited" && provider?.retries429 === true ? 429 : 503,
  outcome,
  headers: { "retry-after": String(retryAfterS) },
  body: notNowTexts[outcome]
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

/** Returns an answer as bytes of HTTP, for a connection that is closed after it. */
const lastAnswer = (status: string, body: string, headers = ""): string =>
  `HTTP/1.1 ${status}\r\n${headers}connection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** The answer to a client whose connection another one has got. */
export const crowded = lastAnswer(
  "503 Service Unavailable",
  "there are too many connections: connect again",
  "retry-after: 1\r\n"
)

/** Answers to requests that are none, by the code of the error. */
const unparsable: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: lastAnswer("408 Request Timeout", "the request did not arrive in time"),
  HPE_HEADER_OVERFLOW: lastAnswer(
    "431 Request Header Fields Too Large",
    "the headers are too large"
  )
}
const unreadable = lastAnswer("400 Bad Request", "this is no HTTP request that can be read")

/** Answers what is no request, and closes its connection. */
export const refuseConnection = (error: Error, socket: Socket): void => {
  const code = "code" in error ? String(error.code) : ""
  if (socket.writable) socket.end(unparsable[code] ?? unreadable)
  timers.after(500, () => socket.destroy()).unref()
}
