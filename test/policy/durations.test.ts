import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { quantile, stepOf } from "../../src/policy/durations.ts"

const counted = (durations: ReadonlyArray<number>): ReadonlyArray<number> => {
  const counts: Array<number> = Array.from({ length: 150 }, () => 0)
  for (const ms of durations) counts[stepOf(ms)] = (counts[stepOf(ms)] ?? 0) + 1
  return counts
}

const duration = Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 600_000 }))

describe("a scale of durations", () => {
  it("has no quantile of none", () => {
    assert.isUndefined(quantile([], 0.5))
    assert.isUndefined(quantile([0, 0, 0], 0.5))
  })

  it("tells short ones from none, and takes ones of any length", () => {
    assert.isBelow(quantile(counted([0.2, 0.3, 0.4]), 0.5) ?? 1, 1)
    assert.isAbove(quantile(counted([86_400_000]), 0.5) ?? 0, 600_000)
  })

  it("tells what a few slow ones among many quick ones come to", () => {
    const mostly = [...Array.from({ length: 96 }, () => 12), 900, 900, 900, 900]
    assert.approximately(quantile(counted(mostly), 0.5) ?? 0, 12, 1.2)
    assert.approximately(quantile(counted(mostly), 0.95) ?? 0, 12, 2.4)
    assert.approximately(quantile(counted(mostly), 0.99) ?? 0, 900, 90)
  })

  it.prop(
    "is not further from the truth than a step is wide",
    [Schema.NonEmptyArray(duration), Schema.Literals([0.5, 0.95])],
    ([durations, share]) => {
      const sorted = durations.toSorted((a, b) => a - b)
      const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0
      const told = quantile(counted(durations), share) ?? 0
      assert.isAtLeast(told, exact / 1.19)
      assert.isAtMost(told, exact * 1.19)
    }
  )
})
