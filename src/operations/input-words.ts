import { SchemaAST, type SchemaIssue } from "effect"

/** Upper bound of what is shown of a value, characters. */
const maxShown = 80
/** How deep a value is shown. */
const maxDepth = 4

/** Returns a text, cut where it is longer than `most` characters. */
export const shortened = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text

const parts = (value: unknown, depth: number): string => {
  if (typeof value === "string") return JSON.stringify(shortened(value, maxShown - 2))
  if (typeof value !== "object" || value === null) return String(value)
  if (depth === 0) return Array.isArray(value) ? "[…]" : "{…}"
  let text = ""
  // What is cut anyhow is not written: the value may be as large as a request.
  const add = (part: string) => {
    text += `${text === "" ? "" : ","}${part}`
    return text.length <= maxShown
  }
  if (Array.isArray(value)) {
    value.slice(0, maxShown).every((one) => add(parts(one, depth - 1)))
    return `[${text}]`
  }
  for (const name in value)
    if (!add(`${parts(name, 0)}:${parts(Reflect.get(value, name), depth - 1)}`)) break
  return `{${text}}`
}

/** Returns a value as JSON for people: short, whatever it holds. */
export const shownValue = (value: unknown): string => shortened(parts(value, maxDepth), maxShown)

/** How many names of a kind a sentence lists. */
const maxNames = 24
/** How many fields of an object a sentence lists. */
const maxFields = 8

const listed = (names: ReadonlyArray<string>, most: number): string =>
  names.length > most ? `${names.slice(0, most).join(", ")}, …` : names.join(", ")

