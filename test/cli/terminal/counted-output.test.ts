import { assert, describe, it } from "@effect/vitest"
import { LineBudget, summaryText } from "../../../src/cli/terminal/counted-output.ts"

const noted = (budget: LineBudget, count: number, now: number, kind = "delivered") =>
  Array.from({ length: count }, () => budget.note(kind, now)).filter(Boolean).length

describe("what happens", () => {
  it("is printed line by line up to 20 a second", () => {
    const budget = new LineBudget()
    for (let second = 0; second < 5; second++) {
      assert.strictEqual(noted(budget, 20, second * 1_000), 20)
      assert.isUndefined(budget.takeSummary())
    }
  })

  it("is summed up from the 21st on, each once, until there is less of it", () => {
    const budget = new LineBudget()
    assert.strictEqual(noted(budget, 100, 0), 20)
    assert.strictEqual(noted(budget, 5, 10, "attempt-failed"), 0)
    const summary = budget.takeSummary()
    assert.deepStrictEqual(summary, {
      count: 85,
      kinds: new Map([
        ["delivered", 80],
        ["attempt-failed", 5]
      ])
    })
    assert.strictEqual(noted(budget, 3, 1_100), 0)
    assert.strictEqual(budget.takeSummary()?.count, 3)
    assert.strictEqual(noted(budget, 3, 2_100), 3)
    assert.isUndefined(budget.takeSummary())
  })

  it("has no summary of a second in which nothing happened, and is printed line by line again", () => {
    const budget = new LineBudget()
    noted(budget, 50, 0)
    assert.strictEqual(budget.takeSummary()?.count, 30)
    assert.isUndefined(budget.takeSummary())
    assert.strictEqual(noted(budget, 3, 2_100), 3)
  })

  it("is worded as one line, the most frequent first", () => {
    const kinds = new Map([
      ["attempt-failed", 4],
      ["delivered", 1_200]
    ])
    assert.strictEqual(
      summaryText({ count: 1_204, kinds }),
      "1,204 in a second: 1,200 delivered, 4 attempt-failed"
    )
  })
})
