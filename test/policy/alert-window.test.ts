import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { AlertAttempt } from "../../src/policy/alert-window.ts"
import { AlertWindow, noAlertCounts } from "../../src/policy/alert-window.ts"

const over = 600_000
const start = 1_000_000 * over
const attempt = (changes: Partial<AlertAttempt> = {}): AlertAttempt => ({
  verdict: "delivered",
  attempt: 1,
  at: start,
  ...changes
})

describe("the window of an alert", () => {
  it("counts what deliveries came to", () => {
    const window = new AlertWindow(over)
    window.attempt(attempt({ verdict: "retry" }))
    window.attempt(attempt({ verdict: "retry", attempt: 2 }))
    window.attempt(attempt({ attempt: 3, took: 0.5 }))
    window.attempt(attempt({ took: 0.7 }))
    window.attempt(attempt({ verdict: "fail" }))
    window.dead(start)
    const { times, ...counts } = window.read(start)
    assert.deepStrictEqual(counts, {
      tried: 3,
      failedFirst: 2,
      retried: 1,
      refused: 1,
      delivered: 2,
      recovered: 1,
      attempts: 4,
      dead: 1
    })
    assert.deepStrictEqual(times, [2])
  })

  it("forgets what is older than itself, a tenth of its length at most too early", () => {
    const window = new AlertWindow(over)
    window.attempt(attempt())
    assert.strictEqual(window.read(start + 0.9 * over - 1).delivered, 1)
    assert.strictEqual(window.read(start + over).delivered, 0)
    assert.isFalse(window.isOver(start + 0.9 * over - 1))
    assert.isTrue(window.isOver(start + over))
    window.attempt(attempt({ at: start + over }))
    assert.strictEqual(window.read(start + over).delivered, 1)
  })

  const offset = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 * over }))
  it.prop(
    "counts each of the last nine tenths, and none from before",
    [Schema.Array(offset)],
    ([offsets]) => {
      const window = new AlertWindow(over)
      const times = offsets.toSorted((a, b) => a - b)
      for (const time of times) window.attempt(attempt({ at: start + time }))
      const now = times.at(-1) ?? 0
      const { delivered } = window.read(start + now)
      assert.isAtLeast(delivered, times.filter((time) => time > now - 0.9 * over).length)
      assert.isAtMost(delivered, times.filter((time) => time > now - over).length)
      if (times.length === 0) assert.deepStrictEqual(window.read(start), noAlertCounts)
    }
  )
})
