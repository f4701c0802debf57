import { createHash } from "node:crypto"
import { Schema } from "effect"
import type { EndpointJson } from "./endpoint.ts"
import { Endpoint } from "./endpoint.ts"
import { present } from "./present.ts"
import { endpointSettings } from "./settings/endpoint-table.ts"
import { column, toldOf } from "./settings/setting.ts"
import { Timestamp } from "./timestamp.ts"

const { disabled, generation, paused, suspended } = Endpoint.fields
const {
  headerNames,
  sign,
  signatureHeader,
  types,
  url: origin,
  ...told
} = column(endpointSettings, "told")

/**
 * An endpoint's configuration without its secrets, as the history records it: what each setting
 * tells of itself. Differences are shown in this order: secrets beside the scheme.
 */
export const Configuration = Schema.Struct({
  generation,
  /** Scheme, host and port of its URL. */
  origin,
  /** The first 12 hex digits of the SHA-256 of the whole URL. Shows whether the URL has changed. */
  urlDigest: Schema.String,
  types,
  sign,
  signatureHeader,
  headerNames,
  /** When each secret was created and until when it is valid, ms since the epoch; newest first. */
  secrets: Schema.Array(
    Schema.Struct({ createdAt: Timestamp, until: Schema.optionalKey(Timestamp) })
  ),
  ...told,
  disabled,
  suspended,
  paused
})
/** As JSON: durations are strings. */
export type Configuration = typeof Configuration.Encoded

/** One change of an endpoint's configuration, with its revision in the endpoints bucket. */
export const ConfigurationChange = Schema.Struct({
  revision: Schema.Int,
  /** When the bucket stored the change, ms since the epoch. 0 if a removal left no entry. */
  storedAt: Timestamp,
  /** The configuration after the change. Absent if the endpoint was removed or is unreadable. */
  now: Schema.optionalKey(Schema.toEncoded(Configuration)),
  isUnreadable: Schema.optionalKey(Schema.Literal(true))
})
export type ConfigurationChange = typeof ConfigurationChange.Type

/** The digest of a URL, by which the history shows whether it has changed. */
export const urlDigest = (url: string): string =>
  createHash("sha256").update(url).digest("hex").slice(0, 12)

/** Returns the part of an endpoint's configuration that the history may record. */
export const configurationOf = (endpoint: EndpointJson): Configuration => {
  const { disabled, generation, paused, secrets, suspended, url } = endpoint
  const { url: origin, ...told } = toldOf(endpointSettings, endpoint)
  return {
    generation,
    origin,
    urlDigest: urlDigest(url),
    ...told,
    secrets: secrets.map(({ value: _, ...times }) => times),
    ...present({ disabled, suspended, paused })
  }
}
