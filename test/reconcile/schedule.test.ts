import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { isDue, nextSpan } from "../../src/reconcile/schedule.ts"

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const now = 1_772_600_000_000

describe("a reconciliation by schedule", () => {
  it("is due at its interval, and sooner where the last was broken off", () => {
    const hourly = { reconcile: Duration.hours(1) }
    assert.isFalse(isDue({}, undefined, now))
    assert.isTrue(isDue(hourly, undefined, now))
    assert.isFalse(isDue(hourly, { endedAt: now - hourMs + 1 }, now))
    assert.isTrue(isDue(hourly, { endedAt: now - hourMs }, now))
    const broken = (ago: number) => ({ endedAt: now - ago, problem: "no answer" })
    assert.isFalse(isDue(hourly, broken(9 * minuteMs), now))
    assert.isTrue(isDue(hourly, broken(10 * minuteMs), now))
    const often = { reconcile: Duration.minutes(2) }
    assert.isTrue(isDue(often, broken(2 * minuteMs), now))
  })

  it("asks for all since the last one, however long ago, as far as the provider lists", () => {
    const span = (createdAt: number, coveredUntil: number | undefined, keepsMs = 30 * dayMs) => {
      const found = nextSpan({ createdAt }, coveredUntil, keepsMs, now)
      return found === undefined ? undefined : [now - found.since, now - found.until]
    }
    assert.deepStrictEqual(span(0, undefined), [dayMs, 5 * minuteMs])
    assert.deepStrictEqual(span(now - hourMs, undefined), [hourMs, 5 * minuteMs])
    assert.deepStrictEqual(span(0, now - hourMs), [hourMs + 10 * minuteMs, 5 * minuteMs])
    assert.deepStrictEqual(span(0, now - 9 * dayMs, 3 * dayMs), [3 * dayMs, 5 * minuteMs])
    // It was added just now.
    assert.isUndefined(span(now - minuteMs, undefined))
  })

  it("asks for each event once it is there, if the provider's clock is ahead or 15 minutes behind", () => {
    /** Returns whether runs that follow each other ask for an event that carries another time. */
    const isAskedFor = (everyMs: number, happened: number, aheadMs: number): boolean => {
      let coveredUntil: number | undefined
      for (let run = now; run <= now + 8 * hourMs; run += everyMs) {
        const span = nextSpan({ createdAt: 0 }, coveredUntil, 30 * dayMs, run)
        const at = happened + aheadMs
        if (span === undefined) continue
        if (happened <= run && at >= span.since && at <= span.until) return true
        coveredUntil = span.until
      }
      return false
    }
    const aheadMinutes = [-15, -14, -10, -5, -1, 0, 1, 10, 60, 180]
    for (const everyMs of [minuteMs, 7 * minuteMs, hourMs])
      for (const ahead of aheadMinutes)
        for (let minutes = 0; minutes < 130; minutes++)
          assert.isTrue(isAskedFor(everyMs, now + minutes * minuteMs + 1, ahead * minuteMs))
    assert.isFalse(isAskedFor(hourMs, now + 1, -17 * minuteMs))
  })
})
