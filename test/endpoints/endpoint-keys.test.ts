import { assert, describe, it } from "@effect/vitest"
import { readIdFilter } from "../../src/domain/endpoint-id-filter.ts"
import { SortedKeys } from "../../src/endpoints/endpoint-keys.ts"

const keysOf = (...keys: ReadonlyArray<string>): SortedKeys => {
  const sorted = new SortedKeys()
  for (const key of keys) sorted.hear(key, "")
  sorted.complete()
  return sorted
}

describe("SortedKeys", () => {
  const keys = () => keysOf("b.x", "a.z", "a.y", "a-b.q", "ab.r", "_", "a")

  it("are those of endpoints, in order, of one tenant or all", () => {
    assert.deepStrictEqual(keys().page(undefined, undefined, 10), [
      "a-b.q",
      "a.y",
      "a.z",
      "ab.r",
      "b.x"
    ])
    assert.deepStrictEqual(keys().page("a", undefined, 10), ["a.y", "a.z"])
    assert.deepStrictEqual(keys().page("c", undefined, 10), [])
  })

  it("begin after a key, which need not be there, and end at the limit", () => {
    assert.deepStrictEqual(keys().page("a", "a.y", 10), ["a.z"])
    assert.deepStrictEqual(keys().page("a", "a.x", 1), ["a.y"])
    assert.deepStrictEqual(keys().page(undefined, "a.z", 1), ["ab.r"])
    assert.deepStrictEqual(keys().page("a", "b.x", 10), [])
  })

  it("are found by their id, or its beginning, after a key and up to the limit", () => {
    const named = keysOf("a.bill-1", "a.bill-2", "a.bill", "a.other", "b.bill-1", "c.x", "_")
    const found = (tenant: string | undefined, text: string, after?: string, limit = 10) =>
      named.page(tenant, after, limit, readIdFilter(text))
    assert.deepStrictEqual(found("a", "bill*"), ["a.bill", "a.bill-1", "a.bill-2"])
    assert.deepStrictEqual(found("a", "bill"), ["a.bill"])
    assert.deepStrictEqual(found("a", "bil"), [])
    assert.deepStrictEqual(found("a", "bill*", "a.bill", 1), ["a.bill-1"])
    assert.deepStrictEqual(found("c", "bill*"), [])
    assert.deepStrictEqual(found(undefined, "bill-1"), ["a.bill-1", "b.bill-1"])
    assert.deepStrictEqual(found(undefined, "bill-*", "a.bill-1"), ["a.bill-2", "b.bill-1"])
    assert.strictEqual(found(undefined, "*").length, 6)
  })

  it("count the endpoints of each tenant", () => {
    assert.deepStrictEqual(keys().tenants(undefined, 3), [
      { tenant: "a-b", endpoints: 1 },
      { tenant: "a", endpoints: 2 },
      { tenant: "ab", endpoints: 1 }
    ])
    assert.deepStrictEqual(keys().tenants("ab", 3), [{ tenant: "b", endpoints: 1 }])
  })

  it("follow what is added and removed, before all are there and after", () => {
    const sorted = new SortedKeys()
    sorted.hear("a.x", "")
    sorted.hear("a.y", "")
    sorted.hear("a.x", undefined)
    sorted.complete()
    sorted.hear("a.y", "")
    sorted.hear("a.b", "")
    sorted.hear("a.c", undefined)
    assert.deepStrictEqual(sorted.page("a", undefined, 9), ["a.b", "a.y"])
    sorted.hear("a.y", undefined)
    assert.deepStrictEqual(sorted.page("a", undefined, 9), ["a.b"])
  })
})
