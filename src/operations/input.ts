import { Result, Schema, SchemaAST, type SchemaIssue } from "effect"
import type { Problem } from "../domain/problem.ts"
import { endpointRequests, endpointSettings } from "../domain/settings/endpoint-table.ts"
import type { Input } from "../domain/settings/setting.ts"
import { tenantSettings } from "../domain/settings/tenant-table.ts"
import { nearestName } from "../policy/nearest-name.ts"
import { withoutTokens } from "../text/plain-text.ts"
import { checkSentence, shortened, shownValue, wordsFor } from "./input-words.ts"

/** Problems of one input that are told: whoever mends these sees the next ones. */
const maxProblems = 20
/** Upper bounds of a problem, characters. What is longer repeats what the caller sent. */
const maxKey = 64
const maxField = 256
const maxMessage = 1_000

/** Returns the problems as they may be answered: so many, and each no longer than a sentence. */
export const boundedProblems = (problems: ReadonlyArray<Problem>): ReadonlyArray<Problem> => {
  const told = problems.slice(0, maxProblems).map(({ field, message }) => ({
    field: withoutTokens(shortened(field, maxField)),
    message: withoutTokens(shortened(message, maxMessage))
  }))
  return problems.length > maxProblems
    ? [...told, { field: "", message: `has more problems than these ${maxProblems}` }]
    : told
}

/** A place of the input, and what an issue says of it. */
interface Finding {
  readonly keys: ReadonlyArray<string>
  readonly sentence: string
  /** Shown before the sentence. */
  readonly value: unknown
}

/** Where a walk through issues is. */
interface Place {
  readonly keys: ReadonlyArray<string>
  readonly value: unknown
  /** What decides there: what a transformation makes, and not what it is made of. */
  readonly ast: SchemaAST.AST | undefined
}

/** Returns a part of a value. One text stands for a list of one, as in a query. */
const within = (value: unknown, key: PropertyKey): unknown =>
  typeof value === "string" && key === 0
    ? value
    : typeof value === "object" && value !== null && Object.hasOwn(value, key)
      ? Reflect.get(value, key)
      : undefined

const shownKey = (key: PropertyKey): string => shortened(String(key), maxKey) || '""'

/** Returns what issues say, one after the other, so that the rest of many is never looked at. */
function* findings(issue: SchemaIssue.Issue, place: Place): Generator<Finding> {
  const { ast, keys, value } = place
  const found = (sentence: string): Finding => ({ keys, sentence, value })
  const unshown = (sentence: string): Finding => ({ keys, sentence, value: undefined })
  switch (issue._tag) {
    case "Pointer": {
      if (issue.issue._tag === "MissingKey" && typeof issue.path.at(-1) === "number") {
        yield unshown("must not be empty")
        return
      }
      const inner = issue.path.reduce<unknown>(within, value)
      // A text that stands for a list has no places.
      const places = typeof value === "string" ? issue.path.filter((key) => key !== 0) : issue.path
      const path = [...keys, ...places.map(shownKey)]
      if (issue.issue._tag === "UnexpectedKey")
        yield {
          keys: path,
          sentence: unknownSentence(String(issue.path.at(-1)), issue.issue.ast),
          value: undefined
        }
      else yield* findings(issue.issue, { keys: path, value: inner, ast: undefined })
      return
    }
    case "Encoding":
      yield* findings(issue.issue, { ...place, ast: ast ?? issue.ast })
      return
    case "Composite":
      for (const one of issue.issues) yield* findings(one, { ...place, ast: ast ?? issue.ast })
      return
    case "AnyOf": {
      if (issue.issues.every(isAboutTheWhole)) yield found(`must be ${wordsFor(ast ?? issue.ast)}`)
      else for (const one of issue.issues) yield* findings(one, { ...place, ast: undefined })
      return
    }
    case "Filter":
      if (issue.issue._tag === "InvalidValue")
        yield found(checkSentence(issue, ast ?? SchemaAST.unknown, value))
      else yield* findings(issue.issue, place)
      return
    case "InvalidType":
      yield found(`must be ${wordsFor(ast ?? issue.ast)}`)
      return
    case "InvalidValue": {
      const message = issue.annotations?.message
      if (message === noBody) yield unshown("is not valid JSON")
      else if (ast === undefined)
        yield found(typeof message === "string" ? message : "is not valid")
      else yield found(`must be ${wordsFor(ast)}`)
      return
    }
    case "MissingKey":
      yield unshown("is missing")
      return
    default:
      yield found("is not valid")
  }
}

