import { assert, describe, it } from "@effect/vitest"
import { Result, Schema, SchemaAST } from "effect"
import { Api } from "../../src/api/api.ts"
import { endpointSettings } from "../../src/domain/settings/endpoint-table.ts"
import type { Setting } from "../../src/domain/settings/setting.ts"
import { tenantSettings } from "../../src/domain/settings/tenant-table.ts"
import { readInput } from "../../src/operations/input.ts"

/** Values of each kind that some schema does not take. */
const wrongValues: ReadonlyArray<unknown> = [
  ...[null, undefined, true, 5, -1, 1.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY],
  ...["", "x", "nonsense!", "x".repeat(2_000), "é\n", "NaN", "Infinity", "1.5", "-1", "1e9"],
  ...["0 seconds", "999999 days", "-5 seconds", "constructor", "__proto__"],
  ...[[], [null], [""], [[]], {}, { nonsense: 1 }, { kind: "x" }, { maxInFlihgt: 1 }],
  ...["x", 1, null].map((value) => ({ x: value, "bad name\n": value }))
]

type Put = (value: unknown) => unknown

/** How deep schemas are looked into. */
const maxDepth = 7

/** Returns what puts a value at each place of what a schema takes. */
const placesIn = (given: SchemaAST.AST, depth = 0): ReadonlyArray<Put> => {
  const ast = SchemaAST.toEncoded(given)
  const inner = (one: SchemaAST.AST, put: (value: unknown) => unknown) =>
    placesIn(one, depth + 1).map(
      (place): Put =>
        (value) =>
          put(place(value))
    )
  const here: Put = (value) => value
  if (depth > maxDepth) return [here]
  if (SchemaAST.isUnion(ast)) return [here, ...ast.types.flatMap((one) => inner(one, here))]
  if (SchemaAST.isArrays(ast))
    return [
      here,
      ...[...ast.elements, ...ast.rest].flatMap((one) => inner(one, (value) => [value]))
    ]
  if (!SchemaAST.isObjects(ast)) return [here]
  // What tells members of a union apart is right, so that the others are looked into.
  const literals = Object.fromEntries(
    ast.propertySignatures.flatMap(({ name, type }) => {
      const encoded = SchemaAST.toEncoded(type)
      return SchemaAST.isLiteral(encoded) ? [[String(name), encoded.literal]] : []
    })
  )
  return [
    here,
    ...ast.propertySignatures.flatMap(({ name, type }) =>
      inner(type, (value) => ({ ...literals, [String(name)]: value }))
    ),
    ...ast.indexSignatures.flatMap(({ type }) =>
      ["x", "404", "bad name\n", ""].flatMap((name) => inner(type, (value) => ({ [name]: value })))
    )
  ]
}

interface Endpoint {
  readonly identifier: string
  readonly params?: Schema.Constraint
  readonly query?: Schema.Top
  readonly headers?: Schema.Constraint
  readonly payload: ReadonlyMap<string, { readonly schemas: ReadonlyArray<Schema.Top> }>
}

/** All schemas by which a request is decoded, as the API decodes it. */
const requestSchemas = () =>
  Object.values(Api.groups).flatMap((group) =>
    Object.values(group.endpoints as unknown as Record<string, Endpoint>).flatMap((endpoint) => {
      const { headers, params, payload, query } = endpoint
      return [
        ...(params === undefined ? [] : [params]),
        ...(query === undefined ? [] : [Schema.toCodecArrayFromSingle(query)]),
        ...(headers === undefined ? [] : [headers]),
        ...[...payload.values()].map(({ schemas }) => Schema.Union(schemas))
      ].map((schema) => [`${group.identifier}.${endpoint.identifier}`, schema] as const)
    })
  )

/** All settings as they are stored. What is asked for of them is part of requests. */
const settingSchemas = () =>
  Object.entries<Setting>({ ...endpointSettings, ...tenantSettings }).map(
    ([name, { stored }]) => [name, Schema.Struct({ [name]: stored as Schema.Top })] as const
  )

/** Words of the library, of JavaScript or of regular expressions, which say nothing to people. */
const foreign =
  /Expected|Invalid|Infinity|NaN|readonly|undefined|\bnull\b|\[object|Schema|Array|Option|Duration|DateTime|Struct|Record|filter>|symbol|excess|\\[dwsp]|\^|\$$|__|\bsignature\b/

/** How a sentence about a field begins. */
const beginnings =
  /^(must (be|have|not|name) |is (missing|not a field|given|longer|a header|a name|a path|no valid|not )|there is no retry preset|types whose|the type|names |has )/

/** Takes away what a sentence repeats of the value. */
const withoutValue = (message: string): string =>
  message
    .replaceAll(/"(?:[^"\\…]|\\.)*(?:…"|"|…)/g, '"…"')
    .replace(/^(?:"…" |-?[\d.e+]+ |NaN |-?Infinity |true |null |[[{].*? (?=must |is |has ))/, "")

describe("a problem with an input", () => {
  it("is a sentence that people understand, whatever was wrong", () => {
    const sentences = new Map<string, string>()
    for (const [name, schema] of [...requestSchemas(), ...settingSchemas()])
      for (const put of placesIn(schema.ast))
        for (const value of wrongValues) {
          const read = readInput(schema as Schema.ConstraintDecoder<unknown>, put(value))
          if (Result.isSuccess(read)) continue
          for (const { field, message } of read.failure)
            for (const part of withoutValue(message).split(" and must "))
              sentences.set(part, `${name} ${field}: ${message}`)
        }
    assert.isAbove(sentences.size, 60)
    if (process.env.SHOW) console.log([...sentences.values()].join("\n"))
    for (const [sentence, whole] of sentences) {
      assert.notMatch(sentence, foreign, whole)
      assert.match(sentence.replace(/^"…" /, ""), beginnings, whole)
    }
  })
})
