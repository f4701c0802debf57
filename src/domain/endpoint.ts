import { Schema } from "effect"
import { AlertChoice, Contact } from "./alert.ts"
import { Circuit, type CircuitSettings, circuitSettings } from "./circuit.ts"
import { PositiveDuration } from "./duration.ts"
import { ForwardHeaders } from "./forwarded-headers.ts"
import { HeaderNames, headerNameProblem, OwnHeaderName } from "./header-names.ts"
import { everyKey } from "./record.ts"
import { RetryPolicy } from "./retry-policy.ts"
import { Token } from "./token.ts"
import { isOwnType, TypeFilter, typeFilterProblem } from "./type-filter.ts"

const isHttpUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return "must be a URL such as https://example.com/hooks"
  const url = new URL(text)
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return "must be an http or https URL such as https://example.com/hooks"
  if (url.username !== "" || url.password !== "")
    return "must not carry a user or password; send them as a header of your own"
  return undefined
}

const HeaderValue = Schema.String.check(
  Schema.makeFilter((value: string) =>
    /^[\t\x20-\x7e\x80-\xff]{0,4096}$/.test(value) ? undefined : "must be a valid header value"
  )
)

/**
 * How requests are signed: Standard Webhooks v1 or v1a, Stripe style, GitHub style, or not at all.
 */
export const Scheme = Schema.Literals(["standard", "standard-ed25519", "stripe", "github", "none"])
export type Scheme = typeof Scheme.Type

/** How bodies are written for a receiver that wants them otherwise: as chat tools take messages. */
export const BodyFormat = Schema.Literals(["slack"])
export type BodyFormat = typeof BodyFormat.Type

/**
 * A signing secret. A rotation sets `until` (ms since the epoch) on the secret that it replaces.
 */
export const Secret = Schema.Struct({
  value: Schema.String,
  createdAt: Schema.Number,
  until: Schema.optionalKey(Schema.Number)
})
export type Secret = typeof Secret.Type

/** Why and since when (ms since the epoch) an endpoint is disabled or suspended. */
export const Stopped = Schema.Struct({
  at: Schema.Number,
  reason: Schema.String,
  by: Schema.String
})
export type Stopped = typeof Stopped.Type

/**
 * Since when (ms since the epoch) an operator holds back an endpoint's deliveries, to be sent
 * later.
 */
export const Paused = Schema.Struct({
  at: Schema.Number,
  by: Schema.String,
  reason: Schema.optionalKey(Schema.String)
})
export type Paused = typeof Paused.Type

/** The sustained rate of requests to an endpoint, and the burst after a pause. */
export const RateLimit = Schema.Struct({
  perSecond: Schema.Finite.check(Schema.isBetween({ minimum: 1 / 3600, maximum: 100_000 })),
  burst: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))
})
export type RateLimit = typeof RateLimit.Type

/**
 * Upper bound of an endpoint's event types: the router compares each new event type of the tenant
 * with all of them.
 */
export const maxTypes = 200

const tooManyTypes = ({ length }: ReadonlyArray<string>): string | undefined =>
  length <= maxTypes ? undefined : `must be at most ${maxTypes} event types, not ${length}`

const Retry = Schema.Union([Schema.String, RetryPolicy])

/** Upper bound of an endpoint's policies for event types: its configuration is one message. */
export const maxRetryFor = 20

const RetryFor = Schema.Record(Schema.String, Retry).check(everyKey(typeFilterProblem))

