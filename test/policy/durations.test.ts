import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  bucketOf,
  DurationHistogram,
  durationOf,
  quantile,
  stepOf
} from "../../src/policy/durations.ts"
import { randomOf } from "../kit/random-facts.ts"

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

const histogramOf = (durations: ReadonlyArray<number>): DurationHistogram => {
  const histogram = new DurationHistogram()
  for (const ms of durations) histogram.note(ms)
  return histogram
}

/** From a tenth of a ms to eleven days, as dense at each scale. */
const randomDurations = (random: () => number, count: number) =>
  Array.from({ length: count }, () => 10 ** (random() * 10 - 1))

describe("a histogram of durations", () => {
  for (const [ms, bucket] of [
    [-5, 0],
    [0, 0],
    [0.09, 0],
    [0.1, 1],
    [0.105, 1],
    [0.12, 2],
    [1e12, 255],
    [Number.POSITIVE_INFINITY, 255]
  ] as const)
    it(`counts ${ms} ms in bucket ${bucket}`, () => assert.strictEqual(bucketOf(ms), bucket))

  it("has buckets whose middle is within 5% of all that is in them", () => {
    const random = randomOf(1)
    for (const ms of randomDurations(random, 10_000))
      assert.isAtMost(Math.abs(durationOf(bucketOf(ms)) / ms - 1), 0.05, String(ms))
  })

  it("is the same in whatever order its parts are added, with quantiles within 5%", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = randomOf(seed)
      const parts = Array.from({ length: 1 + Math.floor(random() * 6) }, () =>
        randomDurations(random, 1 + Math.floor(random() * 40))
      )
      const shuffled = parts.toSorted(() => random() - 0.5)
      const [one, other] = [parts, shuffled].map((all) => {
        const sum = new DurationHistogram()
        for (const part of all) sum.add(histogramOf(part))
        return sum
      })
      assert.deepStrictEqual(one?.buckets, other?.buckets)
      assert.deepStrictEqual(one?.buckets, histogramOf(parts.flat()).buckets)
      const sorted = parts.flat().sort((a, b) => a - b)
      const shares = [0, 0.01, 0.5, 0.95, 0.99, 1]
      for (const [index, found] of (one?.quantiles(shares) ?? []).entries()) {
        const rank = Math.max(1, Math.ceil((shares[index] ?? 0) * sorted.length))
        assert.isAtMost(Math.abs(found / (sorted[rank - 1] ?? 0) - 1), 0.05, `seed ${seed}`)
      }
    }
  })

  it("has no quantiles without durations, also once all are taken away", () => {
    const histogram = histogramOf([1, 5])
    histogram.subtract(histogramOf([5, 1]))
    assert.deepStrictEqual(histogram.buckets, [])
    assert.isUndefined(histogram.quantiles([0.5]))
  })
})
