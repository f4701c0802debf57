import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import type { RetryPolicy } from "../../src/domain/retry-policy.ts"
import { ladder, totalTime } from "../../src/policy/retry-outline.ts"

const seconds = Duration.seconds
const policy: RetryPolicy = {
  backoff: { kind: "exponential", base: seconds(1), factor: 2, cap: seconds(10) },
  jitter: "full",
  maxAttempts: 7,
  window: seconds(1000),
  retryAfterCap: seconds(1000)
}

describe("a policy's ladder", () => {
  it("has a rung between every two attempts, without jitter", () => {
    assert.deepStrictEqual(ladder(policy), [1000, 2000, 4000, 8000, 10_000, 10_000])
    assert.strictEqual(totalTime(policy), 35_000)
  })

  it("has none for a policy of one attempt", () => {
    assert.deepStrictEqual(ladder({ ...policy, maxAttempts: 1 }), [])
    assert.strictEqual(totalTime({ ...policy, maxAttempts: 1 }), 0)
  })

  it("ends where the next attempt would be after the window", () => {
    assert.deepStrictEqual(ladder({ ...policy, window: seconds(15) }), [1000, 2000, 4000, 8000])
    assert.deepStrictEqual(ladder({ ...policy, window: seconds(14) }), [1000, 2000, 4000])
    assert.deepStrictEqual(ladder({ ...policy, window: Duration.millis(999) }), [])
  })

  it("takes the middle of decorrelated delays, the same each time", () => {
    const decorrelated: RetryPolicy = {
      ...policy,
      backoff: { kind: "decorrelated", base: seconds(1), cap: seconds(6) },
      maxAttempts: 5
    }
    assert.deepStrictEqual(ladder(decorrelated), [2000, 3500, 5750, 6000])
  })
})
