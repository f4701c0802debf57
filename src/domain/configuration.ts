import { createHash } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import { Schema } from "effect"
import type { EndpointJson } from "./endpoint.ts"
import { Endpoint } from "./endpoint.ts"
import { present } from "./record.ts"
import { endpointSettings } from "./settings/endpoint-table.ts"
import type { Setting } from "./settings/setting.ts"
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
  urlDigest: Schema.String.annotateKey({
    description:
      "The first 12 hex digits of the SHA-256 of the whole URL. Shows whether the URL has changed."
  }),
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
  storedAt: Timestamp.annotateKey({
    description: "When the bucket stored the change. 0 if a removal left no entry."
  }),
  now: Schema.optionalKey(Schema.toEncoded(Configuration)).annotateKey({
    description:
      "The configuration after the change. Absent if the endpoint was removed or is unreadable."
  }),
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

/** A setting that differs between two configurations. Values are JSON, absent if not set. */
export const SettingDifference = Schema.Struct({
  setting: Schema.String.annotateKey({
    description:
      "The name in the configuration, such as `circuit.failures` for a part of a setting. Of `url`, only scheme, host and port are shown: if these are equal, the path or the query differs."
  }),
  from: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "JSON; absent if it is not set."
  }),
  to: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "JSON; absent if it is no longer set."
  })
})
export type SettingDifference = typeof SettingDifference.Type

type ConfigurationParts = Readonly<Record<string, unknown>>

const isParts = (value: unknown): value is ConfigurationParts =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Names of parts may be anything, `constructor` too. */
const partOf = (parts: ConfigurationParts, name: string): unknown =>
  Object.hasOwn(parts, name) ? parts[name] : undefined

const compared = (setting: string, from: unknown, to: unknown): ReadonlyArray<SettingDifference> =>
  isDeepStrictEqual(from, to)
    ? []
    : [
        {
          setting,
          ...present({ from, to })
        }
      ]

const settings: ReadonlyMap<string, Setting> = new Map(Object.entries(endpointSettings))

const comparedInParts = (
  setting: string,
  from: unknown,
  to: unknown
): ReadonlyArray<SettingDifference> => {
  const entry = settings.get(setting)
  if (entry?.compared !== "by part") return compared(setting, from, to)
  // One that is not set has no parts; one that always has a value is new.
  const blank = entry.initial === undefined ? {} : undefined
  const [before, after] = [from ?? blank, to ?? blank]
  if (!isParts(before) || !isParts(after)) return compared(setting, from, to)
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap((name) =>
    compared(`${setting}.${name}`, partOf(before, name), partOf(after, name))
  )
}

/**
 * Returns the settings that differ, in the order of the configuration.
 *
 * @param before undefined for a new endpoint: all its settings differ.
 */
export const differencesOf = (
  before: Configuration | undefined,
  after: Configuration
): ReadonlyArray<SettingDifference> => {
  const [old, now]: ReadonlyArray<ConfigurationParts> = [{ ...before }, { ...after }]
  return Object.keys(Configuration.fields).flatMap((name): ReadonlyArray<SettingDifference> => {
    if (name === "urlDigest") return []
    if (name !== "origin") return comparedInParts(name, old?.[name], now?.[name])
    const isSame = before?.origin === after.origin && before.urlDigest === after.urlDigest
    if (isSame) return []
    return [
      {
        setting: "url",
        ...(before === undefined ? {} : { from: before.origin }),
        to: after.origin
      }
    ]
  })
}
