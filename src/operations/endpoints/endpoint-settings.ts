import { Result, Schema } from "effect"
import { AlertChoice, Contact } from "../../domain/alert.ts"
import { Circuit } from "../../domain/circuit.ts"
import { PositiveDuration } from "../../domain/duration.ts"
import { Endpoint, RateLimit } from "../../domain/endpoint.ts"
import { forwardNameProblem } from "../../domain/forwarded-headers.ts"
import { HeaderNames, headerNameProblem, IdentityHeaderName } from "../../domain/header-names.ts"
import { everyKey } from "../../domain/record.ts"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import { Token } from "../../domain/token.ts"
import { typeFilterProblem } from "../../domain/type-filter.ts"
import { resolveRetry } from "../../policy/presets.ts"

/** The name of an endpoint: `<tenant>/<id>`. */
export const EndpointName = Schema.Struct({ tenant: Token, id: Token })
export type EndpointName = typeof EndpointName.Type

/** Returns an endpoint's name for people: `acme/billing`. */
export const endpointLabel = ({ id, tenant }: EndpointName): string => `${tenant}/${id}`

const PresetName = Schema.String.check(
  Schema.makeFilter((name: string) =>
    Result.match(resolveRetry(name), {
      onSuccess: () => undefined,
      onFailure: ({ message }) => message
    })
  )
)

/** The name of a preset, or an inline policy. */
export const RetryChoice = Schema.Union([PresetName, RetryPolicy])
export type RetryChoice = typeof RetryChoice.Type

const { format, headers, maxInFlight, redirects, sign, signatureHeader, types, url } =
  Endpoint.fields

/** Settings that a change may replace. What resets one of them is a value of its own. */
const settings = {
  url: Schema.optional(url),
  types: Schema.optional(types),
  /** Subscribes the endpoint to its tenant's alerts, too. */
  operational: Schema.optional(Schema.Boolean),
  sign: Schema.optional(sign),
  /** Replaces all secrets. (Default: a new one if the endpoint has none that fits) */
  secret: Schema.optional(Schema.String),
  signatureHeader: Schema.optional(signatureHeader.schema),
  retry: Schema.optional(RetryChoice),
  /** `{}`: as in the default circuit. */
  circuit: Schema.optional(Circuit),
  maxInFlight: Schema.optional(maxInFlight),
  adapt: Schema.optional(Schema.Boolean),
  redirects: Schema.optional(redirects),
  /** `{}`: as set for its tenant. */
  alerts: Schema.optional(AlertChoice)
}

/**
 * Headers of the publisher to forward, by name: true adds one, null removes one. Names are compared
 * without case.
 */
export const ForwardHeadersPatch = Schema.Record(
  Schema.String,
  Schema.NullOr(Schema.Literal(true))
).check(everyKey(forwardNameProblem))
export type ForwardHeadersPatch = typeof ForwardHeadersPatch.Type

/** The settings of an endpoint to be added. Without a value, the default applies. */
export const NewEndpoint = Schema.Struct({
  ...settings,
  url,
  rate: Schema.optional(RateLimit),
  timeout: Schema.optional(PositiveDuration),
  connectTimeout: Schema.optional(PositiveDuration),
  contact: Schema.optional(Contact),
  headers: Schema.optional(headers),
  forwardHeaders: Schema.optional(ForwardHeadersPatch),
  retryFor: Schema.optional(
    Schema.Record(Schema.String, RetryChoice).check(everyKey(typeFilterProblem))
  ),
  headerNames: Schema.optional(HeaderNames),
  format: Schema.optional(format.schema)
})
export type NewEndpoint = typeof NewEndpoint.Type

const changedName = Schema.optional(Schema.NullOr(IdentityHeaderName))

/** A change of an endpoint. What is left out stays as it is; null removes a setting. */
export const EndpointPatch = Schema.Struct({
  ...settings,
  rate: Schema.optional(Schema.NullOr(RateLimit)),
  timeout: Schema.optional(Schema.NullOr(PositiveDuration)),
  connectTimeout: Schema.optional(Schema.NullOr(PositiveDuration)),
  contact: Schema.optional(Schema.NullOr(Contact)),
  forwardHeaders: Schema.optional(ForwardHeadersPatch),
  /** Values by name. Names are compared without case; null removes a header. */
  headers: Schema.optional(
    Schema.Record(Schema.String, Schema.NullOr(headers.value)).check(everyKey(headerNameProblem))
  ),
  /** Policies by type filter; null removes one. */
  retryFor: Schema.optional(
    Schema.Record(Schema.String, Schema.NullOr(RetryChoice)).check(everyKey(typeFilterProblem))
  ),
  format: Schema.optional(Schema.NullOr(format.schema)),
  /** Null goes back to the usual name. */
  headerNames: Schema.optional(
    Schema.Struct({ id: changedName, type: changedName, timestamp: changedName })
  )
})
export type EndpointPatch = typeof EndpointPatch.Type
