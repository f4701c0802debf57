import { Duration, Result, type Schema } from "effect"
import type { Command, Flag } from "effect/cli"
import { forwardNameProblem } from "../../domain/header-names.ts"
import type { ForwardHeadersPatch } from "../../domain/settings/forward-headers.ts"
import type { Input } from "../../domain/settings/setting.ts"
import { readField, readJson, settingName, shown } from "./flag-problems.ts"
import { durationExpected, isSet, readDuration, repeated, textFlag } from "./shared.ts"

/** What a flag's text says, or what is wrong with it: sentences about the flag. */
export type Read<A> = Result.Result<A, ReadonlyArray<string>>

/** Returns the end of a description: what holds without the flag. Undefined if nothing is to be said. */
export type OrElse = (usual: string | undefined) => string

/** A setting on the command line. */
export interface SettingFlag<Value> {
  /**
   * Returns its flag, or several.
   *
   * @param usual its default, in words.
   */
  readonly flag: (
    name: string,
    orElse: OrElse,
    usual: string | undefined
  ) => Flag.Flag<unknown> | Command.Command.Config
  /** Returns what the flags say, with a sentence for each that is wrong. */
  readonly read: (given: never, name: string) => Read<Value>
}

/** The flags of settings, in the order of the help. */
export type FlagTable<Values> = { readonly [Name in keyof Values]-?: SettingFlag<Values[Name]> }

type AnyTable = Readonly<Record<string, SettingFlag<unknown>>>

/** What is given on the command line, as texts, for the settings of a table. */
export type Given<T extends AnyTable> = {
  readonly [Name in keyof T]?: Parameters<T[Name]["read"]>[0] | undefined
}

/** A setting with one flag of its name. */
export const one = <Value>(
  metavar: string,
  description: string,
  read: (text: string, name: string) => Read<Value>,
  /** (Default: the default that the table of settings names) */
  usually?: string
) => ({
  flag: (name: string, orElse: OrElse, usual: string | undefined) =>
    textFlag(settingName(name), metavar, `${description}${orElse(usually ?? usual)}`),
  read
})

/** Returns the flags of a table, as the configuration of a command. */
export const flagsOf = <T extends AnyTable>(
  table: T,
  inputs: { readonly [Name in keyof T]: Input },
  orElse: OrElse
): { readonly [Name in keyof T]: ReturnType<T[Name]["flag"]> } =>
  Object.fromEntries(
    Object.entries(table).map(([name, { flag }]) => [name, flag(name, orElse, inputs[name]?.usual)])
  ) as { [Name in keyof T]: ReturnType<T[Name]["flag"]> }

/** Parses the flags of a table. Fails with the problems of all invalid flags. */
export const readGiven = <Values, T extends FlagTable<Values> & AnyTable>(
  table: T,
  given: Given<T>
): Read<Values> => {
  const problems: Array<string> = []
  const found: Record<string, unknown> = {}
  for (const [name, { read }] of Object.entries<SettingFlag<unknown>>(table)) {
    const value = given[name]
    if (value === undefined) continue
    Result.match(read(value as never, name), {
      onSuccess: (setting) => {
        found[name] = setting
      },
      onFailure: (sentences) => problems.push(...sentences)
    })
  }
  return problems.length === 0 ? Result.succeed(found as Values) : Result.fail(problems)
}

/** Returns flags that remove settings, each with what it says: `--no-rate` for `rate`. */
export const removalFlags = <Name extends string>(
  texts: Readonly<Record<Name, string>>
): Readonly<Record<Name, Flag.Flag<boolean>>> =>
  Object.fromEntries(
    Object.entries<string>(texts).map(([name, text]) => [
      name,
      isSet(`no-${settingName(name)}`, text)
    ])
  ) as Record<Name, Flag.Flag<boolean>>

/** Returns true if anything of it was given on the command line. */
export const isGiven = (value: unknown): boolean =>
  typeof value === "object" && value !== null
    ? Object.values(value).some(isGiven)
    : value !== undefined && value !== false

/** Returns the names of the settings whose flags remove them. */
export const namesRemoved = (removed: object): ReadonlyArray<string> =>
  Object.entries(removed).flatMap(([name, isRemoved]) => (isRemoved === true ? [name] : []))

/** Returns the change that removes all of these. */
export const allNull = (names: ReadonlyArray<string>): Readonly<Record<string, null>> =>
  Object.fromEntries(names.map((name) => [name, null]))

