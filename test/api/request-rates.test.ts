import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { RequestRates } from "../../src/api/tokens/caller-limits.ts"
import { systemTimers, useTimers } from "../../src/time/timers.ts"

const waitOf = (rates: RequestRates, id: string, perSecond: number) =>
  rates.take(id, perSecond).waitMs

describe("RequestRates", () => {
  let now = 0
  let restore: () => void
  beforeEach(() => {
    now = 1_000
    restore = useTimers({ ...systemTimers, monotonicMs: () => now })
  })
  afterEach(() => restore())

  it("lets so many go at once, and then so many a second", () => {
    const rates = new RequestRates()
    const first = Array.from({ length: 10 }, () => waitOf(rates, "a", 10))
    assert.deepStrictEqual(
      first,
      Array.from({ length: 10 }, () => 0)
    )
    assert.strictEqual(waitOf(rates, "a", 10), 100)
    now += 50
    assert.strictEqual(waitOf(rates, "a", 10), 50)
    now += 50
    assert.strictEqual(waitOf(rates, "a", 10), 0)
    assert.isAbove(waitOf(rates, "a", 10), 0)
  })

  it("says how many more may go at once", () => {
    const rates = new RequestRates()
    const left = Array.from({ length: 4 }, () => rates.take("a", 3).left)
    assert.deepStrictEqual(left, [2, 1, 0, 0])
    now += 700
    assert.strictEqual(rates.take("a", 3).left, 1)
  })

  it("saves no more than a second's worth, and keeps tokens apart", () => {
    const rates = new RequestRates()
    now += 3_600_000
    const taken = Array.from({ length: 4 }, () => waitOf(rates, "a", 3))
    assert.deepStrictEqual(taken.slice(0, 3), [0, 0, 0])
    assert.isAbove(taken[3] ?? 0, 0)
    assert.strictEqual(waitOf(rates, "b", 3), 0)
  })
})
