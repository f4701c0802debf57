import { assert, describe, it } from "@effect/vitest"
import { hostShare, mayTakeMore, Shares } from "../../src/policy/shares.ts"

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

describe("a worker's share of a host's cap", () => {
  const owners = [["a"], ["b"], ["c"], ["a"]]
  it.each([
    ["all of it where one worker owns the partitions of all endpoints", 10, [0, 3, 4, 7], 10],
    ["half of it where two do", 10, [0, 1], 5],
    ["rounded up", 10, [0, 1, 2], 4],
    ["of few requests one at least", 1, [0, 1, 2], 1],
    ["all of it where no endpoint is known", 10, [], 10]
  ])("is %s", (_, cap, endpoints, share) => {
    assert.strictEqual(hostShare(cap, endpoints, owners), share)
  })

  it("counts who still has a partition beside whom it is assigned to", () => {
    const moving = [["a"], ["a", "c"], ["b"], ["b", "c"]]
    assert.strictEqual(hostShare(5, [0, 1, 2, 3], moving), 2)
    assert.strictEqual(hostShare(5, [0, 2], moving), 3)
  })

  it("is all of it while the owners are unknown", () => {
    assert.strictEqual(hostShare(10, [0, 1, 2], []), 10)
  })

  it("exceeds the cap together by at most the number of owners less one", () => {
    for (let count = 1; count <= 12; count++)
      for (let cap = 1; cap <= 40; cap++) {
        const workers = Array.from({ length: count }, (_, index) => `w${index}`)
        const share = hostShare(
          cap,
          workers.map((_, index) => index),
          workers.map((worker) => [worker])
        )
        assert.isAtLeast(share * count, cap)
        assert.isAtMost(share * count, cap + count - 1)
      }
  })
})

describe("one of several that share a cap", () => {
  it.each([
    ["takes all of it alone", 7, 1, 7, 8, true],
    ["takes its equal part whatever the others have", 1, 4, 7, 8, true],
    ["takes more than its part while an eighth is left", 5, 4, 6, 8, true],
    ["leaves the last eighth to those with less than their part", 5, 4, 7, 8, false],
    ["has one request at least where there are more than the cap", 0, 9, 1, 2, true]
  ])("%s", (_, own, sharers, used, share, expected) => {
    assert.strictEqual(mayTakeMore(own, sharers, used, share), expected)
  })
})
