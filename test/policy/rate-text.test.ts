import { assert, describe, it } from "@effect/vitest"
import { rateText, readRate } from "../../src/policy/rate.ts"

describe("a rate", () => {
  it.each([
    ["20/s", { perSecond: 20, burst: 1 }],
    [" 2.5 / second ", { perSecond: 2.5, burst: 1 }],
    ["1000/s", { perSecond: 1_000, burst: 50 }],
    ["30/min", { perSecond: 0.5, burst: 1 }],
    ["30/m", { perSecond: 0.5, burst: 1 }],
    ["1/h", { perSecond: 1 / 3_600, burst: 1 }],
    ["20/s burst 40", { perSecond: 20, burst: 40 }],
    ["20/s, burst 40", { perSecond: 20, burst: 40 }],
    ["20/s burst 0", undefined],
    ["20/s burst", undefined],
    ["0/s", undefined],
    ["-1/s", undefined],
    ["100001/s", undefined],
    ["1/day", undefined],
    ["20", undefined],
    ["", undefined]
  ] as const)("is read from %o", (text, expected) => {
    assert.deepStrictEqual(readRate(text), expected)
  })

  it.each([
    ["20/s", "20/s"],
    ["2.5/s", "150/min"],
    ["100/min", "100/min"],
    ["30/min", "30/min"],
    ["7/h", "7/h"],
    ["60/min", "1/s"],
    ["20/s burst 40", "20/s burst 40"],
    ["1000/s burst 1", "1000/s burst 1"]
  ])("given as %s is shown as %s", (text, shown) => {
    const rate = readRate(text)
    assert.isDefined(rate)
    assert.strictEqual(rateText(rate), shown)
    assert.deepStrictEqual(readRate(shown), rate)
  })
})
