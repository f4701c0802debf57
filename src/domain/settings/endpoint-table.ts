import { Schema } from "effect"
import { AlertChoice, Contact } from "../alert.ts"
import { Circuit } from "../circuit.ts"
import { PositiveDuration } from "../duration.ts"
import {
  HeaderNames,
  HeaderNamesPatch,
  headerNameProblem,
  headerNamesAfter,
  OwnHeaderName,
  usualStripeHeader
} from "../header-names.ts"
import { Description, MetadataValue, maxMetadataEntries, metadataKeyProblem } from "../metadata.ts"
import { everyKey } from "../record.ts"
import { RetryPolicy } from "../retry-policy.ts"
import { TypeFilter, typeFilterProblem } from "../type-filter.ts"
import { forwarded } from "./forward-headers.ts"
import type { Input, NamesBy, Table } from "./setting.ts"
import { always, byName, emptied, hides, removable, tells } from "./setting.ts"

/** Characters of an endpoint's URL at most: all workers have the URLs of all endpoints in memory. */
const maxUrl = 2_048

const urlProblem = (text: string): string | undefined => {
  if (text.length > maxUrl || /\p{Cc}/u.test(text))
    return `must be a URL of at most ${maxUrl} characters on one line`
  if (!URL.canParse(text)) return "must be a URL such as https://example.com/hooks"
  const url = new URL(text)
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return "must be an http or https URL such as https://example.com/hooks"
  if (url.username !== "" || url.password !== "")
    return "must not carry a user or password; send them as a header of your own"
  return undefined
}

const Url = Schema.String.check(
  Schema.makeFilter(urlProblem, {
    toJsonSchema: () => ({ pattern: "^[Hh][Tt][Tt][Pp][Ss]?:", maxLength: maxUrl })
  })
)

/** Headers of its own that an endpoint has at most: all workers have them in memory, too. */
const maxHeaders = 20

const headerValueRule =
  "must be a valid header value: at most 4,096 characters of Latin-1, on one line"

const HeaderValue = Schema.String.check(
  Schema.makeFilter(
    (value: string) =>
      /^[\t\x20-\x7e\x80-\xff]{0,4096}$/.test(value) ? undefined : headerValueRule,
    { toJsonSchema: () => ({ pattern: "^[\\t -~\\x80-\\xff]*$", maxLength: 4_096 }) }
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

/** The sustained rate of requests to an endpoint, and the burst after a pause. */
export const RateLimit = Schema.Struct({
  perSecond: Schema.Finite.check(
    Schema.isBetween(
      { minimum: 1 / 3600, maximum: 100_000 },
      { message: "must be between 1/3600, one an hour, and 100000" }
    )
  ),
  burst: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))
}).annotate({
  identifier: "RateLimit",
  description: "A sustained rate, and the burst after a pause."
})
export type RateLimit = typeof RateLimit.Type

/**
 * Upper bound of an endpoint's event types: the router compares each new event type of the tenant
 * with all of them.
 */
export const maxTypes = 200

/** Event types of one endpoint, or of one replay. */
export const Types = Schema.NonEmptyArray(TypeFilter).check(
  Schema.makeFilter(
    ({ length }: ReadonlyArray<string>) =>
      length <= maxTypes ? undefined : `must be at most ${maxTypes} event types, not ${length}`,
    { toJsonSchema: () => ({ maxItems: maxTypes }) }
  )
)

const Retry = Schema.Union([Schema.String, RetryPolicy])

/** Upper bound of an endpoint's policies for event types: its configuration is one message. */
const maxRetryFor = 20

/** How policies for event types are changed, each by its type filter. */
export const retryForEntries = {
  nameProblem: typeFilterProblem,
  unknown: "names event types that have no retry policy of their own",
  most: {
    count: maxRetryFor,
    sentence: `an endpoint takes at most ${maxRetryFor} retry policies for event types: use wildcards such as invoice.>, or a second endpoint`
  }
}

/** Upper bound of the origins that an endpoint's redirects may lead to. */
const maxRedirectOrigins = 20

const RedirectOrigins = Schema.NonEmptyArray(
  Schema.String.check(
    Schema.makeFilter(
      (text: string) =>
        URL.canParse(text) && new URL(text).origin === text && text.startsWith("http")
          ? undefined
          : "must be an origin such as https://eu.example.com: scheme and host, and the port if it is another one",
      { toJsonSchema: () => ({ pattern: "^https?://[^/?#]+$" }) }
    )
  )
).check(
  Schema.makeFilter(
    ({ length }: ReadonlyArray<string>) =>
      length <= maxRedirectOrigins
        ? undefined
        : `must be at most ${maxRedirectOrigins} origins, not ${length}`,
    { toJsonSchema: () => ({ maxItems: maxRedirectOrigins }) }
  )
)

/** Shown instead of credentials. */
export const mask = "********"

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/**
 * The settings of an endpoint, one entry each, in the order in which they are stored and shown.
 * What is stored, what may be asked for, what a change does, what the history tells and what the
 * documents say of a setting follows from its entry.
 */
