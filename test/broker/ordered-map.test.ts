import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { OrderedMap, OrderedSet } from "../../src/broker/ordered-map.ts"

const command = fc.tuple(
  fc.constantFrom("set", "delete", "renew", "takeOldest"),
  fc.integer({ min: 0, max: 5 })
)

describe("a map in order of insertion", () => {
  it("does as a Map does", () => {
    fc.assert(
      fc.property(fc.array(command), (commands) => {
        const map = new OrderedMap<number, number>()
        const model = new Map<number, number>()
        for (const [index, [what, key]] of commands.entries()) {
          if (what === "set") {
            map.set(key, index)
            model.set(key, index)
          } else if (what === "delete") assert.strictEqual(map.delete(key), model.delete(key))
          else if (what === "renew") {
            const value = model.get(key)
            map.renew(key)
            if (value !== undefined && model.delete(key)) model.set(key, value)
          } else {
            const [oldest] = model
            const taken = map.takeOldest()
            assert.deepStrictEqual(
              taken === undefined ? undefined : [taken.key, taken.value],
              oldest
            )
            if (oldest !== undefined) model.delete(oldest[0])
          }
          assert.strictEqual(map.size, model.size)
          for (const [known, value] of model) assert.strictEqual(map.get(known), value)
        }
        const left = []
        for (let next = map.takeOldest(); next !== undefined; next = map.takeOldest())
          left.push(next.key)
        assert.deepStrictEqual(left, [...model.keys()])
        assert.isFalse([...model.keys()].some((key) => map.has(key)))
      })
    )
  })

  it("has a set like it", () => {
    const set = new OrderedSet<string>()
    for (const key of ["a", "b", "a", "c"]) set.add(key)
    assert.isTrue(set.delete("b"))
    assert.isFalse(set.has("b"))
    assert.strictEqual(set.size, 2)
    assert.deepStrictEqual(
      [set.takeOldest(), set.takeOldest(), set.takeOldest()],
      ["a", "c", undefined]
    )
  })
})
