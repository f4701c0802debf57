/*
 * Inputs of operations, made from their schemas: those that a schema allows, and those that differ
 * from such a one in one way.
 */
import fc from "fast-check"

/** A JSON Schema, as far as inputs are made from it. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Schema>
  readonly oneOf?: ReadonlyArray<Schema>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly minProperties?: number
  readonly additionalProperties?: boolean | Schema
  /** What holds of the whole object where it has a field. */
  readonly dependentSchemas?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  readonly examples?: ReadonlyArray<unknown>
}

/**
 * What a field of some name may be, where a schema knows no more than that it is a text; and as `!`
 * the optional fields that are always given.
 */
export type Hints = Readonly<Record<string, ReadonlyArray<unknown>>>

/** Texts that have led programs astray. None leads out of this machine. */
export const oddTexts = [
  "",
  " ",
  ".",
  "..",
  "*",
  "_",
  ">",
  "a.b",
  "%",
  "%00",
  "%2e%2e%2f",
  "a/b",
  "a\\b",
  "null",
  "undefined",
  "__proto__",
  "constructor",
  "\u0000",
  "\n",
  "\u202e",
  "é",
  "\u4e2d\u6587",
  "😀",
  "e\u0301",
  "'; --",
  "{{x}}",
  "<b>",
  "-1",
  "1e400",
  "9007199254740993",
  "2026-02-30T00:00:00Z",
  "+292278994-08-17T00:00:00Z",
  "P1Y",
  "x".repeat(65),
  "x".repeat(300),
  "x".repeat(5_000)
]

const oddNumbers = [0, -1, 0.5, 1e21, -1e21, 2 ** 31, 2 ** 53, 1e308, 5e-324]

const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,12}$/)

const datesBetween = (from: string, to: string) =>
  fc.date({ min: new Date(from), max: new Date(to), noInvalidDate: true })

