import { isDeepStrictEqual } from "node:util"
import { Schema } from "effect"
import type { Problem } from "../problem.ts"
import { everyKey } from "../record.ts"

/** How a change takes a setting back. */
export type Removal = "never" | "null" | "empty" | "null by name" | "null by part"

/** What is said of a setting in words, wherever people read of it. */
interface Words {
  /** What it does, in one or two sentences. */
  readonly text: string
  /** What holds without it: the end of `(Default: …)`. */
  readonly usual?: string
}

/** What may be asked for of a thing: a field of its settings and of a change of them. */
export interface Input extends Words {
  /** The field of a new thing's settings. */
  readonly given: Schema.Constraint
  /** The field of a change. */
  readonly patch: Schema.Constraint
  /**
   * It may be a credential: a problem with it does not repeat its value, and a change of the origin
   * drops it (`withoutCredentials`).
   */
  readonly isSecret: boolean
}

/** One setting: an entry of a table, from which everything that handles settings is derived. */
export interface Setting extends Input {
  /** The field of the stored value. */
  readonly stored: Schema.Constraint
  /** Its value in a new thing; undefined if it is absent there. */
  readonly initial: unknown
  readonly removal: Removal
  /** How two revisions differ: in the setting as a whole, or in parts of it. */
  readonly compared: "whole" | "by part"
  /** What the history may tell of it, in words. */
  readonly history: string
  /** The field of what the history records. */
  readonly told: Schema.Constraint
  /** Returns what the history records of a stored value, as JSON. */
  readonly tell: (stored: never) => unknown
  /** Returns a value for people who may not see credentials. */
  readonly masked: (value: never) => unknown
  /** Returns its value after a change. An empty one is none, where null does not remove it. */
  readonly after: (before: never, patch: never) => unknown
  /** Returns what is wrong with a change of it, whatever the other settings are. */
  readonly problems: (name: string, before: never, patch: never) => ReadonlyArray<Problem>
}

const same = <A>(value: A): A => value

const plain = {
  compared: "whole",
  history: "its value",
  isSecret: false,
  masked: same,
  problems: () => [],
  tell: same
} as const

/** A setting that always has a value. A change replaces it. */
export const always = <S extends Schema.Constraint>(
  schema: S,
  initial: S["Type"],
  words: Words
) => ({
  ...plain,
  ...words,
  stored: schema,
  given: Schema.optional(schema),
  patch: Schema.optional(schema),
  told: schema,
  initial,
  removal: "never" as const,
  after: (before: S["Type"], patch: S["Type"] | undefined): S["Type"] => patch ?? before
})

/** A setting that may be absent. A change replaces it; an empty value (`{}`, false) removes it. */
export const emptied = <S extends Schema.Constraint>(schema: S, words: Words) => ({
  ...plain,
  ...words,
  stored: Schema.optionalKey(schema),
  given: Schema.optional(schema),
  patch: Schema.optional(schema),
  told: Schema.optionalKey(schema),
  initial: undefined,
  removal: "empty" as const,
  after: (before: S["Type"] | undefined, patch: S["Type"] | undefined) => patch ?? before
})

/** A setting that may be absent. A change replaces it; null removes it. */
export const removable = <S extends Schema.Constraint>(schema: S, words: Words) => ({
  ...emptied(schema, words),
  patch: Schema.optional(Schema.NullOr(schema)),
  removal: "null" as const,
  after: (before: S["Type"] | undefined, patch: S["Type"] | null | undefined) =>
    patch === undefined ? before : (patch ?? undefined)
})

/** How the entries of a record are changed, each by its name. */
interface Entries<Value> {
  readonly value: Value
  readonly nameProblem: (name: string) => string | undefined
  /** Returns the same text for names that are the same. (Default: only equal ones are) */
  readonly fold?: (name: string) => string
  /** What is wrong with the name of an entry to be removed that is not there. */
  readonly unknown: string
  /** The upper bound of entries, and the end of a sentence that says so. */
  readonly most?: { readonly count: number; readonly sentence: string }
}