/** An endpoint's configuration: the value under `<tenant>.<endpoint>` in the endpoints bucket. */
export const Endpoint = Schema.Struct({
  v: Schema.Literal(1),
  tenant: Token,
  id: Token,
  /**
   * Created each time an endpoint of this name is added, so that old deliveries do not go to a new
   * endpoint.
   */
  generation: Schema.String,
  url: Schema.String.check(Schema.makeFilter(isHttpUrl)),
  /** Subscribed event types, as NATS wildcards. (Default: all) */
  types: Schema.NonEmptyArray(TypeFilter).check(Schema.makeFilter(tooManyTypes)),
  sign: Scheme,
  /** Name of the signature header in Stripe style. (Default: petrel-signature) */
  signatureHeader: Schema.optionalKey(OwnHeaderName),
  headerNames: Schema.optionalKey(HeaderNames),
  /** Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  format: Schema.optionalKey(BodyFormat),
  /** Newest first. Empty only for `sign: none`. */
  secrets: Schema.Array(Secret),
  /** The name of a preset, or an inline policy. (Default: "default") */
  retry: Retry,
  /**
   * Policies of some event types, by type filter. Of the filters that match a type, the most exact
   * one wins (`TypeChoice`). (Default: `retry` is the policy of all types)
   */
  retryFor: Schema.optionalKey(RetryFor),
  /** Concurrent requests. (Default: 10) */
  maxInFlight: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 })),
  /** Lowers the concurrency while the endpoint answers 429 or slows down. (Default: false) */
  adapt: Schema.optionalKey(Schema.Boolean),
  /** (Default: none) */
  rate: Schema.optionalKey(RateLimit),
  /**
   * When the circuit opens, and when the endpoint is disabled. (Default: as in the default circuit)
   */
  circuit: Schema.optionalKey(Circuit),
  /** Time-out of a whole attempt, including redirects. (Default: the policy's, else 30 seconds) */
  timeout: Schema.optionalKey(PositiveDuration),
  /** Time limit of name look-up, TCP and TLS. (Default: the policy's, else 10 seconds) */
  connectTimeout: Schema.optionalKey(PositiveDuration),
  /** Redirects followed before the attempt fails; 0 follows none. (Default: 3) */
  redirects: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 })),
  /** Sent with every request, except across a redirect to another origin. */
  headers: Schema.Record(Schema.String, HeaderValue).check(everyKey(headerNameProblem)),
  /** Headers of the publisher that it gets, as well as those that its tenant names. */
  forwardHeaders: Schema.optionalKey(ForwardHeaders),
  /** Whom to notify of problems: an address, a channel, a name. */
  contact: Schema.optionalKey(Contact),
  /** When alerts about the endpoint are raised. (Default: as set for its tenant) */
  alerts: Schema.optionalKey(AlertChoice),
  /** It gets no events, and its waiting deliveries are dead-lettered. */
  disabled: Schema.optionalKey(Stopped),
  /** It was given up, and its deliveries wait until it is resumed or their deadlines pass. */
  suspended: Schema.optionalKey(Stopped),
  paused: Schema.optionalKey(Paused),
  createdAt: Schema.Number,
  updatedAt: Schema.Number
})
export type Endpoint = typeof Endpoint.Type
export type EndpointJson = typeof Endpoint.Encoded

/**
 * Returns true for an endpoint that receives its tenant's alerts. Alerts about such an endpoint
 * produce no event.
 */
export const isOperational = ({ types }: Pick<Endpoint, "types">): boolean => types.some(isOwnType)

/** Returns true for an endpoint that gets alerts, and nothing else. */
export const getsOnlyAlerts = ({ types }: Pick<Endpoint, "types">): boolean =>
  types.every(isOwnType)

/** Returns when the endpoint's circuit opens and closes, and when the endpoint is disabled. */
export const circuitOf = ({ circuit }: Pick<Endpoint, "circuit">): CircuitSettings =>
  circuitSettings(circuit)

/** Returns true for an endpoint whose deliveries wait until it is resumed. */
export const isHeldBack = ({
  paused,
  suspended
}: Pick<Endpoint, "paused" | "suspended">): boolean =>
  paused !== undefined || suspended !== undefined

/** Returns the endpoint's key in its bucket, `<tenant>.<endpoint>`. */
export const endpointKey = (tenant: string, id: string): string => `${tenant}.${id}`

/** Returns true if a key of the bucket has the form of an endpoint's key. */
export const isEndpointKey = (key: string): boolean => key.split(".").length === 2