export const endpointSettings = {
  url: {
    ...always(Url, "", { text: "Where requests go: http or https." }),
    given: Url,
    ...tells("scheme, host and port, and a digest of all of it", Schema.String, (url: string) => {
      // Path and query may be credentials.
      return new URL(url).origin
    })
  },
  types: always(Types, [">"], {
    text: "Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`.",
    usual: "all"
  }),
  sign: always(Scheme, "standard", {
    text: "How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all.",
    usual: "standard"
  }),
  signatureHeader: {
    ...emptied(OwnHeaderName, {
      text: "Name of the signature header, if `sign` is stripe.",
      usual: usualStripeHeader
    }),
    // It goes with the scheme.
    removal: "never"
  },
  headerNames: {
    ...emptied(HeaderNames, { text: "Other names for the headers id, type and timestamp." }),
    patch: Schema.optional(HeaderNamesPatch),
    removal: "null by part",
    compared: "by part",
    after: headerNamesAfter
  },
  retry: {
    ...always(Retry, "default", {
      text: "The name of a preset, or a policy of its own.",
      usual: "default"
    }),
    compared: "by part"
  },
  retryFor: {
    // Of the filters that match a type, the most exact one wins (`TypeChoice`).
    ...emptied(Schema.Record(Schema.String, Retry).check(everyKey(typeFilterProblem)), {
      text: "Policies of some event types, by type filter.",
      usual: "`retry` is the policy of all types"
    }),
    ...byName({ ...retryForEntries, value: Retry }),
    compared: "by part"
  },
  maxInFlight: always(between(1, 1000), 10, {
    text: "Concurrent requests, 1 to 1,000.",
    usual: "10"
  }),
  adapt: emptied(Schema.Boolean, {
    text: "Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down.",
    usual: "false"
  }),
  format: removable(BodyFormat, {
    text: "`slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts.",
    usual: "the event's bytes"
  }),
  rate: removable(RateLimit, {
    text: "Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`.",
    usual: "no limit"
  }),
  circuit: {
    ...emptied(Circuit, {
      text: "After which failures the endpoint gets only probes, and when it is given up.",
      usual: "{}, the defaults"
    }),
    compared: "by part"
  },
  timeout: removable(PositiveDuration, {
    text: 'Time-out of an attempt, including redirects, such as "30 seconds".',
    usual: "the policy's, else 30 seconds"
  }),
  connectTimeout: removable(PositiveDuration, {
    text: 'Time limit of name look-up, TCP and TLS, such as "5 seconds".',
    usual: "the policy's, else 10 seconds"
  }),
  redirects: always(between(0, 10), 0, {
    text: "How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure.",
    usual: "0"
  }),
  redirectsTo: removable(RedirectOrigins, {
    text: "Other origins that redirects may lead to, such as https://eu.example.com.",
    usual: "none"
  }),
  headers: {
    // Not sent across a redirect to another origin.
    ...always(
      Schema.Record(Schema.String, HeaderValue).check(everyKey(headerNameProblem)),
      {},
      {
        text: "Headers of every request to the endpoint, 20 at most. Their values are not shown again."
      }
    ),
    ...byName({
      value: HeaderValue,
      nameProblem: headerNameProblem,
      fold: (name) => name.toLowerCase(),
      unknown: "names a header that is not set",
      most: {
        count: maxHeaders,
        sentence: `an endpoint has at most ${maxHeaders} headers of its own`
      }
    }),
    ...hides(
      "the names",
      Schema.Array(Schema.String),
      (headers: Readonly<Record<string, string>>) => Object.keys(headers).sort(),
      (headers) => Object.fromEntries(Object.keys(headers).map((name) => [name, mask]))
    )
  },
  forwardHeaders: forwarded(
    "Headers of the publisher that the endpoint gets, by name: true adds one, null removes one."
  ),
  contact: removable(Contact, {
    text: "Whom to notify of problems. Alerts about the endpoint carry it.",
    usual: "nobody"
  }),
  description: removable(Description, {
    text: "What the endpoint is for: 1 to 500 characters on one line.",
    usual: "none"
  }),
  metadata: {
    ...emptied(Schema.Record(Schema.String, MetadataValue).check(everyKey(metadataKeyProblem)), {
      text: "Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased.",
      usual: "{}"
    }),
    ...byName({
      value: MetadataValue,
      nameProblem: metadataKeyProblem,
      unknown: "names an entry that is not there",
      most: {
        count: maxMetadataEntries,
        sentence: `an endpoint has at most ${maxMetadataEntries} entries of metadata`
      }
    }),
    compared: "by part"
  },
  alerts: {
    ...emptied(AlertChoice, {
      text: "When alerts about the endpoint are raised.",
      usual: "{}, the tenant's thresholds"
    }),
    compared: "by part"
  }
} as const satisfies Table

export type EndpointSettings = typeof endpointSettings
type SettingName = keyof EndpointSettings

/** The settings that null removes. */
export type RemovableName = NamesBy<EndpointSettings, "null">

const asked = <S extends Schema.Constraint>(schema: S) => ({
  given: Schema.optional(schema),
  patch: Schema.optional(schema)
})

/** Inputs about an endpoint that are no settings, but change what is stored. */
export const endpointRequests = {
  operational: {
    ...asked(Schema.Boolean),
    text: "The endpoint also gets its tenant's alerts, as events.",
    usual: "false",
    isSecret: false
  },
  secret: {
    ...asked(Schema.String),
    text: "The signing secret. It replaces all former ones.",
    usual: "a new one, which is shown",
    isSecret: true
  }
} as const satisfies Readonly<Record<string, Input>>

/** The names of all that may be asked for of an endpoint. */
export type InputName = SettingName | keyof typeof endpointRequests