const namesAlike = (alike: ReadonlyMap<string, Set<string>>, folded: string): Set<string> =>
  alike.get(folded) ?? new Set()

/** Makes a setting that is a record change by entries: null removes one, the others stay. */
export const byName = <Value extends Schema.Constraint>({
  fold = same,
  most,
  nameProblem,
  unknown,
  value
}: Entries<Value>) => {
  type Before = Readonly<Record<string, Value["Type"]>> | undefined
  type Patch = Readonly<Record<string, Value["Type"] | null>> | undefined
  const after = (before: Before, patch: Patch): Readonly<Record<string, Value["Type"]>> => {
    const entries = new Map(Object.entries(before ?? {}))
    // By what names have in common: a change may name thousands.
    const alike = new Map<string, Set<string>>()
    for (const name of entries.keys())
      alike.set(fold(name), namesAlike(alike, fold(name)).add(name))
    for (const [name, given] of Object.entries(patch ?? {})) {
      const others = namesAlike(alike, fold(name))
      for (const other of others)
        if (given === null || other !== name) {
          entries.delete(other)
          others.delete(other)
        }
      if (given === null) continue
      entries.set(name, given)
      alike.set(fold(name), others.add(name))
    }
    return Object.fromEntries(entries)
  }
  return {
    given: Schema.optional(Schema.Record(Schema.String, value).check(everyKey(nameProblem))),
    patch: Schema.optional(
      Schema.Record(Schema.String, Schema.NullOr(value)).check(everyKey(nameProblem))
    ),
    removal: "null by name" as const,
    after,
    problems: (field: string, before: Before, patch: Patch): ReadonlyArray<Problem> => {
      const known = new Set(Object.keys(before ?? {}).map(fold))
      const gone = Object.entries(patch ?? {}).filter(
        ([name, given]) => given === null && !known.has(fold(name))
      )
      const { length } = Object.keys(after(before, patch))
      const tooMany = most !== undefined && length > most.count
      return [
        ...gone.map(([name]) => ({ field: `${field}.${name}`, message: unknown })),
        ...(tooMany ? [{ field, message: `would be ${length}, and ${most.sentence}` }] : [])
      ]
    }
  }
}

/** Makes the history tell less of a setting than its value. */
export const tells = <Stored, Told extends Schema.Constraint>(
  history: string,
  told: Told,
  tell: (stored: Stored) => Told["Encoded"]
) => ({ history, told, tell })

/** Makes a setting one that holds credentials: neither the history nor people get its value. */
export const hides = <Stored, Told extends Schema.Constraint>(
  history: string,
  told: Told,
  tell: (stored: Stored) => Told["Encoded"],
  masked: (value: Stored) => Stored
) => ({ ...tells(history, told, tell), masked, isSecret: true })

/** A table of settings by their names. */
export type Table = Readonly<Record<string, Setting>>

/** One column of a table: what each entry has under a name. */
type Column<T extends Readonly<Record<string, Input>>, Name extends keyof T[keyof T]> = {
  readonly [Key in keyof T]: T[Key][Name]
}

/** Returns one column of a table. */
export const column = <
  T extends Readonly<Record<string, Input>>,
  const Name extends keyof T[keyof T]
>(
  table: T,
  name: Name
): Column<T, Name> => mapped(table, (_, entry) => valueIn(entry, String(name))) as Column<T, Name>

/** Returns what the documents say of each entry: its text and its default. */
export const textsOf = <T extends Readonly<Record<string, Input>>>(
  table: T
): { readonly [Name in keyof T]: string } =>
  mapped(table, (_, { text, usual }) =>
    usual === undefined ? text : `${text} (Default: ${usual})`
  ) as { readonly [Name in keyof T]: string }

/** The values of a table's settings, without those of anything else. */
export type Stored<T extends Table> = Schema.Struct.Type<Column<T, "stored">>
type StoredJson<T extends Table> = Schema.Struct.Encoded<Column<T, "stored">>

/** A change of a table's settings. What is left out stays as it is. */
export type Patch<T extends Table> = Schema.Struct.Type<Column<T, "patch">>

