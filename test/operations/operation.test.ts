import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { EndpointNotFound } from "../../src/endpoints/endpoint-store.ts"
import { operation } from "../../src/operations/operation.ts"
import { operationGroups } from "../../src/operations/operations.ts"

const count = {
  scope: "operator",
  summary: "Count",
  params: { tenant: Schema.String, kind: Schema.String },
  output: Schema.Struct({ count: Schema.Int })
} as const

const path = "/v1/tenants/:tenant/counts/:kind"
const lengthOf = (text: string) => Effect.succeed({ count: text.length })
const missing = new EndpointNotFound({ tenant: "acme", id: "billing" })

describe("an operation", () => {
  it("has to return what its schema says, and to name its refusals", () => {
    const right = operation("count", "GET", path, {
      ...count,
      refusals: ["not-found"],
      run: ({ params }) =>
        params.kind === "none" ? Effect.fail(missing) : Effect.succeed({ count: 1 })
    })
    assert.deepStrictEqual(right.refusals, ["not-found"])
    // @ts-expect-error it returns a text instead of a number
    operation("count", "GET", path, { ...count, run: () => Effect.succeed({ count: "1" }) })
    // @ts-expect-error it has no parameter of this name
    operation("count", "GET", path, { ...count, run: ({ params }) => lengthOf(params.sort) })
    // @ts-expect-error it does not name the refusal that it may have
    operation("count", "GET", path, { ...count, run: () => Effect.fail(missing) })
  })

  it("has parameters in its schema for all that varies in its path", () => {
    for (const { name: group, operations } of operationGroups)
      for (const { name, params = {}, path } of operations)
        assert.sameMembers(
          [...path.matchAll(/:(\w+)/g)].map(([, parameter]) => parameter),
          Object.keys(params),
          `${group}.${name}`
        )
  })
})
