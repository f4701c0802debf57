import { assert, describe, it } from "@effect/vitest"
import { readIdFilter } from "../../src/domain/endpoint-id-filter.ts"

describe("readIdFilter", () => {
  it("reads an id, or a beginning", () => {
    assert.deepStrictEqual(readIdFilter("billing"), { text: "billing", isBeginning: false })
    assert.deepStrictEqual(readIdFilter("bill-*"), { text: "bill-", isBeginning: true })
    assert.deepStrictEqual(readIdFilter("_*"), { text: "_", isBeginning: true })
    assert.deepStrictEqual(readIdFilter("*"), { text: "", isBeginning: true })
  })

  it("reads nothing that no id can be or begin with", () => {
    for (const text of ["", "_", "a b", "a.b", "a*b*", "a**", ">", `${"x".repeat(65)}*`])
      assert.isUndefined(readIdFilter(text), text)
    assert.isDefined(readIdFilter(`${"x".repeat(64)}*`))
  })
})