/** Returns what a check of the library is, and its bounds; undefined for checks of Petrel's own. */
const checkIn = ({ annotations }: SchemaAST.Check<never>) => {
  const known = annotations?.representation
  const { id, payload }: { id?: unknown; payload?: unknown } = Object(known)
  if (typeof id !== "string") return undefined
  const bound = (name: string): number | undefined => {
    const value: unknown = Object(payload)[name]
    return typeof value === "number" ? value : undefined
  }
  const says = annotations?.message
  return { is: id.replace(/^.*\//, ""), bound, says: typeof says === "string" ? says : undefined }
}

const checksOf = (ast: SchemaAST.AST) =>
  (ast.checks ?? []).flatMap((check) => checkIn(check as SchemaAST.Check<never>) ?? [])

/** Returns what a schema of Petrel's own says of itself. The library's are one word: a class. */
const expectedBy = ({ annotations }: SchemaAST.AST): string | undefined => {
  const text = annotations?.expected
  return typeof text === "string" && text.includes(" ") ? text : undefined
}

const numberWords = (ast: SchemaAST.AST): string => {
  const checks = checksOf(ast)
  const range = checks.find(({ is }) => is === "isBetween")
  const kind = checks.some(({ is }) => is === "isInt") ? "a whole number" : "a number"
  if (range === undefined) return kind
  if (range.says !== undefined) return `${kind} ${range.says.replace("must be ", "")}`
  const [least, most] = [range.bound("minimum"), range.bound("maximum")]
  return most === Number.MAX_SAFE_INTEGER
    ? `${kind} from ${least} on`
    : `${kind} from ${least} to ${most}`
}

const isNothing = (ast: SchemaAST.AST): boolean =>
  SchemaAST.isUndefined(ast) || SchemaAST.isNull(ast)

/** The texts by which JSON would have numbers that it cannot hold. */
const noNumbers: ReadonlySet<unknown> = new Set(["NaN", "Infinity", "-Infinity"])

/** Returns what a union takes, without what nobody writes. */
const membersOf = ({ types }: SchemaAST.Union): ReadonlyArray<SchemaAST.AST> => {
  const members = types
    .flatMap((type) => (SchemaAST.isUnion(type) ? membersOf(type) : [type]))
    .filter((type) => !isNothing(type))
  return members.some(SchemaAST.isNumber)
    ? members.filter((type) => !(SchemaAST.isLiteral(type) && noNumbers.has(type.literal)))
    : members
}

/** Returns the literals that tell the members of a union apart by their field `kind`. */
const kindsOf = (members: ReadonlyArray<SchemaAST.AST>): ReadonlyArray<string> =>
  members.flatMap((member) => {
    if (!SchemaAST.isObjects(member)) return []
    const type = member.propertySignatures.find(({ name }) => name === "kind")?.type
    return type !== undefined && SchemaAST.isLiteral(type) ? [String(type.literal)] : []
  })

const unionWords = (union: SchemaAST.Union): string => {
  const members = membersOf(union)
  const literals = members.filter(SchemaAST.isLiteral).map(({ literal }) => String(literal))
  const others = members.filter((member) => !SchemaAST.isLiteral(member))
  const kinds = kindsOf(others)
  const choice = literals.length > 1 ? [`one of ${listed(literals, maxNames)}`] : literals
  const words =
    kinds.length > 1 && kinds.length === others.length
      ? [`an object with a kind: ${kinds.join(", ")}`]
      : others.map(wordsFor)
  return [...new Set([...choice, ...words])].join(", or ")
}

const arrayWords = ({ elements, rest }: SchemaAST.Arrays): string => {
  const of = elements[0] ?? rest[0]
  if (of === undefined) return "a list"
  if (SchemaAST.isString(of)) return "a list of strings"
  if (SchemaAST.isNumber(of)) return "a list of numbers"
  return SchemaAST.isObjects(of) ? "a list of objects" : "a list"
}

const objectWords = (ast: SchemaAST.Objects): string => {
  const { indexSignatures, propertySignatures } = ast
  const names = propertySignatures.map(({ name }) => String(name))
  if (names.length > 0) return `an object with ${listed(names, maxFields)}`
  const value = indexSignatures[0]?.type
  if (value === undefined) return "an object"
  return `an object of names, each with ${wordsFor(value)}`
}

/** Returns what a schema takes, in words: `a whole number from 1 to 1000`. */
export const wordsFor = (ast: SchemaAST.AST): string => {
  const expected = expectedBy(ast)
  if (expected !== undefined) return expected
  if (SchemaAST.isUnion(ast)) return unionWords(ast)
  if (SchemaAST.isObjects(ast)) return objectWords(ast)
  if (SchemaAST.isArrays(ast)) return arrayWords(ast)
  if (SchemaAST.isNumber(ast)) return numberWords(ast)
  if (SchemaAST.isLiteral(ast)) return String(ast.literal)
  if (SchemaAST.isBoolean(ast)) return "true or false"
  if (SchemaAST.isNull(ast)) return "null"
  return SchemaAST.isString(ast) ? "a string" : "of another form"
}

/**
 * Returns what a value fails that a check refused, as the end of a sentence about the value.
 *
 * @param ast with the check.
 */
export const checkSentence = (issue: SchemaIssue.Filter, ast: SchemaAST.AST, value: unknown) => {
  const { filter, issue: inner } = issue
  const said = inner._tag === "InvalidValue" ? inner.annotations?.message : undefined
  if (typeof said === "string") return said
  const check = checkIn(filter as SchemaAST.Check<never>)
  const whole = `must be ${wordsFor(ast)}`
  if (check === undefined || (SchemaAST.isNumber(ast) && !isOfItsKind(ast, value))) return whole
  const { bound, is, says } = check
  switch (is) {
    case "isBetween":
      return says ?? betweenSentence(whole, bound("minimum"), bound("maximum"))
    case "isMinLength":
      return bound("minLength") === 1
        ? "must not be empty"
        : `must have at least ${bound("minLength")} characters`
    case "isMaxLength":
      return `must have at most ${bound("maxLength")} characters`
    default:
      return whole
  }
}

const betweenSentence = (whole: string, least: number | undefined, most: number | undefined) =>
  most === Number.MAX_SAFE_INTEGER ? whole : `must be between ${least} and ${most}`

/** True for a number that is wrong by its size only. */
const isOfItsKind = (ast: SchemaAST.AST, value: unknown): boolean =>
  checksOf(ast).some(({ is }) => is === "isInt")
    ? Number.isSafeInteger(Number(value))
    : Number.isFinite(Number(value))
