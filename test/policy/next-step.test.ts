import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Random, Schema } from "effect"
import type { RetryPolicy } from "../../src/domain/retry-policy.ts"
import { toSchedule } from "../../src/policy/backoff.ts"
import { type NextStep, nextStep } from "../../src/policy/next-step.ts"

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
        delay: 4 * minute,
        drawn: 4 * minute
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
      assert.deepStrictEqual(just, { _tag: "Retry", at, delay: 2 * minute, drawn: 2 * minute })
      for (const deadline of [at, at - 1])
        assert.deepStrictEqual(yield* step({ attempts: 2, now, deadline }), {
          _tag: "Dead",
          reason: "deadline"
        })
    })
  )

  it.effect(
    "after a probe is an attempt when the circuit allows it, whatever was made before",
    () =>
      Effect.gen(function* () {
        const nextAllowedAt = began + 15 * minute
        for (const attempts of [0, 3, 5, 100])
          assert.deepStrictEqual(yield* step({ attempts, nextAllowedAt }), {
            _tag: "Retry",
            at: nextAllowedAt,
            delay: 15 * minute
          })
      })
  )

  it.effect("after a probe is never before now, and not before its Retry-After", () =>
    Effect.gen(function* () {
      const [past, soon] = [began - minute, began + minute]
      assert.deepStrictEqual(yield* step({ nextAllowedAt: past }), {
        _tag: "Retry",
        at: began + 1,
        delay: 1
      })
      assert.deepStrictEqual(yield* step({ nextAllowedAt: soon, retryAfter: "120" }), {
        _tag: "Retry",
        at: began + 2 * minute,
        delay: 2 * minute
      })
    })
  )

  it.effect("after a probe is the end at the deadline, and where the answer is final", () =>
    Effect.gen(function* () {
      const nextAllowedAt = began + 15 * minute
      assert.deepStrictEqual(yield* step({ nextAllowedAt, deadline: nextAllowedAt - 1 }), {
        _tag: "Dead",
        reason: "deadline"
      })
      assert.deepStrictEqual(yield* step({ nextAllowedAt, verdict: "fail" }), {
        _tag: "Dead",
        reason: "permanent"
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

describe("a status with limits of its own", () => {
  /** 5 attempts within 6 hours: 24, 48, 96 and 192 minutes. */
  const limit = { attempts: 5, windowMs: 6 * hour, stretch: 24 }
  const generous = { ...policy, maxAttempts: 16 }
  const row = (attempts: number, since = began) => ({ status: "404", attempts, since })

  it.effect.each([
    // attempts of the row, minutes since its first answer, what is next
    [1, 0, 24],
    [2, 24, 48],
    [3, 72, 96],
    [4, 168, 192],
    [5, 360, "status-limit"],
    [4, 359, 1],
    [2, 360, "status-limit"]
  ] as const)("after %i answers in %i min is tried again in %j min", ([attempts, minutes, next]) =>
    Effect.gen(function* () {
      const now = began + minutes * minute
      const taken = yield* step({
        ...{ policy: generous, attempts: attempts + 7, now, limited: { limit, row: row(attempts) } }
      })
      if (typeof next === "string") assert.deepStrictEqual(taken, { _tag: "Dead", reason: next })
      else assert.deepInclude(taken, { _tag: "Retry", delay: next * minute })
    })
  )

  it.effect(
    "does not end sooner for what was answered before, nor outlive the policy's attempts",
    () =>
      Effect.gen(function* () {
        const limited = { limit, row: row(1) }
        const after = (attempts: number) => step({ policy: generous, attempts, limited })
        assert.deepInclude(yield* after(11), { _tag: "Retry", delay: 24 * minute })
        assert.deepStrictEqual(yield* after(16), { _tag: "Dead", reason: "attempts" })
      })
  )

  it.effect.each([
    // attempts of the row, minutes since its first answer and to the deadline from there, what is next
    [1, 0, 20, 16.4],
    [4, 168, 360, 188.4],
    [4, 359, 360, "status-limit"],
    [4, 19, 20, "deadline"],
    [4, 168, 363.6, 192]
  ] as const)(
    "after %i answers in %i min is tried again before a deadline at %i min: in %j min",
    ([attempts, minutes, untilDeadline, next]) =>
      Effect.gen(function* () {
        const limited = { limit, row: row(attempts) }
        const taken = yield* step({
          ...{ policy: generous, attempts, limited, now: began + minutes * minute },
          deadline: began + untilDeadline * minute
        })
        if (typeof next === "string") assert.deepStrictEqual(taken, { _tag: "Dead", reason: next })
        else assert.deepInclude(taken, { _tag: "Retry", delay: Math.round(next * minute) })
      })
  )

  it.effect("waits for a Retry-After within its window, and ends with one beyond it", () =>
    Effect.gen(function* () {
      const limited = { limit, row: row(1) }
      const asked = (retryAfter: string) => step({ policy: generous, limited, retryAfter })
      assert.deepInclude(yield* asked("18000"), { _tag: "Retry", delay: 5 * hour })
      assert.deepStrictEqual(yield* asked("21601"), { _tag: "Dead", reason: "status-limit" })
    })
  )

  it.effect("lets probes wait for the circuit, until its window is over", () =>
    Effect.gen(function* () {
      const probed = (minutes: number) =>
        step({
          ...{ limited: { limit, row: row(0) }, now: began + minutes * minute },
          nextAllowedAt: began + (minutes + 15) * minute
        })
      assert.deepInclude(yield* probed(345), { _tag: "Retry", delay: 15 * minute })
      assert.deepStrictEqual(yield* probed(346), { _tag: "Dead", reason: "status-limit" })
    })
  )
})

describe("a Retry-After", () => {
  const retryIn = (delay: number, drawn = delay): NextStep => ({
    _tag: "Retry",
    at: began + delay,
    delay,
    drawn
  })

  it.effect("lengthens the delay", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* step({ retryAfter: "300" }), {
        _tag: "Retry",
        at: began + 5 * minute,
        delay: 5 * minute,
        drawn: minute
      })
      const date = new Date(began + hour).toUTCString()
      assert.deepStrictEqual(yield* step({ retryAfter: date }), {
        _tag: "Retry",
        at: began + hour,
        delay: hour,
        drawn: minute
      })
    })
  )

  it.effect("never shortens the delay", () =>
    Effect.gen(function* () {
      for (const retryAfter of ["1", "0", "-5", "soon", new Date(began - hour).toUTCString()]) {
        const next = yield* step({ attempts: 4, retryAfter })
        assert.deepStrictEqual(next, retryIn(8 * minute))
      }
    })
  )

  it.effect("is obeyed up to the policy's cap only, which does not hold back the backoff", () =>
    Effect.gen(function* () {
      const capped = yield* step({ retryAfter: "9".repeat(40), retryAfterCap: 2 * minute })
      assert.deepStrictEqual(capped, retryIn(2 * minute, minute))
      const longer = yield* step({ attempts: 4, retryAfter: "9999", retryAfterCap: minute })
      assert.deepStrictEqual(longer, retryIn(8 * minute))
    })
  )

  it.effect("is no draw: decorrelated backoff goes on from the delay that was drawn", () =>
    Effect.gen(function* () {
      const decorrelated: RetryPolicy = {
        ...policy,
        backoff: { kind: "decorrelated", base: Duration.minutes(1), cap: Duration.hours(1) }
      }
      const most = { nextDoubleUnsafe: () => 1 - 2 ** -53, nextIntUnsafe: () => 0 }
      const draws = { policy: decorrelated, previousDelay: 2 * minute }
      const next = yield* step({ ...draws, retryAfter: "1800" }).pipe(
        Effect.provideService(Random.Random, most)
      )
      assert.deepStrictEqual(next, retryIn(30 * minute, 6 * minute))
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
