import { assert, describe, it } from "@effect/vitest"
import { Spread } from "../../../src/history/fold/summary.ts"
import { noTotals } from "../../../src/history/fold/totals.ts"
import { periodTotals } from "../../../src/operations/history/period-totals.ts"

describe("the totals of a period", () => {
  const of = (totals: Partial<typeof noTotals>) => {
    const sum = { totals: { ...noTotals, ...totals }, spread: new Spread() }
    return periodTotals({ tenant: "acme", begins: 0, ...sum }, "day")
  }

  it("counts all attempts, and rates those that ended", () => {
    assert.deepInclude(
      of({ delivered: 2, attemptsFailed: 5, deadLettered: 1, attemptsOfEnded: 7 }),
      { by: "day", tenant: "acme", attempts: 7, successRate: 0.6667, meanAttempts: 2.33 }
    )
  })

  it("has null for rates of nothing", () => {
    assert.deepInclude(of({ attemptsFailed: 1 }), {
      attempts: 1,
      successRate: null,
      meanAttempts: null,
      attemptCounts: {},
      toSuccessMs: null,
      latencyMs: null
    })
  })
})
