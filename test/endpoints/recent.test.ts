import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Recent } from "../../src/endpoints/recent.ts"

const keptOf = (recent: Recent<string>, keys: ReadonlyArray<string>) =>
  keys.filter((key) => recent.get(key) !== undefined)

describe("what was used lately", () => {
  it("is kept, while what was not makes room for what is new", () => {
    const recent = new Recent<string>(3)
    for (const key of ["a", "b", "c"]) recent.add(key, key)
    recent.get("a")
    recent.get("c")
    recent.add("d", "d")
    assert.deepStrictEqual(keptOf(recent, ["a", "b", "c", "d"]), ["a", "c", "d"])
  })

  it("goes too, the oldest first, where all are used", () => {
    const recent = new Recent<string>(2)
    recent.add("a", "a")
    recent.add("b", "b")
    assert.deepStrictEqual(keptOf(recent, ["a", "b"]), ["a", "b"])
    recent.add("c", "c")
    assert.deepStrictEqual(keptOf(recent, ["a", "b", "c"]), ["b", "c"])
  })

  it("is the new value after a key was deleted and added again", () => {
    const recent = new Recent<string>(2)
    recent.add("a", "old")
    recent.delete("a")
    assert.isUndefined(recent.get("a"))
    recent.add("a", "new")
    assert.strictEqual(recent.get("a"), "new")
  })

  const key = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
  it.prop(
    "is never more than there is room for, and always has what was added last",
    [Schema.Array(key)],
    ([uses]) => {
      const recent = new Recent<string>(4)
      for (const number of uses) {
        const name = `k${number}`
        if (recent.get(name) === undefined) recent.add(name, name)
        assert.strictEqual(recent.get(name), name)
        const all = Array.from({ length: 10 }, (_, i) => `k${i}`)
        assert.isAtMost(keptOf(recent, all).length, 4)
      }
    }
  )
})
