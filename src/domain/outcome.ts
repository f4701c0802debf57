import { Schema } from "effect"

/** Why an attempt got no usable answer. */
export const ErrorClass = Schema.Literals([
  /** The attempt exceeded the endpoint's time-out. */
  "timeout",
  /** No connection within the connect time-out. */
  "connect-timeout",
  /** Nothing listens at the address and port, or a firewall refuses for it. */
  "refused",
  /** The connection was reset or closed before the answer was complete. */
  "reset",
  /** No route leads to the address. */
  "unreachable",
  /** The connection failed in any other way. */
  "connection",
  /** The host name did not resolve. */
  "dns",
  /** The receiver's certificate is not valid for the host, or nobody trusts it. */
  "certificate",
  /** The TLS handshake failed for any other reason. */
  "handshake",
  /** The address is private, loopback, link-local or otherwise not allowed. */
  "address",
  /** The answer is not HTTP. */
  "protocol",
  /**
   * A redirect that is not followed: too many hops, no usable location, to an origin that the
   * endpoint does not name, or from https to http.
   */
  "redirect",
  /** Its worker ended the attempt, because the endpoint was removed or disabled meanwhile. */
  "interrupted"
])
export type ErrorClass = typeof ErrorClass.Type

/** Families of error classes, by the name that a policy may use for all of them. */
export const errorFamilies = {
  connection: ["refused", "reset", "unreachable", "connection"],
  tls: ["certificate", "handshake"]
} as const satisfies Readonly<Record<string, ReadonlyArray<ErrorClass>>>

/** The part of the receiver's answer that is kept. */
export const Response = Schema.Struct({
  headers: Schema.Record(Schema.String, Schema.String).annotateKey({
    description: "A selection of headers, by lower-case name."
  }),
  body: Schema.String.annotateKey({ description: "The first 1 KiB, as text." }),
  bytes: Schema.Number.annotateKey({ description: "Bytes read; reading stops at 64 KiB." })
})
export type Response = typeof Response.Type

/** A redirect that an attempt followed. */
export const Redirect = Schema.Struct({
  status: Schema.Int.annotateKey({ description: "The status of the answer that redirected." }),
  to: Schema.String.annotateKey({
    description: "Where to, without the query, which often carries tokens."
  })
})
export type Redirect = typeof Redirect.Type

/** The result of one attempt, before classification. Times in ms. */
export interface AttemptResult {
  readonly status?: number | undefined
  readonly error?: { readonly class: ErrorClass; readonly message: string } | undefined
  readonly response?: Response | undefined
  /** The redirects that were followed, in order; absent if none was. */
  readonly redirects?: ReadonlyArray<Redirect> | undefined
  /** The Retry-After header, unparsed. */
  readonly retryAfter?: string | undefined
  readonly durationMs: number
  readonly connectMs?: number | undefined
  readonly firstByteMs?: number | undefined
}

/** Why a delivery ended without success. */
export const DeadReason = Schema.Literals([
  /** The receiver's answer rules out that a retry helps. */
  "permanent",
  /** The policy's attempts are used up. */
  "attempts",
  /** The limit that the policy sets for the answered status alone is reached. */
  "status-limit",
  /** The give-up deadline has passed, or would pass before the next attempt. */
  "deadline",
  "endpoint-disabled",
  "endpoint-removed",
  /** The endpoint's circuit was open, and its `onOpen` is `dead-letter`. */
  "circuit-open",
  /** The endpoint's backlog is full. */
  "backlog-full",
  /** The delivery crashes its worker each time. */
  "defect",
  /** The event was removed while the delivery waited for its endpoint. Its dead letter is empty. */
  "event-gone",
  /**
   * The event that a further round was to send is no longer kept. The only reason without a dead
   * letter.
   */
  "gone"
])
export type DeadReason = typeof DeadReason.Type

/** Why an endpoint is given up at once. Otherwise the reason says what failed for how long. */
export const goneReason = "the receiver answered 410 Gone"

/** A status or class (`404`, `5xx`) for which a policy has a rule of its own. */
export interface RuledStatus {
  readonly status: string
  /** Answers in a row of an endpoint that raise an alert. */
  readonly alert: number | undefined
}

/** The outcome of an attempt, and when the attempt ended (`at`, ms since the epoch). */
export interface AttemptOutcome {
  /** The part of the result that is kept, without secrets. */
  readonly result: AttemptResult
  readonly verdict: Verdict
  /** The receiver refuses all further deliveries. */
  readonly gone: boolean
  /** Present if the policy has a rule for the answered status. */
  readonly rule?: RuledStatus | undefined
  /** The receiver is overloaded: it answered 429 or 503, or timed out. */
  readonly overloaded: boolean
  readonly at: number
  /**
   * Present if the request was a probe: see `isProbe` of policy/circuit.ts. `nextAt` is when the
   * circuit allows the next request, ms since the epoch.
   */
  readonly probe?: { readonly nextAt: number }
}

/** What an HTTP answer means for the delivery. */
export const Verdict = Schema.Literals(["delivered", "retry", "fail"])
export type Verdict = typeof Verdict.Type

/** What an attempt without a usable answer means for the delivery. */
export const ErrorVerdict = Schema.Literals(["retry", "fail"])
export type ErrorVerdict = typeof ErrorVerdict.Type
