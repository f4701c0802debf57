import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import type { RetryPolicy } from "../../src/domain/retry-policy.ts"
import { toSchedule } from "../../src/policy/backoff.ts"
import { nextStep } from "../../src/policy/next-step.ts"

const minute = 60_000
const hour = 60 * minute
const began = Date.UTC(2026, 2, 14)

const policy: RetryPolicy = {
  backoff: {
    kind: "exponential",
    base: Duration.minutes(1),
    factor: 2,
    cap: Duration.hours(1)
  },
  jitter: "none",
  maxAttempts: 5,
  window: Duration.hours(72),
  retryAfterCap: Duration.hours(24)
}

const step = (
  overrides: Partial<Parameters<typeof nextStep>[0]> & { readonly policy?: RetryPolicy }
) =>
  nextStep({
    schedule: toSchedule(overrides.policy ?? policy),
    retryAfterCap: 24 * hour,
    verdict: "retry",
    attempts: 1,
    deadline: began + 72 * hour,
    now: began,
    ...overrides
  })

describe("the next step", () => {
  it.effect("is another attempt after the policy's delay", () =>
    Effect.gen(function* () {
      const now = began + 7 * minute
      assert.deepStrictEqual(yield* step({ attempts: 3, now }), {
        _tag: "Retry",
        at: now + 4 * minute,
        delay: 4 * minute
      })
    })
  )

  it.effect("is the end where the answer says that trying again will not help", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* step({ verdict: "fail", retryAfter: "60" }), {
        _tag: "Dead",
        reason: "permanent"
      })
    })
  )

  it.effect("is the end when the attempts are used up", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* step({ attempts: 4 }))._tag, "Retry")
      assert.deepStrictEqual(yield* step({ attempts: 5 }), { _tag: "Dead", reason: "attempts" })
    })
  )

  it.effect("is the end when the next attempt would not be before the deadline", () =>
    Effect.gen(function* () {
      const now = began + 10 * minute
      const at = now + 2 * minute
      const just = yield* step({ attempts: 2, now, deadline: at + 1 })
      assert.deepStrictEqual(just, { _tag: "Retry", at, delay: 2 * minute })
      for (const deadline of [at, at - 1])
        assert.deepStrictEqual(yield* step({ attempts: 2, now, deadline }), {
          _tag: "Dead",
          reason: "deadline"
        })
    })
  )

  it.effect("names the attempts where both ends are reached", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* step({ attempts: 5, now: began + 73 * hour }), {
        _tag: "Dead",
        reason: "attempts"
      })
      assert.deepStrictEqual(yield* step({ attempts: 4, now: began + 73 * hour }), {
        _tag: "Dead",
        reason: "deadline"
      })
    })
  )

  it.effect("goes by the deadline of the delivery, not by the window of the policy today", () =>
    Effect.gen(function* () {
      const now = began + 10 * hour
      const shortened = { ...policy, window: Duration.hours(1) }
      assert.strictEqual((yield* step({ policy: shortened, attempts: 2, now }))._tag, "Retry")
      const lengthened = { ...policy, window: Duration.days(30) }
      assert.deepStrictEqual(
        yield* step({ policy: lengthened, attempts: 2, now, deadline: now - 1 }),
        { _tag: "Dead", reason: "deadline" }
      )
    })
  )
})

describe("a Retry-After", () => {
  it.effect("lengthens the delay", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* step({ retryAfter: "300" }), {
        _tag: "Retry",
        at: began + 5 * minute,
        delay: 5 * minute
      })
      const date = new Date(began + hour).toUTCString()
      assert.deepStrictEqual(yield* step({ retryAfter: date }), {
        _tag: "Retry",
        at: began + hour,
        delay: hour
      })
    })
  )

  it.effect("never shortens the delay", () =>
    Effect.gen(function* () {
      for (const retryAfter of ["1", "0", "-5", "soon", new Date(began - hour).toUTCString()]) {
        const next = yield* step({ attempts: 4, retryAfter })
        assert.deepStrictEqual(next, { _tag: "Retry", at: began + 8 * minute, delay: 8 * minute })
      }
    })
  )

  it.effect("is obeyed up to the policy's cap only, which does not hold back the backoff", () =>
    Effect.gen(function* () {
      const capped = yield* step({ retryAfter: "9".repeat(40), retryAfterCap: 2 * minute })
      assert.deepStrictEqual(capped, { _tag: "Retry", at: began + 2 * minute, delay: 2 * minute })
      const longer = yield* step({ attempts: 4, retryAfter: "9999", retryAfterCap: minute })
      assert.deepStrictEqual(longer, { _tag: "Retry", at: began + 8 * minute, delay: 8 * minute })
    })
  )

  it.effect("past the deadline ends the delivery", () =>
    Effect.gen(function* () {
      const next = yield* step({ retryAfter: "7200", deadline: began + hour })
      assert.deepStrictEqual(next, { _tag: "Dead", reason: "deadline" })
    })
  )

  const Int = (minimum: number, maximum: number) =>
    Schema.Int.check(Schema.isBetween({ minimum, maximum }))
  it.effect.prop(
    "leaves every retry whole, no sooner than the backoff and no later than the deadline",
    {
      attempts: Int(1, 8),
      elapsed: Int(0, 100 * hour),
      retryAfter: Schema.Union([Schema.String, Schema.Int]),
      jitter: Schema.Literals(["none", "equal", "scaled"])
    },
    ({ attempts, elapsed, retryAfter, jitter }) =>
      Effect.gen(function* () {
        const now = began + elapsed
        const deadline = began + 72 * hour
        const next = yield* step({
          policy: { ...policy, jitter },
          attempts,
          now,
          deadline,
          retryAfter: `${retryAfter}`
        })
        if (next._tag === "Dead") {
          const expected = attempts >= 5 ? "attempts" : "deadline"
          assert.strictEqual(next.reason, expected)
          return
        }
        assert.isBelow(attempts, 5)
        assert.isTrue(Number.isInteger(next.delay))
        assert.strictEqual(next.at, now + next.delay)
        assert.isAtMost(next.at, deadline)
        const least = jitter === "none" ? 1 : 0.5
        assert.isAtLeast(next.delay, minute * 2 ** (attempts - 1) * least)
      })
  )
})
