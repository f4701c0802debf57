import { assert, describe, it } from "@effect/vitest"
import { hostShare, mayTakeMore } from "../../src/policy/shares.ts"

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
