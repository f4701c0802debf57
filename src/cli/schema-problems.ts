import { Result, Schema, SchemaIssue } from "effect"
import { nearestName } from "../policy/nearest-name.ts"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const oneOf = (expected: string): string | undefined => {
  const names = [...expected.matchAll(/"([^"]*)"/g)].map(([, name]) => name)
  return /^Expected "[^"]*"( \| "[^"]*")*$/.test(expected)
    ? `must be ${names.length > 1 ? "one of " : ""}${names.join(", ")}`
    : undefined
}

/** Returns a schema's message as the end of a sentence about the value. */
const reworded = (message: string): string => {
  const kinds = [...message.matchAll(/\{ readonly "kind": "(\w+)", \.\.\. \}/g)]
  if (kinds.length > 1)
    return `must be an object with a kind: ${kinds.map(([, kind]) => kind).join(", ")}`
  switch (message) {
    case 'Expected "off" | number':
      return "must be a number, or off"
    case 'Expected "off" | string':
      return 'must be a length of time such as "30 seconds", or off'
    case "Missing key":
      return "is missing"
    case "Expected an integer":
      return "must be a whole number"
    case "Expected a valid Duration string":
      return 'must be a length of time such as "30 seconds"'
  }
  return (
    oneOf(message) ??
    message
      .replace(/^Expected (object|integer)$/, "must be an $1")
      .replace(/^Expected (string|number)$/, "must be a $1")
      .replace(/^Expected a value between /, "must be between ")
      .replace(/^Expected /, "must be ")
  )
}

const quote = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

const at = (value: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null
        ? new Map(Object.entries(inner)).get(key)
        : undefined,
    value
  )

const keyOf = (segment: PropertyKey | { readonly key: PropertyKey }): string =>
  String(typeof segment === "object" ? segment.key : segment)

/**
 * Decodes a value. Fails with a message for each invalid part (`backoff.base "1 minut" must be …`)
 * and each unknown field.
 *
 * @param fields names of the top level, to suggest one for an unknown field.
 */
export const decoded = <A>(
  schema: Schema.ConstraintDecoder<A>,
  value: unknown,
  fields: ReadonlyArray<string> = []
): Result.Result<A, ReadonlyArray<string>> =>
  Result.mapError(
    Schema.decodeUnknownResult(schema)(value, { errors: "all", onExcessProperty: "error" }),
    ({ issue }) => {
      const byPlace = new Map<string, Array<string>>()
      for (const { message, path = [] } of format(issue).issues) {
        const keys = path.map(keyOf)
        const place = placeOf(keys, message, value)
        const said = byPlace.get(place) ?? []
        byPlace.set(place, [...said, problemOf(keys, message, fields)])
      }
      return [...byPlace].map(([place, said]) =>
        `${place} ${[...new Set(said)].join(" and ")}`.trim()
      )
    }
  )

const isMissingElement = (keys: ReadonlyArray<string>, message: string) =>
  message === "Missing key" && /^\d+$/.test(keys.at(-1) ?? "")

const noSuchField = "Expected no excess property"

const placeOf = (keys: ReadonlyArray<string>, message: string, value: unknown): string => {
  if (isMissingElement(keys, message)) return keys.slice(0, -1).join(".")
  if (message === "Missing key" || message === noSuchField) return keys.join(".")
  return [...(keys.length === 0 ? [] : [keys.join(".")]), quote(at(value, keys))].join(" ")
}

const problemOf = (
  keys: ReadonlyArray<string>,
  message: string,
  fields: ReadonlyArray<string>
): string => {
  if (isMissingElement(keys, message)) return "must not be empty"
  if (message !== noSuchField) return reworded(message)
  const nearest = keys.length === 1 ? nearestName(keys[0] ?? "", fields) : undefined
  return nearest === undefined
    ? "is not possible there"
    : `is not a field; did you mean ${nearest}?`
}