/** True if no member of a union came near: what the union takes says more than what each refuses. */
const isAboutTheWhole = (issue: SchemaIssue.Issue): boolean =>
  issue._tag === "InvalidType" || (issue._tag === "AnyOf" && issue.issues.every(isAboutTheWhole))

/** What the library says of a body that does not parse. */
const noBody = "Expected a valid JSON body"

/** The credentials of a source (`Source`). */
const sourceCredentials = ["secrets", "verifyToken", "apiKey"]

/** Fields whose values may be credentials. A problem does not repeat them. */
const secretFields: ReadonlySet<string> = new Set([
  ...sourceCredentials,
  ...Object.entries<Input>({ ...endpointSettings, ...endpointRequests, ...tenantSettings })
    .filter(([, { isSecret }]) => isSecret)
    .map(([name]) => name)
])

/** A URL with a user and perhaps a password in front of its host. */
const withUser = /^\w+:\/\/[^/?#]*@/

const holdsSecrets = (value: unknown): boolean =>
  (Array.isArray(value) ? value : [value]).some(
    (one) =>
      typeof one === "object" &&
      one !== null &&
      [...secretFields].some((name) => Object.hasOwn(one, name))
  )

/** Returns the value that is to be shown before the sentence, or nothing. */
const shownBefore = ({ keys, sentence, value }: Finding): string => {
  if (value === undefined || secretFields.has(keys[0] ?? "")) return ""
  if (typeof value === "string" && withUser.test(value)) return ""
  // Not one of these fields, but perhaps something that has them.
  if (keys.length === 0 && holdsSecrets(value)) return ""
  const shown = shownValue(value)
  // Some sentences name what they are about themselves.
  const isNamed = typeof value === "string" && sentence.includes(shown)
  return isNamed || sentence.startsWith('"') ? "" : `${shown} `
}

/** Returns the problems in an input that does not decode, one for each invalid or unknown field. */
const problemsIn = (issue: SchemaIssue.Issue, value: unknown): ReadonlyArray<Problem> => {
  const byPlace = new Map<string, { field: string; shown: string; sentences: Set<string> }>()
  for (const finding of findings(issue, { keys: [], value, ast: undefined })) {
    const field = finding.keys.join(".")
    const shown = shownBefore(finding)
    const place = `${field} ${shown}`
    const known = byPlace.get(place) ?? { field, shown, sentences: new Set() }
    known.sentences.add(finding.sentence)
    byPlace.set(place, known)
    if (byPlace.size > maxProblems) break
  }
  return boundedProblems(
    [...byPlace.values()].map(({ field, sentences, shown }) => ({
      field,
      message: `${shown}${[...sentences].join(" and ")}`
    }))
  )
}

/**
 * Decodes the input of an operation. Fails with a problem for each invalid field
 * (`backoff.base "1 minut" must be …`) and each unknown one, `maxProblems` at most.
 */
export const readInput = <A>(
  schema: Schema.ConstraintDecoder<A>,
  value: unknown
): Result.Result<A, ReadonlyArray<Problem>> =>
  Result.mapError(
    Schema.decodeUnknownResult(schema)(value, { errors: "all", onExcessProperty: "error" }),
    ({ issue }) => problemsIn(issue, value)
  )

/**
 * Returns the problems in an input that another schema did not decode, such as a request's body. Values
 * are shown where the issue keeps its input (`reportInput`).
 */
export const inputProblems = (issue: SchemaIssue.Issue): ReadonlyArray<Problem> =>
  problemsIn(issue, issue.input)

/** How many fields are named where another one was given. */
const maxNamed = 10

const fieldsOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []

const unknownSentence = (name: string, ast: SchemaAST.AST): string => {
  const names = fieldsOf(ast)
  const nearest = nearestName(name, names)
  if (nearest !== undefined) return `is not a field; did you mean ${nearest}?`
  return names.length === 0 || names.length > maxNamed
    ? "is not a field here"
    : `is not a field here: there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`
}
