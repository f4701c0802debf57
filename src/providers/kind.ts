import { isDeepStrictEqual } from "node:util"
import { bodyJson } from "./body.ts"
import type { Provider } from "./provider.ts"
import { InvalidProviderSettings, type ProviderSetting, type ProviderSettings } from "./settings.ts"

/** Returns a body's JSON without some of its fields; undefined if it is no JSON object. */
const withoutFields = (body: Uint8Array, names: ReadonlyArray<string>): object | undefined => {
  const json = bodyJson(body)
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined
  return Object.fromEntries(Object.entries(json).filter(([name]) => !names.includes(name)))
}

/**
 * Returns true if two bodies say the same of an event: they are JSON objects that differ in nothing
 * but fields that tell of the sending.
 *
 * @param varying names of these fields.
 */
export const saysTheSame = (
  one: Uint8Array,
  other: Uint8Array,
  varying: ReadonlyArray<string>
): boolean => {
  const before = withoutFields(one, varying)
  return before !== undefined && isDeepStrictEqual(before, withoutFields(other, varying))
}

/** What a provider does with requests once its settings are known. */
export type ProviderParts = Pick<Provider, "verify" | "read" | "handshake">

/** What is known of a provider, whatever the settings. */
export interface ProviderKind<Settings extends ProviderSettings = ProviderSettings> {
  /** `stripe`, `github`, … */
  readonly name: string
  /** As the provider writes it. */
  readonly title: string
  readonly settings: ReadonlyArray<ProviderSetting>
  /** How far the signed time may be off if no setting says it, ms; undefined where none is signed. */
  readonly toleranceMs?: number
  readonly repeatsForMs: number
  /** How long the sender waits for an answer, ms. Undefined where it does not say. */
  readonly waitsForMs?: number
  readonly retries429: boolean
  /** Fields of an event's JSON that a repeat has with other values: they tell of the sending. */
  readonly varying?: ReadonlyArray<string>
  /** Whether the sender wants 204 without a body, where others take any 2xx. */
  readonly wantsNoContent?: boolean
  /** For the table in docs/reference/providers.md: where each is found, in a few words. */
  readonly words: {
    readonly header: string
    readonly signed: string
    readonly id: string
    readonly type: string
    readonly at: string
    readonly subject: string
  }
  /** Returns what is wrong with settings together, each of which is right alone. */
  readonly problems?: (settings: Settings) => ReadonlyArray<string>
  /** Settings have been checked. */
  readonly make: (settings: Settings) => ProviderParts
}

export const hoursMs = (hours: number): number => hours * 60 * 60 * 1_000
export const daysMs = (days: number): number => hoursMs(24 * days)
export const minutesMs = (minutes: number): number => minutes * 60 * 1_000

/** Returns what is wrong with settings, and which are missing, as sentences that show no secret. */
export const settingsProblems = <Settings extends ProviderSettings>(
  { problems, settings: known, title }: ProviderKind<Settings>,
  given: ProviderSettings
): ReadonlyArray<string> => {
  const names = new Set<string>(known.map(({ name }) => name))
  const unknown = Object.entries(given)
    .filter(([name, value]) => value !== undefined && !names.has(name))
    .map(([name]) => `\`${name}\` is not used by ${title}: leave it out`)
  const others = known.flatMap(({ isRequired, name, problem, text }) => {
    const value = given[name]
    if (value === undefined) return isRequired ? [`\`${name}\` is missing: ${text}`] : []
    const found = problem?.(value)
    return found === undefined ? [] : [`\`${name}\` ${found}`]
  })
  const all = [...others, ...unknown]
  // Those that are required are there, so this is what the provider takes.
  return all.length > 0 ? all : (problems?.(given as Settings) ?? [])
}

/** Makes a provider. Throws InvalidProviderSettings. */
export const provide = <Settings extends ProviderSettings>(
  kind: ProviderKind<Settings>,
  settings: Settings
): Provider => {
  const problems = settingsProblems(kind, settings)
  if (problems.length > 0) throw new InvalidProviderSettings(kind.name, problems)
  const { make, name, repeatsForMs, retries429, varying, waitsForMs, wantsNoContent } = kind
  return {
    ...{ name, repeatsForMs, retries429 },
    ...(waitsForMs !== undefined && { waitsForMs }),
    ...(varying !== undefined && {
      isRepeat: (before: Uint8Array, after: Uint8Array) => saysTheSame(before, after, varying)
    }),
    ...(wantsNoContent !== undefined && { wantsNoContent }),
    ...make(settings)
  }
}
