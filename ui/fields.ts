/* What people type into a form, and what it says: no document, no network. */

/** What a field takes. */
export type Kind =
  | { readonly is: "text"; readonly example?: string }
  | { readonly is: "number"; readonly least?: number; readonly most?: number }
  | { readonly is: "choice"; readonly options: ReadonlyArray<string> }
  | { readonly is: "switch" }
  /** A time of the calendar, as RFC 3339 has it. */
  | { readonly is: "time" }
  /** Texts with commas between them. */
  | { readonly is: "list" }
  /** Some of these. */
  | { readonly is: "choices"; readonly options: ReadonlyArray<string> }
  /** `name=value`, one a line. */
  | { readonly is: "entries" }
  /** Names, with commas between them. */
  | { readonly is: "names" }
  /** A word, a number, or JSON. */
  | { readonly is: "any" }
  | { readonly is: "parts"; readonly parts: ReadonlyArray<Field>; readonly mayBeOff?: true }

/** One field of a form. */
export interface Field {
  readonly name: string
  readonly text: string
  /** What holds without it, in words. */
  readonly usual?: string
  /** How a change takes it back. (Default: by null) */
  readonly removal?: "never" | "empty" | "null by name" | "null by part"
  /** What it is set to where nothing takes it back. */
  readonly initial?: unknown
  readonly isSecret?: true
  readonly kind: Kind
}

/** What stands in the fields, by the path of each: `circuit.failures`. */
export type Typed = Readonly<Record<string, string>>

type Values = Readonly<Record<string, unknown>>

const valuesIn = (value: unknown): Values => Object(value)

const jsonText = (value: unknown): string =>
  typeof value === "object" ? JSON.stringify(value) : String(value)

/** A rate stands in a form as people write it, where its unit is a second. */
const anyText = (value: unknown): string => {
  const { burst, perSecond } = valuesIn(value)
  return perSecond === undefined ? jsonText(value) : `${perSecond}/s burst ${burst}`
}

/** The path of the part that turns a group of thresholds off as a whole. */
const offOf = (path: string): string => `${path}.off`

/** Returns what stands in a field, and in its parts, for a value. */
const typedOf = ({ kind, name }: Field, value: unknown, before = ""): Typed => {
  const path = `${before}${name}`
  const isThere = value !== undefined && value !== null
  if (kind.is === "parts") {
    const values = valuesIn(value)
    // A part at its default is left empty, so that it stays at the default when others change.
    const parts = kind.parts.map((part) => {
      const one = values[part.name]
      return typedOf(part, jsonText(one) === part.usual ? undefined : one, `${path}.`)
    })
    const off = kind.mayBeOff === true ? { [offOf(path)]: value === "off" ? "on" : "" } : {}
    return Object.assign(off, ...parts)
  }
  if (!isThere) return { [path]: "" }
  switch (kind.is) {
    case "list":
    case "choices":
      return { [path]: (value as ReadonlyArray<string>).join(", ") }
    case "names":
      return {
        [path]: (Array.isArray(value) ? value : Object.keys(valuesIn(value))).join(", ")
      }
    case "entries":
      return {
        [path]: Object.entries(valuesIn(value))
          .map(([entry, one]) => `${entry}=${jsonText(one)}`)
          .join("\n")
      }
    case "switch":
      return { [path]: value === true ? "on" : "" }
    case "any":
      return { [path]: anyText(value) }
    default:
      return { [path]: String(value) }
  }
}

/** Returns what stands in a form for what is set. */
export const formOf = (fields: ReadonlyArray<Field>, values: Values): Typed =>
  Object.assign({}, ...fields.map((field) => typedOf(field, values[field.name])))

const listIn = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")

