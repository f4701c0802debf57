import { assert, describe, it } from "@effect/vitest"
import { nearestName } from "../../src/policy/nearest-name.ts"

describe("the nearest name", () => {
  it("is the one with the fewest letters to change, add or leave out", () => {
    const names = ["alpha", "beta", "gamma"]
    assert.strictEqual(nearestName("gama", names), "gamma")
    assert.strictEqual(nearestName("betta", names), "beta")
    assert.strictEqual(nearestName("alphas", names), "alpha")
    assert.strictEqual(nearestName("xeta", names), "beta")
    assert.strictEqual(nearestName("jsno", ["json"]), "json", "two letters were swapped")
  })

  it("does not mind the case", () => {
    assert.strictEqual(nearestName("ALPHA", ["beta", "Alpha"]), "Alpha")
  })

  it("is the first of those that are equally near", () => {
    assert.strictEqual(nearestName("cat", ["bat", "rat"]), "bat")
  })

  it("is nothing where none is near, or there are no names", () => {
    assert.isUndefined(nearestName("xyzzy", ["alpha", "beta"]))
    assert.isUndefined(nearestName("x", ["y"]))
    assert.isUndefined(nearestName("", ["ab"]))
    assert.isUndefined(nearestName("cat", []))
  })
})
