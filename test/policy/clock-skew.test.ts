import { assert, describe, it } from "@effect/vitest"
import { clockState, skewMs } from "../../src/policy/clock-skew.ts"

describe("a worker's clock beside the broker's", () => {
  const rows = [
    ["agrees where the broker answered in between", 1_000, 1_040, 1_100, 0],
    ["agrees at both edges", 1_000, 1_000, 1_000, 0],
    ["is ahead by what it showed when it asked", 9_000, 4_000, 9_300, 5_000],
    ["is behind by what it showed when the answer came", 1_000, 5_000, 1_300, -3_700],
    ["agrees though the answer took minutes", 1_000, 200_000, 300_000, 0]
  ] as const
  for (const [what, askedAt, brokerAt, answeredAt, skew] of rows)
    it(what, () => assert.strictEqual(skewMs({ askedAt, brokerAt, answeredAt }), skew))
})

describe("a difference between the clocks", () => {
  const rows = [
    [0, "right"],
    [1_999, "right"],
    [-1_999, "right"],
    [2_000, "off"],
    [-30_000, "off"],
    [30_001, "wrong"],
    [-3_600_000, "wrong"]
  ] as const
  for (const [skew, state] of rows)
    it(`of ${skew} ms is ${state}`, () => assert.strictEqual(clockState(skew), state))
})
