import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Spreadable } from "../../src/history/fold/summary.ts"
import { Spread } from "../../src/history/fold/summary.ts"

const spreadOf = (facts: ReadonlyArray<Spreadable>): Spread => {
  const spread = new Spread()
  for (const fact of facts) spread.note(fact)
  return spread
}

/** The smallest value that so many of all do not exceed. */
const exactly = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1] ?? Number.NaN

/** Ms: up to 8 days, most of them short. */
const Durations = Schema.NonEmptyArray(
  Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 29 }))
)

describe("the spread of deliveries", () => {
  for (const [attempt, group] of [
    [0, "0"],
    [1, "1"],
    [2, "2"],
    [3, "3-5"],
    [5, "3-5"],
    [6, "6-10"],
    [10, "6-10"],
    [11, "11-20"],
    [20, "11-20"],
    [21, "21+"],
    [500, "21+"]
  ] as const)
    it(`counts a delivery of ${attempt} attempts under ${group}`, () => {
      const { attempts } = spreadOf([{ kind: "dead-lettered", attempt }])
      assert.deepStrictEqual(attempts, { [group]: 1 })
    })

  it("counts ends once, requests each, and the time to success of first rounds only", () => {
    const spread = spreadOf([
      { kind: "routed", at: 5, eventAt: 1 },
      {
        kind: "attempt-failed",
        attempt: 1,
        durationMs: 1_000,
        at: 1_100,
        eventAt: 100,
        round: "0"
      },
      { kind: "delivered", attempt: 2, durationMs: 1_000, at: 64_100, eventAt: 100, round: "0" },
      { kind: "delivered", attempt: 1, durationMs: 1_000, at: 9e8, eventAt: 100, round: "d7" },
      { kind: "dead-lettered", attempt: 1, durationMs: 5, at: 9e8, eventAt: 100, round: "r1" }
    ])
    assert.deepStrictEqual(spread.attempts, { "1": 2, "2": 1 })
    const within = (ms: number | undefined, exact: number) =>
      assert.closeTo((ms ?? 0) / exact, 1, 0.05)
    within(spread.latency?.p99, 1_000)
    within(spread.toSuccess?.p50, 64_000)
    within(spread.toSuccess?.p99, 64_000)
  })

  it("has no quantiles without durations", () => {
    const { attempts, latency, toSuccess } = spreadOf([{ kind: "redelivered" }])
    assert.deepStrictEqual([attempts, latency, toSuccess], [{}, undefined, undefined])
  })

  it.prop(
    "is within 5% of the exact quantiles, or within 0.1 ms, also when it is added up and taken away",
    { ofOne: Durations, ofAnother: Durations },
    ({ ofAnother, ofOne }) => {
      const [one, another] = [ofOne, ofAnother].map((exponents) =>
        exponents.map((exponent) => 2 ** exponent - 1)
      )
      const facts = (durations: ReadonlyArray<number> = []) =>
        durations.map(
          (ms): Spreadable => ({ kind: "delivered", durationMs: ms, at: ms, eventAt: 0 })
        )
      const spread = spreadOf(facts(one))
      const apart = spreadOf(facts(another))
      spread.add(apart)
      const rest = spreadOf(facts(one))
      rest.add(apart)
      rest.subtract(apart)
      assert.deepStrictEqual(rest.latency, spreadOf(facts(one)).latency)
      const sorted = [...(one ?? []), ...(another ?? [])].sort((a, b) => a - b)
      for (const found of [spread.latency, spread.toSuccess])
        for (const [name, share] of [
          ["p50", 0.5],
          ["p90", 0.9],
          ["p95", 0.95],
          ["p99", 0.99]
        ] as const) {
          const exact = exactly(sorted, share)
          const estimate = found?.[name] ?? Number.NaN
          const isNear = Math.abs(estimate - exact) <= 0.1 || Math.abs(estimate / exact - 1) <= 0.05
          assert.isTrue(isNear, `${name}: ${estimate} for ${exact}`)
        }
    }
  )
})
