import { assert, describe, it } from "@effect/vitest"
import { apiDocument } from "../../src/api/document.ts"
import { operations } from "../kit/api-operations.ts"

const text = JSON.stringify(apiDocument())

describe("the OpenAPI document", () => {
  it("says what each operation does and each parameter means", () => {
    const { paths } = JSON.parse(text)
    for (const [path, methods] of Object.entries<Record<string, { summary?: string }>>(paths))
      for (const [method, { summary }] of Object.entries(methods))
        if (path !== "/healthz") assert.isString(summary, `${method} ${path}`)
    for (const { id, parameters } of operations)
      for (const parameter of parameters)
        assert.property(parameter, "description", `${id} ${parameter.name}`)
  })

  it("has every route, each path once, and its scheme", () => {
    const { paths } = JSON.parse(text)
    const ids = Object.values<Record<string, { operationId: string }>>(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId)
    )
    assert.sameMembers(
      ids,
      operations.map(({ id }) => id)
    )
    const shapes = operations.map(
      ({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`
    )
    assert.strictEqual(new Set(shapes).size, shapes.length)
    const named = new Set(operations.map(({ path }) => path))
    assert.strictEqual(
      new Set([...named].map((path) => path.replaceAll(/\{\w+\}/g, "{}"))).size,
      named.size
    )
    assert.deepStrictEqual(
      operations.filter(({ needsToken }) => !needsToken).map(({ path }) => path),
      ["/healthz"]
    )
  })

  it("is written plainly: no texts in allOf, no numbers that are texts", () => {
    for (const odd of ['"allOf"', '"Infinity"', '"NaN"', "Encoded", '"prefixItems"'])
      assert.notInclude(text, odd)
  })

  it("refers to nothing that it does not have", () => {
    const { schemas } = JSON.parse(text).components
    for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      assert.property(schemas, name)
  })
})
