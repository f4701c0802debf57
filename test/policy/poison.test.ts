import { assert, describe, it } from "@effect/vitest"
import { isSuspect, pauseAfterDefectMs, pauseBeforeTrialMs } from "../../src/policy/decide.ts"

describe("a message that may crash its workers", () => {
  it("is suspect from three deliveries beyond its recorded attempts on", () => {
    const suspects = [
      [2, 0],
      [3, 0],
      [5, 3],
      [6, 3]
    ] as const
    assert.deepStrictEqual(
      suspects.map(([deliveries, recorded]) => isSuspect(deliveries, recorded)),
      [false, true, false, true]
    )
  })

  it("is paused twice as long after each attempt that was not survived, up to 5 minutes", () => {
    assert.deepStrictEqual(
      [1, 2, 3, 12, 5_000].map(pauseBeforeTrialMs),
      [1_000, 2_000, 4_000, 300_000, 300_000]
    )
  })

  it("is paused in the same way after defects", () => {
    assert.deepStrictEqual([0, 1, 2, 12].map(pauseAfterDefectMs), [1_000, 2_000, 4_000, 300_000])
  })
})
