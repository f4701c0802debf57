import { Result, Schema, SchemaAST, SchemaIssue } from "effect"
import type { Problem } from "../domain/problem.ts"
import { endpointRequests, endpointSettings } from "../domain/settings/endpoint-table.ts"
import type { Input } from "../domain/settings/setting.ts"
import { tenantSettings } from "../domain/settings/tenant-table.ts"
import { nearestName } from "../policy/nearest-name.ts"

const missing = "Missing key"
const noSuchField = "Expected no excess property"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const oneOf = (expected: string): string | undefined => {
  const names = [...expected.matchAll(/"([^"]*)"/g)].map(([, name]) => name)
  return /^Expected "[^"]*"( \| "[^"]*")*$/.test(expected)
    ? `must be ${names.length > 1 ? "one of " : ""}${names.join(", ")}`
    : undefined
}

/** Returns a schema's message as the end of a sentence about the value. */
const reworded = (whole: string): string => {
  const message = whole.replaceAll(/ \| (null|undefined)\b/g, "")
  const kinds = [...message.matchAll(/\{ readonly "kind": "(\w+)", \.\.\. \}/g)]
  if (kinds.length > 1)
    return `must be an object with a kind: ${kinds.map(([, kind]) => kind).join(", ")}`
  switch (message) {
    case 'Expected "off" | number':
      return "must be a number, or off"
    case 'Expected "off" | string':
      return 'must be a length of time such as "30 seconds", or off'
    case missing:
      return "is missing"
    case "Expected an integer":
      return "must be a whole number"
    case "Expected a valid Duration string":
      return 'must be a length of time such as "30 seconds"'
  }
  return (
    oneOf(message) ??
    message
      // A struct that has a name is an object for whoever writes one.
      .replace(/^Expected (?:object|[A-Z]\w+)$/, "must be an object")
      .replace(/^Expected integer$/, "must be an integer")
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

/** Returns a schema's message without the input that it may show: that may be a secret. */
const withoutInput = (message: string): string =>
  message.startsWith("Unexpected key with value") ? noSuchField : message.replace(/, got .*$/s, "")

/** Returns the problems in an input that does not decode, one for each invalid or unknown field. */
const problemsIn = (
  issue: SchemaIssue.Issue,
  value: unknown,
  ast: SchemaAST.AST
): ReadonlyArray<Problem> => {
  const byPlace = new Map<string, { field: string; shown: string; messages: Set<string> }>()
  for (const { message: whole, path = [] } of format(issue).issues) {
    const message = withoutInput(whole)
    const keys = path.map(keyOf)
    const field = isMissingElement(keys, message) ? keys.slice(0, -1) : keys
    const sentence = problemOf(keys, message, ast)
    const shown = needsValue(keys, message, sentence, at(value, keys)) ? quote(at(value, keys)) : ""
    const place = `${field.join(".")} ${shown}`
    const known = byPlace.get(place) ?? { field: field.join("."), shown, messages: new Set() }
    known.messages.add(sentence)
    byPlace.set(place, known)
  }
  return [...byPlace.values()].map(({ field, messages, shown }) => ({
    field,
    message: `${shown} ${[...messages].join(" and ")}`.trim()
  }))
}

/**
 * Decodes the input of an operation. Fails with a problem for each invalid field
 * (`backoff.base "1 minut" must be …`) and each unknown one.
 */
export const readInput = <A>(
  schema: Schema.ConstraintDecoder<A>,
  value: unknown
): Result.Result<A, ReadonlyArray<Problem>> =>
  Result.mapError(
    Schema.decodeUnknownResult(schema)(value, { errors: "all", onExcessProperty: "error" }),
    ({ issue }) => problemsIn(issue, value, schema.ast)
  )

/**
 * Returns the problems in an input that did not decode elsewhere, such as a request's body. Values
 * are shown where the issue keeps its input (`reportInput`).
 */
export const inputProblems = (issue: SchemaIssue.Issue): ReadonlyArray<Problem> =>
  problemsIn(issue, issue.input, "ast" in issue ? issue.ast : Schema.Unknown.ast)

const isMissingElement = (keys: ReadonlyArray<string>, message: string) =>
  message === missing && /^\d+$/.test(keys.at(-1) ?? "")

/** Fields whose values may be credentials. A problem does not repeat them. */
const secretFields: ReadonlySet<string> = new Set(
  Object.entries<Input>({ ...endpointSettings, ...endpointRequests, ...tenantSettings })
    .filter(([, { isSecret }]) => isSecret)
    .map(([name]) => name)
)

/** Returns true if the value is to be shown before the sentence. */
const needsValue = (
  keys: ReadonlyArray<string>,
  message: string,
  sentence: string,
  value: unknown
): boolean => {
  if (message === missing || message === noSuchField || value === undefined) return false
  if (secretFields.has(keys[0] ?? "")) return false
  // Some sentences name what they are about themselves.
  const isNamed = typeof value === "string" && sentence.includes(quote(value))
  return !isNamed && !sentence.startsWith('"')
}

/** Returns the names of the fields that a schema has at a place. */
const fieldsAt = (ast: SchemaAST.AST, [first, ...rest]: ReadonlyArray<string>): Array<string> => {
  if (SchemaAST.isUnion(ast))
    return ast.types.flatMap((type) => fieldsAt(type, first === undefined ? [] : [first, ...rest]))
  if (!SchemaAST.isObjects(ast)) return []
  const { propertySignatures: fields } = ast
  return first === undefined
    ? fields.map(({ name }) => String(name))
    : fields.flatMap(({ name, type }) => (name === first ? fieldsAt(type, rest) : []))
}

const problemOf = (keys: ReadonlyArray<string>, message: string, ast: SchemaAST.AST): string => {
  if (isMissingElement(keys, message)) return "must not be empty"
  if (message !== noSuchField) return reworded(message)
  const nearest = nearestName(keys.at(-1) ?? "", fieldsAt(ast, keys.slice(0, -1)))
  return nearest === undefined
    ? "is not possible there"
    : `is not a field; did you mean ${nearest}?`
}