/** Returns a problem for each setting that is given and removed at the same time. */
export const contradictions = (removed: ReadonlyArray<string>, given: object): Array<string> => {
  const values = new Map(Object.entries(given))
  return removed
    .filter((name) => isGiven(values.get(name)))
    .map(settingName)
    .map((name) => `--${name} and --no-${name} cannot be combined`)
}

/** Reads a text that a schema allows. */
export const readText =
  <A>(schema: Schema.ConstraintDecoder<A>) =>
  (text: string, name: string): Read<A> =>
    readField(name, schema, text)

/** Reads a whole number that a schema allows. */
export const readNumber =
  <A>(schema: Schema.ConstraintDecoder<A>) =>
  (text: string, name: string): Read<A> =>
    /^-?\d+$/.test(text.trim())
      ? readField(name, schema, Number(text))
      : Result.fail([`--${settingName(name)} ${shown(text)} must be a whole number`])

/** Reads `on` or `off`. */
export const readSwitch = (text: string, name: string): Read<boolean> =>
  text === "on" || text === "off"
    ? Result.succeed(text === "on")
    : Result.fail([`--${settingName(name)} ${shown(text)} must be on or off`])

/** Reads a length of time. */
export const readTime = (text: string, name: string): Read<Duration.Duration> => {
  const duration = readDuration(text)
  return duration === undefined || Duration.toMillis(duration) < 1
    ? Result.fail([`--${settingName(name)} ${shown(text)} ${durationExpected}`])
    : Result.succeed(duration)
}

/** The different parts of a text that is separated by commas. */
export const listed = (text: string): ReadonlyArray<string> => [
  ...new Set(
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "")
  )
]

/** Reads a list with commas between its parts that a schema allows. */
export const readList =
  <A>(schema: Schema.ConstraintDecoder<A>) =>
  (text: string, name: string): Read<A> =>
    readField(name, schema, listed(text))

/** Parses `off`, or alert thresholds as JSON. Fails with all problems found. */
export const readAlertChoice = <A>(
  field: "alerts" | "set",
  text: string,
  schema: Schema.ConstraintDecoder<A>
): Result.Result<A | "off", ReadonlyArray<string>> => {
  if (text.trim() === "off") return Result.succeed("off")
  const expected = `off, or thresholds as JSON such as '{"successWarnPercent":98}'`
  return Result.flatMap(readJson(`--${field}`, text, expected), (json) =>
    readField(field, schema, json)
  )
}

/** The flag that removes a header from those that are forwarded. */
export const noForwardHeader = repeated(
  "no-forward-header",
  "NAME",
  "Stop forwarding this header; may be repeated"
)

/**
 * Parses the names of headers to forward, and to forward no more. Fails with the problems of all.
 */
const readForwarded = (
  given: ReadonlyArray<string>,
  removed: ReadonlyArray<string>
): Result.Result<ForwardHeadersPatch, ReadonlyArray<string>> => {
  const [names, gone] = [given, removed].map(
    (list) => new Set(list.map((name) => name.trim().toLowerCase()))
  )
  const problemsOf = (flag: string, list: Iterable<string>) =>
    [...list].flatMap((name) => {
      const problem = forwardNameProblem(name)
      return problem === undefined ? [] : [`${flag} ${shown(name)} ${problem}`]
    })
  const problems = [
    ...problemsOf("--forward-header", names ?? []),
    ...problemsOf("--no-forward-header", gone ?? []),
    ...[...(names ?? [])].flatMap((name) =>
      gone?.has(name) === true
        ? [`--forward-header and --no-forward-header cannot be combined: both name ${shown(name)}`]
        : []
    )
  ]
  if (problems.length > 0) return Result.fail(problems)
  return Result.succeed({
    ...Object.fromEntries([...(names ?? [])].map((name) => [name, true] as const)),
    ...Object.fromEntries([...(gone ?? [])].map((name) => [name, null] as const))
  })
}

/** Makes the flag that names headers of the publisher to forward. */
export const forwardFlag = (description: string) => ({
  flag: () => ({ forwardHeader: repeated("forward-header", "NAME", description) }),
  read: ({
    forwardHeader,
    noForwardHeader = []
  }: {
    readonly forwardHeader: ReadonlyArray<string>
    readonly noForwardHeader?: ReadonlyArray<string>
  }) => readForwarded(forwardHeader, noForwardHeader)
})
