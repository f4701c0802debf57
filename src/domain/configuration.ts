import { createHash } from "node:crypto"
import { Schema } from "effect"
import type { EndpointJson } from "./endpoint.ts"
import { Endpoint } from "./endpoint.ts"

const { fields } = Endpoint

/**
 * An endpoint's configuration without its secrets: what the history tells of it. A URL's path and
 * query and the values of headers may be credentials; of these only a digest and the names are told.
 */
export const Configuration = Schema.Struct({
  generation: fields.generation,
  /** Scheme, host and port of its URL. */
  origin: Schema.String,
  /** SHA-256 of the whole URL, the first 12 hex digits: tells whether it has changed. */
  urlDigest: Schema.String,
  types: fields.types,
  sign: fields.sign,
  signatureHeader: fields.signatureHeader,
  /** When each secret was made and until when it is valid, ms since the epoch; newest first. */
  secrets: Schema.Array(
    Schema.Struct({ createdAt: Schema.Number, until: Schema.optionalKey(Schema.Number) })
  ),
  retry: fields.retry,
  maxInFlight: fields.maxInFlight,
  adapt: fields.adapt,
  rate: fields.rate,
  circuit: fields.circuit,
  timeout: fields.timeout,
  redirects: fields.redirects,
  /** Names of its own headers, sorted. */
  headers: Schema.Array(Schema.String),
  contact: fields.contact,
  alerts: fields.alerts,
  disabled: fields.disabled,
  paused: fields.paused
})
/** As JSON: durations are texts. */
export type Configuration = typeof Configuration.Encoded

/** One change of an endpoint's configuration, under the revision that the endpoints bucket gave it. */
export const ConfigurationChange = Schema.Struct({
  revision: Schema.Int,
  /** When the bucket stored it, ms since the epoch; 0 where its removal left no trace. */
  storedAt: Schema.Number,
  /** The configuration since then. None where the endpoint was removed, or cannot be read. */
  now: Schema.optionalKey(Schema.toEncoded(Configuration)),
  isUnreadable: Schema.optionalKey(Schema.Literal(true))
})
export type ConfigurationChange = typeof ConfigurationChange.Type

const digestOf = (url: string): string =>
  createHash("sha256").update(url).digest("hex").slice(0, 12)

/** What may be told of a configuration. */
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
