import type { Clock } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import type { Delivery } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import { withForwarded } from "../../domain/header-names.ts"
import type { AttemptOutcome } from "../../domain/outcome.ts"
import type { BodyFormat } from "../../domain/settings/endpoint-table.ts"
import { attemptTraceparent } from "../../domain/trace-context.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import { classify } from "../../policy/classify.ts"
import { alertMessage } from "../../text/alert-text.ts"
import type { AttemptRequest, Running } from "./attempt.ts"
import type { HttpTransport } from "./egress.ts"
import type { AnswerLevel } from "./kept-answer.ts"
import { keptResult, secretsOf } from "./kept-answer.ts"

/** Characters that mean something in a message of Slack, and what stands for them. */
const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }

/**
 * Returns a body as a receiver wants it: for `slack` a message with the alert in words, or else the
 * body's own text.
 */
export const formatted = (body: Uint8Array, format: BodyFormat): Uint8Array => {
  switch (format) {
    case "slack": {
      const text = Buffer.from(body).toString("utf8")
      const message = (alertMessage(text) ?? text).replaceAll(
        /[&<>]/g,
        (one) => escapes[one] ?? one
      )
      return Buffer.from(JSON.stringify({ text: message }))
    }
  }
}

const noOrigins: ReadonlyArray<string> = []

/** What sends, the clock, and how much of a tenant's answers is kept. */
export interface Sender {
  readonly transport: HttpTransport
  readonly clock: Clock.Clock
  readonly answers: (tenant: string) => AnswerLevel
  /** True where receivers of a sampled trace get the attempt's span as its parent. */
  readonly traces: boolean
}

const overload: ReadonlyArray<number | undefined> = [429, 503]

/** `Petrel/<major>.<minor>`. */
const userAgent = `Petrel/${packageJson.version.replace(/\.\d+$/, "")}`
const defaultContentType = "application/json"

/** Returns an endpoint's own headers and those that are forwarded to it. */
const ownAndForwarded = (
  { content: { forwarded } }: Delivery,
  { forwards, ownHeaders }: LiveEndpoint
): ReadonlyArray<string> =>
  forwarded === undefined || forwards === undefined
    ? ownHeaders
    : withForwarded(ownHeaders, forwarded, forwards)

/** A delivery and the bytes to send. */
interface Sending {
  readonly body: Uint8Array
  readonly delivery: Delivery
}

/**
 * Returns the request of an attempt, signed.
 *
 * @param number of this attempt within its round, from 1.
 * @param now ms since the epoch.
 * @param traces see {@link Sender}.
 */
export const requestFor = (
  { body: bytes, delivery }: Sending,
  endpoint: LiveEndpoint,
  number: number,
  now: number,
  traces: boolean
): AttemptRequest => {
  const { format } = endpoint.config
  const body = format === undefined ? bytes : formatted(bytes, format)
  const signer = endpoint.signer()
  const seconds = Math.floor(now / 1000)
  const headers = signer.sign(delivery.event, delivery.type, seconds, body, now)
  const { contentType, traceparent, tracestate } = delivery.content
  headers.push("content-type", contentType ?? defaultContentType)
  headers.push("user-agent", userAgent, "petrel-attempt", String(number))
  // A receiver that takes each id once can tell by it what an operator has sent again on purpose.
  if (delivery.round !== firstRound) headers.push("petrel-round", delivery.round)
  if (traceparent !== undefined)
    headers.push(
      "traceparent",
      traces ? attemptTraceparent(traceparent, delivery, number) : traceparent
    )
  if (tracestate !== undefined) headers.push("tracestate", tracestate)
  const { connectTimeout: connectTimeoutMs, timeout: timeoutMs } = endpoint.policyFor(delivery.type)
  const { redirects, redirectsTo = noOrigins, tenant } = endpoint.config
  return {
    tenant,
    target: endpoint.target,
    headers,
    ownHeaders: ownAndForwarded(delivery, endpoint),
    body,
    connectTimeoutMs,
    timeoutMs,
    redirects,
    redirectsTo
  }
}

/**
 * Signs a delivery with a fresh timestamp, POSTs it, and classifies the answer. The id and the
 * bytes are the same in each attempt.
 *
 * @param number of this attempt within its round, from 1.
 */
export const startSending = (
  sender: Sender,
  sending: Sending,
  endpoint: LiveEndpoint,
  number: number,
  done: (sent: AttemptOutcome) => void
): Running => {
  const now = sender.clock.currentTimeMillisUnsafe()
  return sendRequest(
    sender,
    requestFor(sending, endpoint, number, now, sender.traces),
    sending,
    endpoint,
    now,
    done
  )
}

/**
 * POSTs a request that `requestFor` has made, and classifies the answer.
 *
 * @param now when it was signed, ms since the epoch.
 */
export const sendRequest = (
  { answers, transport }: Sender,
  request: AttemptRequest,
  { delivery }: Sending,
  endpoint: LiveEndpoint,
  now: number,
  done: (sent: AttemptOutcome) => void
): Running => {
  const { headers } = request
  const { ownHeaders, target } = endpoint
  const { policy } = endpoint.policyFor(delivery.type)
  const signature = endpoint.signer().signatureIn(headers)
  return transport.start(request, (result) => {
    const { gone, rule, verdict } = classify(result, policy)
    const overloaded = overload.includes(result.status) || result.error?.class === "timeout"
    const kept = keptResult(result, answers(delivery.tenant), () =>
      secretsOf({ ownHeaders, signature, secrets: endpoint.config.secrets, path: target.path })
    )
    // By its duration: a clock that steps meanwhile would put the retry off by as much.
    const at = now + Math.round(result.durationMs)
    done({ result: kept, verdict, gone, rule, overloaded, at })
  })
}
