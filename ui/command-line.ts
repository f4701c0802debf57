/* What a person would type for what a page does. */
import type { Field } from "./fields.ts"

/** Quotes a text for a shell where it needs that. */
export const quoted = (text: string): string =>
  /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** Returns `maxInFlight` as flags and people have it. */
export const dashed = (name: string, by = "-"): string =>
  name.replaceAll(/[A-Z]/g, (letter) => by + letter.toLowerCase())

/** Returns the flags of values that have the names of their flags, each behind a space. */
export const plainFlags = (values: Readonly<Record<string, unknown>>): string =>
  Object.entries(values)
    .map(([name, value]) => {
      if (value === undefined) return ""
      const flag = ` --${dashed(name)}`
      return value === true
        ? flag
        : `${flag} ${quoted(Array.isArray(value) ? value.join(",") : String(value))}`
    })
    .join("")

/** The flag of one entry of a setting: `headers` are given by `--header`. */
const oneOf = (name: string): string => dashed(name).replace(/s$/, "")

const jsonText = (value: unknown): string =>
  typeof value === "object" ? JSON.stringify(value) : String(value)

const entriesOf = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  Object.entries(Object(value))

/** Returns the flags that set one setting as a change has it. */
const flagsOf = (
  { isSecret, kind, name, removal }: Field,
  value: unknown
): ReadonlyArray<string> => {
  const flag = `--${dashed(name)}`
  if (value === null) return [`--no-${dashed(name)}`]
  switch (kind.is) {
    case "entries":
    case "names":
      if (isSecret === true)
        return [
          ...(entriesOf(value).some(([, one]) => one !== null)
            ? [`--${oneOf(name)}-file FILE`]
            : []),
          ...entriesOf(value).flatMap(([entry, one]) =>
            one === null ? [`--no-${oneOf(name)} ${quoted(entry)}`] : []
          )
        ]
      return entriesOf(value).map(([entry, one]) => {
        if (one === null) return `--no-${oneOf(name)} ${quoted(entry)}`
        if (kind.is === "names") return `--${oneOf(name)} ${quoted(entry)}`
        return `--${oneOf(name)} ${quoted(`${entry}=${jsonText(one)}`)}`
      })
    case "parts":
      return removal === "null by part"
        ? entriesOf(value).map(([part, one]) => `--${part}-header ${quoted(String(one ?? ""))}`)
        : [`${flag} ${quoted(jsonText(value))}`]
    case "switch":
      return removal === "empty" ? [`${flag} ${value === true ? "on" : "off"}`] : [flag]
    case "list":
      return [`${flag} ${quoted((value as ReadonlyArray<string>).join(","))}`]
    default:
      // A secret is read from standard input: what is typed stays in the history of a shell.
      return isSecret === true ? [`${flag} -`] : [`${flag} ${quoted(jsonText(value))}`]
  }
}

/** Returns the command that adds an endpoint, or changes it. */
export const endpointCommand = (
  verb: "add" | "set",
  name: string,
  fields: ReadonlyArray<Field>,
  change: Readonly<Record<string, unknown>>
): string => {
  const flags = fields.flatMap((field) =>
    Object.hasOwn(change, field.name) ? flagsOf(field, change[field.name]) : []
  )
  return ["petrel endpoint", verb, quoted(name), ...flags].join(" ")
}

/** Returns what is sent, with a word for each value that nobody should see over a shoulder. */
export const withoutSecrets = (
  fields: ReadonlyArray<Field>,
  body: Readonly<Record<string, unknown>>
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      if (fields.find((field) => field.name === name)?.isSecret !== true) return [name, value]
      if (typeof value !== "object") return [name, "SECRET"]
      return [name, Object.fromEntries(entriesOf(value).map(([one, of]) => [one, of && "VALUE"]))]
    })
  )
