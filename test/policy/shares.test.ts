import { assert, describe, it } from "@effect/vitest"
import { Shares } from "../../src/policy/shares.ts"

/** Takes one after the other for a key until it gets no more. Returns how many it got. */
const takeAll = (shares: Shares, key: string): number => {
  let taken = 0
  while (shares.take(key)) taken++
  return taken
}

describe("shares", () => {
  it("gives one key half of it, and each further one half of what is left", () => {
    const shares = new Shares(16)
    assert.deepStrictEqual(
      ["a", "b", "c", "d", "e"].map((key) => takeAll(shares, key)),
      [8, 4, 2, 1, 0]
    )
    assert.strictEqual(shares.total, 15)
  })

  it("gives two keys that take in turns a third each", () => {
    const shares = new Shares(30)
    while (shares.take("a") && shares.take("b"));
    assert.strictEqual(shares.usedBy("a"), 10)
    assert.strictEqual(shares.usedBy("b"), 10)
  })

  it("gives one key no more than the most of one, also where all is free", () => {
    assert.strictEqual(takeAll(new Shares(100, 7), "a"), 7)
  })

  it("refuses as a whole what is more than the share, and takes nothing of it", () => {
    const shares = new Shares(10)
    assert.isFalse(shares.take("a", 6))
    assert.strictEqual(shares.total, 0)
    assert.isTrue(shares.take("a", 5))
  })

  it("has all again when everything was given back", () => {
    const shares = new Shares(4)
    assert.strictEqual(takeAll(shares, "a"), 2)
    shares.give("a", 2)
    assert.strictEqual(shares.total, 0)
    assert.strictEqual(shares.usedBy("a"), 0)
    assert.strictEqual(takeAll(shares, "b"), 2)
  })
})