/** What the history records of a table's settings, as JSON. */
type Told<T extends Table> = Schema.Struct.Encoded<Column<T, "told">>

/** The settings that a new thing has. */
type Initial<T extends Table> = {
  readonly [Key in keyof T as T[Key]["initial"] extends undefined ? never : Key]: T[Key]["initial"]
}

/** The names of a table's settings that are taken back in one way. */
export type NamesBy<T extends Table, By extends Removal> = {
  [Key in keyof T]: T[Key]["removal"] extends By ? Key : never
}[keyof T]

const isEmpty = (value: unknown): boolean =>
  value === false || isDeepStrictEqual(value, {}) || isDeepStrictEqual(value, [])

/** Returns what a function returns for each entry of a table, without what is undefined. */
const mapped = <Entry>(
  table: Readonly<Record<string, Entry>>,
  map: (name: string, entry: Entry) => unknown
): Record<string, unknown> => {
  const found: Record<string, unknown> = {}
  for (const [name, entry] of Object.entries(table)) {
    const value = map(name, entry)
    if (value !== undefined) found[name] = value
  }
  return found
}

/** The columns of one entry fit each other: each kind of setting is typed as a whole. */
const valueIn = (values: object, name: string): never =>
  (values as Readonly<Record<string, unknown>>)[name] as never

/** Whether the history tells all of a setting, so that it can be made again from there. */
export const isFullyTold = ({ tell }: Setting): boolean => tell === same

/** Returns the values of the settings that a new thing has. */
export const initialOf = <T extends Table>(table: T): Initial<T> =>
  mapped(table, (_, { initial }) => initial) as Initial<T>

/** Returns the fields of a thing that are no settings. */
export const withoutSettings = <T extends Table, Value extends Stored<T>>(
  table: T,
  value: Value
): Omit<Value, keyof T> =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !Object.hasOwn(table, name))) as Omit<
    Value,
    keyof T
  >

/** Returns the settings after a change. */
export const settingsAfter = <T extends Table>(
  table: T,
  before: Stored<T>,
  patch: Patch<T>
): Stored<T> =>
  mapped(table, (name, { after, initial, removal }) => {
    const value = after(valueIn(before, name), valueIn(patch, name))
    return initial === undefined && removal !== "null" && isEmpty(value) ? undefined : value
  }) as Stored<T>

/** Returns what is wrong with a change, setting by setting. */
export const changeProblems = <T extends Table>(
  table: T,
  before: Stored<T>,
  patch: Patch<T>
): ReadonlyArray<Problem> =>
  Object.entries(table).flatMap(([name, { problems }]) =>
    problems(name, valueIn(before, name), valueIn(patch, name))
  )

const applied = (table: Table, values: object, how: "masked" | "tell") =>
  mapped(table, (name, entry) => {
    const value: unknown = valueIn(values, name)
    return value === undefined ? undefined : entry[how](value as never)
  })

/** Returns what the history may record of the settings. */
export const toldOf = <T extends Table>(table: T, stored: StoredJson<T>): Told<T> =>
  applied(table, stored, "tell") as Told<T>

/** Returns the settings for people who may not see credentials. */
export const maskedOf = <T extends Table>(table: T, values: Stored<T>): Stored<T> =>
  applied(table, values, "masked") as Stored<T>

/** Returns a thing whose settings that hold credentials are as in a new one. */
export const withoutCredentials = <T extends Table, Value extends Stored<T>>(
  table: T,
  value: Value
): Value => {
  const entries = Object.entries(value).filter(([name]) => table[name]?.isSecret !== true)
  const secret = Object.entries(table).filter(([, { isSecret }]) => isSecret)
  return { ...Object.fromEntries(entries), ...initialOf(Object.fromEntries(secret)) } as Value
}

/** Returns the names of the settings that differ. */
export const namesOfChanged = (before: object, after: object): ReadonlyArray<string> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !isDeepStrictEqual(valueIn(before, name), valueIn(after, name))
  )
