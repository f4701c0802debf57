import { assert, describe, it } from "@effect/vitest"
import { FairLine } from "../../src/policy/fair-turns.ts"

const drained = (line: FairLine<string>): ReadonlyArray<string | undefined> => {
  const taken: Array<string | undefined> = []
  for (let item = line.next(); item !== undefined; item = line.next()) taken.push(item)
  return taken
}

describe("a fair line", () => {
  it("takes one of each key after the other, and of one key in its order", () => {
    const line = new FairLine<string>(10)
    for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) line.add(item.charAt(0), item)
    assert.strictEqual(line.next(), "a1")
    line.add("d", "d1")
    assert.deepStrictEqual(drained(line), ["b1", "c1", "a2", "d1", "c2", "a3"])
  })

  it("refuses what is too much of one key, and only of that", () => {
    const line = new FairLine<string>(2)
    assert.deepStrictEqual(
      ["a1", "a2", "a3", "b1"].map((item) => line.add(item.charAt(0), item)),
      [true, true, false, true]
    )
    line.next()
    assert.isTrue(line.add("a", "a4"))
    assert.deepStrictEqual(drained(line), ["b1", "a2", "a4"])
  })

  it("forgets what was taken out", () => {
    const line = new FairLine<string>(2)
    line.add("a", "a1")
    line.add("a", "a2")
    line.remove("a", "a1")
    line.remove("b", "b1")
    assert.deepStrictEqual(drained(line), ["a2"])
  })
})
