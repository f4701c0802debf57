import { Schema } from "effect"

/** Why an attempt got no usable answer. */
export const ErrorClass = Schema.Literals([
  /** The whole attempt took longer than the endpoint's time-out. */
  "timeout",
  /** No connection within the connect time-out. */
  "connect-timeout",
  /** Refused, reset, unreachable, or closed before an answer. */
  "connection",
  /** The host name did not resolve. */
  "dns",
  /** The TLS handshake or the certificate failed. */
  "tls",
  /** The address is private, loopback, link-local or otherwise not allowed. */
  "address",
  /** What came back is not HTTP. */
  "protocol",
  /** A redirect that is not followed: too many hops, no usable location, or from https to http. */
  "redirect"
])
export type ErrorClass = typeof ErrorClass.Type

/** What the receiver answered, as far as it is kept. */
export const Response = Schema.Struct({
  /** A few headers kept by name, lower case. */
  headers: Schema.Record(Schema.String, Schema.String),
  /** The first 1 KiB, as text. */
  body: Schema.String,
  /** Bytes read; reading stops at 64 KiB. */
  bytes: Schema.Number
})
export type Response = typeof Response.Type

/** How one attempt went, before anybody judges it. Times in ms. */
export interface AttemptResult {
  readonly status?: number | undefined
  readonly error?: { readonly class: ErrorClass; readonly message: string } | undefined
  readonly response?: Response | undefined
  /** The Retry-After header as it came. */
  readonly retryAfter?: string | undefined
  readonly durationMs: number
  readonly connectMs?: number | undefined
  readonly firstByteMs?: number | undefined
}

/** Why a delivery ended without success. */
export const DeadReason = Schema.Literals([
  /** The receiver's answer says that trying again will not help. */
  "permanent",
  /** The policy's attempts are used up. */
  "attempts",
  /** The give-up deadline has passed, or the next attempt would be after it. */
  "deadline",
  "endpoint-disabled",
  "endpoint-removed",
  /** The endpoint's circuit was open, and it wants nothing to wait for it then. */
  "circuit-open",
  /** More waits for the endpoint already than its backlog takes. */
  "backlog-full",
  /** The delivery makes its worker fail each time. */
  "defect",
  /** What a further round was to send is not kept any more. The only end that leaves no dead letter. */
  "gone"
])
export type DeadReason = typeof DeadReason.Type
