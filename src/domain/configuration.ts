import { createHash } from "node:crypto"
import { Schema } from "effect"
import type { EndpointJson } from "./endpoint.ts"
import { Endpoint } from "./endpoint.ts"

const { fields } = Endpoint

/**
 * An endpoint's configuration without its secrets, as the history records it. A URL's path and
 * query and the values of headers may be credentials: only a digest and the names are recorded.
 */
export const Configuration = Schema.Struct({
  generation: fields.generation,
  /** Scheme, host and port of its URL. */
  origin: Schema.String,
  /** The first 12 hex digits of the SHA-256 of the whole URL. Shows whether the URL has changed. */
  urlDigest: Schema.String,
  types: fields.types,
  sign: fields.sign,
  signatureHeader: fields.signatureHeader,
  headerNames: fields.headerNames,
  /** When each secret was created and until when it is valid, ms since the epoch; newest first. */
  secrets: Schema.Array(
    Schema.Struct({ createdAt: Schema.Number, until: Schema.optionalKey(Schema.Number) })
  ),
  retry: fields.retry,
  retryFor: fields.retryFor,
  maxInFlight: fields.maxInFlight,
  adapt: fields.adapt,
  format: fields.format,
  rate: fields.rate,
  circuit: fields.circuit,
  timeout: fields.timeout,
  connectTimeout: fields.connectTimeout,
  redirects: fields.redirects,
  /** Names of the endpoint's own headers, sorted. */
  headers: Schema.Array(Schema.String),
  forwardHeaders: fields.forwardHeaders,
  contact: fields.contact,
  alerts: fields.alerts,
  disabled: fields.disabled,
  suspended: fields.suspended,
  paused: fields.paused
})
/** As JSON: durations are strings. */
export type Configuration = typeof Configuration.Encoded

/** One change of an endpoint's configuration, with its revision in the endpoints bucket. */
export const ConfigurationChange = Schema.Struct({
  revision: Schema.Int,
  /** When the bucket stored the change, ms since the epoch. 0 if a removal left no entry. */
  storedAt: Schema.Number,
  /** The configuration after the change. Absent if the endpoint was removed or is unreadable. */
  now: Schema.optionalKey(Schema.toEncoded(Configuration)),
  isUnreadable: Schema.optionalKey(Schema.Literal(true))
})
export type ConfigurationChange = typeof ConfigurationChange.Type

const digestOf = (url: string): string =>
  createHash("sha256").update(url).digest("hex").slice(0, 12)

/** Returns the part of an endpoint's configuration that the history may record. */
export const configurationOf = (endpoint: EndpointJson): Configuration => {
  const {
    createdAt: _,
    headers,
    id: __,
    secrets,
    tenant: ___,
    updatedAt: ____,
    url,
    v: _____,
    ...rest
  } = endpoint
  return {
    ...rest,
    origin: new URL(url).origin,
    urlDigest: digestOf(url),
    secrets: secrets.map(({ value: _, ...times }) => times),
    headers: Object.keys(headers).sort()
  }
}
