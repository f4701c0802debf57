import { assert, describe, it } from "@effect/vitest"
import { ArrivalCost } from "../../src/policy/arrival-cost.ts"

describe("what an arrival takes of a thread", () => {
  it("is the mean of what rounds took besides measured work, by arrival", () => {
    const cost = new ArrivalCost()
    for (let round = 0; round < 4; round++) {
      cost.begin(round * 1_000)
      for (let arrival = 0; arrival < 256; arrival++) cost.note()
      cost.noteMeasured(488)
      cost.end(round * 1_000 + 1_000)
    }
    assert.strictEqual(cost.ms, 2)
  })

  it("changes little with a round in which little came", () => {
    const cost = new ArrivalCost()
    cost.begin(0)
    cost.note()
    cost.end(25.7)
    assert.closeTo(cost.ms, 0.2, 0.001)
  })

  it("is not learned from rounds without arrivals, nor while the thread may wait", () => {
    const cost = new ArrivalCost()
    const before = cost.ms
    cost.begin(0)
    cost.end(1_000)
    cost.note()
    cost.end(2_000)
    assert.strictEqual(cost.ms, before)
  })

  it("is nothing if all was measured", () => {
    const cost = new ArrivalCost()
    cost.begin(0)
    for (let arrival = 0; arrival < 256; arrival++) cost.note()
    cost.noteMeasured(12)
    cost.end(10)
    assert.strictEqual(cost.ms, 0)
  })
})
