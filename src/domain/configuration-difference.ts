import { isDeepStrictEqual } from "node:util"
import { Schema } from "effect"
import { Configuration } from "./configuration.ts"
import { present } from "./present.ts"
import { endpointSettings } from "./settings/endpoint-table.ts"
import type { Setting } from "./settings/setting.ts"

/** A setting that differs between two configurations. Values are JSON, absent if not set. */
export const SettingDifference = Schema.Struct({
  /**
   * The name in the configuration, such as `circuit.failures` for a part of a setting. Of `url`,
   * only scheme, host and port are shown: if these are equal, the path or the query differs.
   */
  setting: Schema.String,
  /** JSON; absent if it is not set. */
  from: Schema.optionalKey(Schema.Unknown),
  to: Schema.optionalKey(Schema.Unknown)
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
