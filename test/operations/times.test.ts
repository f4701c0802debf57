import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { groups } from "../../src/api/groups.ts"
import { Timestamp } from "../../src/domain/timestamp.ts"
import { readInput } from "../../src/operations/input.ts"
import type { Operation } from "../../src/operations/operation.ts"

/** Names of fields that say when something is. */
const timeName =
  /^(?:at|since|until|began|begins|oldest|newest|deadline|due|time|expires|notBefore|validFrom)$|(?:At|Since|Until|From|Time)$/

/** Names that end alike, and are no times. */
const otherNames: ReadonlySet<string> = new Set([
  "medianTime",
  "p99Time",
  "unroutedTime",
  "outboxTime"
])

type Json = { readonly [key: string]: unknown }

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null

const numeric = new Set(["number", "integer"])

/** Returns true if a schema lets a number pass. */
const takesNumber = (schema: unknown): boolean =>
  isObject(schema) &&
  (numeric.has(String(schema.type)) ||
    [schema.type, schema.anyOf, schema.oneOf].some(
      (parts) => Array.isArray(parts) && parts.some((one) => numeric.has(one) || takesNumber(one))
    ))

/** Lists the fields of a JSON schema that are named as a time and may be numbers. */
const numbersIn = (schema: unknown, path: string): ReadonlyArray<string> => {
  if (Array.isArray(schema)) return schema.flatMap((one) => numbersIn(one, path))
  if (!isObject(schema)) return []
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key !== "properties" || !isObject(value)) return numbersIn(value, path)
    return Object.entries(value).flatMap(([name, one]) => [
      ...(timeName.test(name) && !otherNames.has(name) && takesNumber(one)
        ? [`${path}.${name}`]
        : []),
      ...numbersIn(one, `${path}.${name}`)
    ])
  })
}

/** Returns what a JSON schema says of its values. */
const descriptionOf = (schema: unknown): string =>
  !isObject(schema)
    ? ""
    : [schema.description ?? "", ...[schema.allOf ?? []].flat().map(descriptionOf)].join(" ")

/** Lists the fields of a JSON schema that are ms, and neither named so nor within one that is. */
const unnamedMsIn = (schema: unknown, path: string): ReadonlyArray<string> => {
  if (Array.isArray(schema)) return schema.flatMap((one) => unnamedMsIn(one, path))
  if (!isObject(schema)) return []
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key !== "properties" || !isObject(value)) return unnamedMsIn(value, path)
    return Object.entries(value).flatMap(([name, one]) => {
      if (name === "ms" || name.endsWith("Ms")) return []
      const isMs = takesNumber(one) && /\bms\b/.test(descriptionOf(one))
      return [...(isMs ? [`${path}.${name}`] : []), ...unnamedMsIn(one, `${path}.${name}`)]
    })
  })
}

const fieldsThat = (are: (schema: unknown, path: string) => ReadonlyArray<string>) => [
  ...new Set(
    groups.flatMap((group) =>
      group.operations.flatMap((operation) =>
        schemasOf(operation).flatMap((schema) =>
          are(Schema.toJsonSchemaDocument(schema), `${group.name}.${operation.name}`)
        )
      )
    )
  )
]

const schemasOf = ({ headers, output, params, payload, query }: Operation<unknown>) => [
  ...[output].flat(),
  ...(payload === undefined ? [] : [payload].flat()),
  ...[params, query, headers].flatMap((fields) =>
    fields === undefined ? [] : [Schema.Struct(fields)]
  )
]

describe("times of operations", () => {
  it("are texts in every answer and input", () => {
    assert.deepStrictEqual(fieldsThat(numbersIn), [])
  })

  it("are numbers of ms only where a duration was measured, in fields that say so", () => {
    assert.deepStrictEqual(fieldsThat(unnamedMsIn), [])
  })

  it.each([
    [1764000000000, "1764000000000"],
    ["1764000000000", '"1764000000000"'],
    ["2026-02-30T00:00:00Z", '"2026-02-30T00:00:00Z"']
  ])("are refused in one sentence where they are %j", (since, shown) => {
    const Asked = Schema.toCodecJson(Schema.Struct({ since: Schema.optional(Timestamp) }))
    const message = `${shown} must be a time such as 2026-03-04T10:30:00Z`
    assert.deepStrictEqual(readInput(Asked, { since }), Result.fail([{ field: "since", message }]))
  })
})
