import { assert, describe, it } from "@effect/vitest"
import { statsLines } from "../../../src/cli/commands/stats.ts"
import type { Stats } from "../../../src/operations/history/logged-totals.ts"

const hour = 3_600_000
const begins = Date.UTC(2026, 2, 4, 10)
const nothing = {
  ...{ attempts: 0, succeeded: 0, failed: 0, successRate: null, answers: {}, latencyMs: null }
}
const some = {
  ...{ attempts: 4, succeeded: 3, failed: 1, successRate: 0.75 },
  answers: { "2xx": 3, none: 1 },
  latencyMs: { p50: 12.1, p95: 250, p99: 1_500 }
}

describe("petrel stats", () => {
  it("has a row for each period with attempts, and draws all of them", () => {
    const stats: Stats = {
      ...{ tenant: "acme", by: "hour", since: begins, until: begins + 2 * hour, whole: some },
      periods: [nothing, some, nothing].map((one, index) => ({
        begins: begins + index * hour,
        ...one
      })),
      lag: { facts: 0, ms: 0 }
    }
    assert.deepStrictEqual(statsLines(stats), [
      "hour (UTC)        attempts  success  2xx  3xx  4xx  5xx  none    p50     p95    p99",
      "2026-03-04 11:00         4      75%    3    0    0    0     1  12 ms  250 ms  1.5 s",
      "all                      4      75%    3    0    0    0     1  12 ms  250 ms  1.5 s",
      "",
      "attempts   █",
      "failed     █",
      "          2026-03-04 10:00 to 2026-03-04 12:00"
    ])
  })
})