/** JSON where a text looks like it; otherwise the text, which the console judges. */
const anyIn = (text: string): unknown => {
  if (!/^[[{"]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const entriesIn = (text: string, isJson: boolean): Record<string, unknown> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const equals = line.includes("=") ? line.indexOf("=") : line.length
        const value = line.slice(equals + 1).trim()
        return [line.slice(0, equals).trim(), isJson ? anyIn(value) : value]
      })
  )

/** Returns the value that stands in a field; undefined if it is empty. */
const fieldValue = ({ kind, name }: Field, typed: Typed, before = ""): unknown => {
  const path = `${before}${name}`
  const text = (typed[path] ?? "").trim()
  if (kind.is === "parts") {
    if (typed[offOf(path)] === "on") return "off"
    const parts = kind.parts.flatMap((part) => {
      const value = fieldValue(part, typed, `${path}.`)
      return value === undefined ? [] : [[part.name, value] as const]
    })
    return parts.length === 0 ? undefined : Object.fromEntries(parts)
  }
  if (text === "") return undefined
  switch (kind.is) {
    // What is no number is sent as it is: the console says what is wrong with it.
    case "number":
      return Number.isNaN(Number(text)) ? text : Number(text)
    case "switch":
      return true
    case "list":
    case "choices":
      return listIn(text)
    case "names":
      return Object.fromEntries(listIn(text).map((one) => [one, true]))
    case "entries":
      return entriesIn(text, name === "retryFor")
    case "any":
      return /^\d+(\.\d+)?$/.test(text) ? Number(text) : anyIn(text)
    default:
      return text
  }
}

/** Returns the values of a form, without those that are empty. */
export const valuesOf = (fields: ReadonlyArray<Field>, typed: Typed): Record<string, unknown> =>
  Object.fromEntries(
    fields.flatMap((field) => {
      const value = fieldValue(field, typed)
      return value === undefined ? [] : [[field.name, value] as const]
    })
  )

const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** Returns the entries that differ, with null for those that are gone. */
const entryChanges = (before: unknown, after: unknown): Values => {
  const [old, now] = [valuesIn(before), valuesIn(after)]
  return {
    ...Object.fromEntries(Object.entries(now).filter(([name, one]) => !isSame(one, old[name]))),
    ...Object.fromEntries(
      Object.keys(old)
        .filter((name) => !Object.hasOwn(now, name))
        .map((name) => [name, null])
    )
  }
}

/** What takes a setting back. */
const takenBack = ({ initial, kind, removal }: Field): unknown => {
  if (removal === undefined) return null
  if (removal === "never") return initial ?? ""
  return kind.is === "switch" ? false : {}
}

/** Returns the change that a form makes of what it was: what is as before is left out. */
export const patchOf = (
  fields: ReadonlyArray<Field>,
  before: Typed,
  after: Typed
): Record<string, unknown> =>
  Object.fromEntries(
    fields.flatMap((field) => {
      const [old, now] = [fieldValue(field, before), fieldValue(field, after)]
      if (isSame(old, now)) return []
      if (field.removal === "null by name" || field.removal === "null by part")
        return [[field.name, entryChanges(old, now)] as const]
      return [[field.name, now ?? takenBack(field)] as const]
    })
  )

/** What stands for values that are not shown. */
const mask = "********"

/** Returns what is wrong with a change of entries whose values are not shown. */
export const maskProblems = (patch: Values): ReadonlyArray<FieldProblem> =>
  Object.entries(patch).flatMap(([field, value]) =>
    Object.values(valuesIn(value)).includes(mask)
      ? [{ field, message: "must have the value of an entry that is new or has another name" }]
      : []
  )

/** What is wrong with one field, as the console says it. */
interface FieldProblem {
  readonly field: string
  readonly message: string
}

/** Returns the paths of all that can be typed into. */
const pathsOf = (fields: ReadonlyArray<Field>): ReadonlyArray<string> =>
  Object.keys(formOf(fields, {}))

/**
 * Returns what is wrong by the path of the field where it is shown, which is the nearest one that the
 * form has; and what belongs to none of them.
 */
export const placeProblems = (
  fields: ReadonlyArray<Field>,
  problems: ReadonlyArray<FieldProblem>
): { readonly placed: Typed; readonly other: ReadonlyArray<string> } => {
  const paths = pathsOf(fields)
  const placed: Record<string, string> = {}
  const other: Array<string> = []
  for (const { field, message } of problems) {
    const path = paths
      .filter((one) => field === one || field.startsWith(`${one}.`) || one.startsWith(`${field}.`))
      .sort((a, b) => b.length - a.length)
      .find((one, _, all) => field.startsWith(one) || one === all.at(-1))
    const rest = path === undefined ? field : field.slice(path.length + 1)
    const text = rest === "" || path === undefined ? message : `${rest} ${message}`
    if (path === undefined) other.push(`${field} ${message}`.trim())
    else placed[path] = placed[path] === undefined ? text : `${placed[path]}; ${text}`
  }
  return { placed, other }
}