/** Mostly times of the past: of the future nothing can be asked. */
const times = fc.oneof(
  { arbitrary: datesBetween("2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), weight: 9 },
  datesBetween("2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z")
)

/** What fields mostly are whose value must not have been there before. */
const unique: ReadonlyMap<string, fc.Arbitrary<string>> = new Map([
  ["idempotency-key", fc.uuid()],
  [
    "secret",
    fc
      .uint8Array({ minLength: 32, maxLength: 32 })
      .map((bytes) => `whsec_${btoa(String.fromCharCode(...bytes))}`)
  ]
])

/** Fields that are addresses: none that is made may lead out of this machine. */
const addresses: ReadonlySet<string> = new Set(["url", "redirectsTo", "publicUrl", "apiUrl"])

/** Texts of a pattern. What must not follow in it is left out afterwards. */
const matching = (pattern: string): fc.Arbitrary<string> => {
  const all = new RegExp(pattern, "u")
  const rest = pattern.replaceAll(/\(\?![^)]*\)/g, "")
  const any = /^\^?\$?$/.test(rest)
    ? fc.string({ maxLength: 40 })
    : fc.stringMatching(new RegExp(rest))
  return any.filter((text) => all.test(text))
}

/** Values of any kind, of the sizes that people send. */
const anything = fc.oneof(
  fc.constantFrom<unknown>(...oddTexts, ...oddNumbers, null, true, false, [], {}),
  fc.jsonValue({ maxDepth: 3 }),
  word
)

/** How deep a value is, at most. */
const maxDepth = 8

/** Makes values by the schemas of one document. */
export class Inputs {
  readonly #schemas: Readonly<Record<string, Schema>>
  readonly #hints: Hints

  constructor(document: { readonly components: { readonly schemas: object } }, hints: Hints) {
    this.#schemas = document.components.schemas as Readonly<Record<string, Schema>>
    this.#hints = hints
  }

  resolved(schema: Schema): Schema {
    const name = schema.$ref?.split("/").at(-1)
    return name === undefined ? schema : this.resolved(this.#schemas[name] ?? {})
  }

  /** Returns values that a schema allows, mostly of such as its field usually has. */
  allowed(given: Schema, name = "", depth = 0): fc.Arbitrary<unknown> {
    const schema = this.resolved(given)
    const { anyOf, enum: literals, oneOf, type } = schema
    const choices = oneOf ?? anyOf
    if (literals !== undefined) return this.#literals(literals, name)
    if (choices !== undefined)
      return fc.oneof(...choices.map((one) => this.allowed(one, name, depth + 1)))
    switch (type) {
      case "object":
        return this.#objects(schema, name, depth)
      case "array":
        return fc.array(this.allowed(schema.items ?? {}, name, depth + 1), {
          minLength: schema.minItems ?? 0,
          maxLength: Math.min(schema.maxItems ?? 4, depth > maxDepth ? 0 : 4)
        })
      case "integer":
      case "number":
        return this.#numbers(schema)
      case "boolean":
        return fc.boolean()
      case "null":
        return fc.constant(null)
      case "string":
        return this.#texts(schema, name)
      default:
        return anything
    }
  }

  #literals(literals: ReadonlyArray<unknown>, name: string): fc.Arbitrary<unknown> {
    const usual = (this.#hints[name] ?? []).filter((one) => literals.includes(one))
    const any = fc.constantFrom(...literals)
    return usual.length === 0
      ? any
      : fc.oneof({ arbitrary: fc.constantFrom(...usual), weight: 6 }, any)
  }

  #numbers({ maximum, minimum, type }: Schema): fc.Arbitrary<number> {
    const [min, max] = [minimum ?? 0, maximum ?? Number.MAX_SAFE_INTEGER]
    const edges = fc.constantFrom(min, max)
    const small = fc.integer({ min: Math.ceil(min), max: Math.floor(Math.min(max, min + 1_000)) })
    return type === "integer"
      ? fc.oneof(edges, { arbitrary: small, weight: 5 })
      : fc.oneof(edges, { arbitrary: small, weight: 5 }, fc.double({ min, max, noNaN: true }))
  }

  #texts({ examples, format, maxLength, minLength, pattern }: Schema, name: string) {
    const usual = (this.#hints[name] ?? examples ?? []).map(String)
    const any =
      format === "date-time"
        ? times.map((date) => date.toISOString())
        : pattern === undefined
          ? fc.oneof(
              word,
              fc.string({
                unit: "grapheme",
                minLength: minLength ?? 0,
                maxLength: Math.min(maxLength ?? 40, 40)
              })
            )
          : addresses.has(name)
            ? word
            : matching(pattern)
    const fresh = unique.get(name.toLowerCase())
    if (fresh !== undefined) return fc.oneof({ arbitrary: fresh, weight: 6 }, any)
    const weight = addresses.has(name) ? 20 : 6
    return usual.length === 0
      ? any
      : fc.oneof({ arbitrary: fc.constantFrom(...usual), weight }, any)
  }

  #objects(schema: Schema, name: string, depth: number): fc.Arbitrary<unknown> {
    const { additionalProperties, minProperties = 0, properties, required = [] } = schema
    if (properties === undefined) {
      const value =
        typeof additionalProperties === "object"
          ? this.allowed(additionalProperties, name, depth + 1)
          : anything
      const keys = this.#hints[`${name}{}`]?.map(String)
      const key = keys === undefined ? word : fc.oneof(fc.constantFrom(...keys), word)
      return fc.dictionary(key, value, { maxKeys: depth > maxDepth ? 0 : 3 })
    }
    const names = Object.keys(properties)
    const usual = this.#hints["!"] ?? []
    const always = names.filter((one) => required.includes(one) || usual.includes(one))
    const optional = names.filter((one) => !always.includes(one))
    // Of many fields few: all of them together are seldom right.
    return fc
      .subarray(optional, {
        minLength: Math.min(optional.length, Math.max(0, minProperties - always.length)),
        maxLength: Math.min(optional.length, 4)
      })
      .chain((chosen) =>
        fc.record(
          Object.fromEntries(
            [...always, ...chosen].map((one) => [
              one,
              this.allowed(properties[one] ?? {}, one, depth + 1)
            ])
          ),
          { noNullPrototype: true }
        )
      )
      .map((made) => inOrder(withoutMisfits(schema, made)))
  }

  /** Returns a value that differs in one place from one that a schema allows. */
  changed(schema: Schema): fc.Arbitrary<unknown> {
    return fc
      .tuple(this.allowed(schema), fc.nat(), anything, fc.constantFrom("drop", "add", "replace"))
      .map(([value, at, other, how]) => changedAt(value, at, other, how))
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Leaves out the fields that an object may not have with what else it has. */
const withoutMisfits = ({ dependentSchemas = {} }: Schema, made: Fields): Fields =>
  Object.fromEntries(
    Object.entries(made).filter(([name]) =>
      Object.entries(dependentSchemas[name]?.properties ?? {}).every(
        ([other, { enum: literals }]) => literals?.includes(made[other]) ?? true
      )
    )
  )

/** Puts the ends of a range of times in their order, which no schema can tell. */
export const inOrder = <A extends Fields>(made: A): A => {
  const { since, until } = made
  const isWrong = typeof since === "string" && typeof until === "string" && since > until
  return isWrong ? { ...made, since: until, until: since } : made
}

type Change = "add" | "drop" | "replace"

/** Returns the places in a value, the whole first. */
const placesIn = (
  value: unknown,
  keys: ReadonlyArray<string> = []
): Array<ReadonlyArray<string>> =>
  typeof value === "object" && value !== null
    ? [keys, ...Object.entries(value).flatMap(([key, one]) => placesIn(one, [...keys, key]))]
    : [keys]

/** Returns a value with a change in one of its places. */
export const changedAt = (value: unknown, at: number, other: unknown, how: Change): unknown => {
  const places = placesIn(value)
  const keys = places[at % places.length] ?? []
  const inner = (one: unknown, [key, ...rest]: ReadonlyArray<string>): unknown => {
    if (key === undefined)
      return how === "add" && typeof one === "object" && one !== null && !Array.isArray(one)
        ? { ...one, notAField: other }
        : other
    if (Array.isArray(one)) {
      const changed = one.map((item, index) => (String(index) === key ? inner(item, rest) : item))
      return how === "drop" && rest.length === 0 ? changed.toSpliced(Number(key), 1) : changed
    }
    const { [key]: old, ...others } = one as Readonly<Record<string, unknown>>
    return how === "drop" && rest.length === 0 ? others : { ...others, [key]: inner(old, rest) }
  }
  return inner(value, keys)
}
