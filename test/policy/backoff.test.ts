import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Random, Schema } from "effect"
import type { Backoff, Jitter, RetryPolicy } from "../../src/domain/retry-policy.ts"
import { delayAfter, toSchedule } from "../../src/policy/backoff.ts"

const int = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const hour = 3_600_000
const ms = Duration.millis

const policyOf = (backoff: Backoff, overrides: Partial<RetryPolicy> = {}): RetryPolicy => ({
  backoff,
  jitter: "none",
  maxAttempts: 1000,
  window: Duration.days(3650),
  retryAfterCap: Duration.hours(24),
  ...overrides
})

/** The delay after attempt n, at the very moment the round began. */
const after = (policy: RetryPolicy, attempts: number) =>
  delayAfter(toSchedule(policy), { attempts, began: 0, now: 0 })

const withRandom = (value: number) =>
  Effect.provideService(Random.Random, {
    nextDoubleUnsafe: () => value,
    nextIntUnsafe: () => Math.floor(value)
  })
const lowest = withRandom(0)
const highest = withRandom(1 - 2 ** -53)

/** The closed form: what each kind of backoff comes to, in exact milliseconds, by arithmetic. */
const nominal = (backoff: Exclude<Backoff, { kind: "decorrelated" }>, n: number): number => {
  switch (backoff.kind) {
    case "exponential":
      return Math.min(
        Duration.toMillis(backoff.base) * backoff.factor ** (n - 1),
        Duration.toMillis(backoff.cap)
      )
    case "linear":
      return Math.min(Duration.toMillis(backoff.step) * n, Duration.toMillis(backoff.cap))
    case "fixed":
      return Duration.toMillis(backoff.delay)
    case "list":
      return Duration.toMillis(backoff.delays.slice(0, n).at(-1) ?? 0)
  }
}

const Exponential = Schema.Struct({
  base: int(1, hour),
  factor: Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 100 })),
  cap: int(1, 24 * hour),
  n: int(1, 60)
})
const exponential = ({ base, factor, cap }: typeof Exponential.Type) =>
  ({ kind: "exponential", base: ms(base), factor, cap: ms(cap) }) as const

const assertRounded = (actual: number | undefined, exact: number) => {
  assert.isDefined(actual)
  assert.isTrue(Number.isInteger(actual), `${actual} is not whole`)
  // Durations resolve to the nanosecond, so a delay may come out that much below the closed form.
  assert.isAtLeast(actual, exact - 1e-6)
  assert.isBelow(actual, exact + 1)
}

const bounds: Record<Exclude<Jitter, "none">, readonly [number, number]> = {
  full: [0, 1],
  equal: [0.5, 1],
  scaled: [0.5, 1.5]
}

describe("the delay after an attempt", () => {
  it.effect.prop("grows exponentially up to the cap", { p: Exponential }, ({ p }) =>
    Effect.gen(function* () {
      const backoff = exponential(p)
      assertRounded(yield* after(policyOf(backoff), p.n), nominal(backoff, p.n))
    })
  )

  it.effect.prop(
    "grows linearly up to the cap",
    { step: int(1, hour), cap: int(1, 24 * hour), n: int(1, 60) },
    ({ step, cap, n }) =>
      Effect.gen(function* () {
        const backoff: Backoff = { kind: "linear", step: ms(step), cap: ms(cap) }
        assert.strictEqual(yield* after(policyOf(backoff), n), nominal(backoff, n))
      })
  )

  it.effect.prop("stays the same when fixed", { delay: int(1, hour), n: int(1, 60) }, (p) =>
    Effect.gen(function* () {
      const backoff: Backoff = { kind: "fixed", delay: ms(p.delay) }
      assert.strictEqual(yield* after(policyOf(backoff), p.n), p.delay)
    })
  )

  it.effect.prop(
    "follows a list and repeats its last entry",
    { delays: Schema.NonEmptyArray(int(1, hour)), n: int(1, 60) },
    ({ delays: [first, ...rest], n }) =>
      Effect.gen(function* () {
        const backoff: Backoff = { kind: "list", delays: [ms(first), ...rest.map(ms)] }
        assert.strictEqual(yield* after(policyOf(backoff), n), nominal(backoff, n))
      })
  )

  it.effect("is never a fraction of a millisecond, nor nothing at all", () =>
    Effect.gen(function* () {
      const backoff: Backoff = { kind: "fixed", delay: Duration.micros(1500n) }
      assert.strictEqual(yield* after(policyOf(backoff), 1), 2)
      const full = policyOf({ kind: "fixed", delay: ms(1000) }, { jitter: "full" })
      assert.strictEqual(yield* after(full, 1).pipe(lowest), 1)
    })
  )

  it.effect("does not overflow however far an exponential is driven", () =>
    Effect.gen(function* () {
      const backoff: Backoff = { kind: "exponential", base: ms(hour), factor: 100, cap: ms(hour) }
      assert.strictEqual(yield* after(policyOf(backoff), 999), hour)
    })
  )
})

describe("jitter", () => {
  const jitters = ["full", "equal", "scaled"] as const

  it.effect.prop(
    "stays within what its kind allows",
    { p: Exponential, jitter: Schema.Literals(jitters), seed: Schema.String },
    ({ p, jitter, seed }) =>
      Effect.gen(function* () {
        const backoff = exponential(p)
        const delay = yield* after(policyOf(backoff, { jitter }), p.n).pipe(Random.withSeed(seed))
        const [least, most] = bounds[jitter]
        assert.isDefined(delay)
        assert.isTrue(Number.isInteger(delay))
        assert.isAtLeast(delay, Math.max(1, nominal(backoff, p.n) * least - 1e-6))
        assert.isAtMost(delay, Math.max(1, Math.ceil(nominal(backoff, p.n) * most)))
      })
  )

  it.effect.prop(
    "reaches both ends of what its kind allows",
    { delay: int(2, hour), n: int(1, 20), jitter: Schema.Literals(jitters) },
    ({ delay, n, jitter }) =>
      Effect.gen(function* () {
        const policy = policyOf({ kind: "fixed", delay: ms(delay) }, { jitter })
        const [least, most] = bounds[jitter]
        assertRounded(yield* after(policy, n).pipe(lowest), Math.max(1, delay * least))
        assertRounded(yield* after(policy, n).pipe(highest), delay * most)
      })
  )

  it.effect("spreads the deliveries that failed together", () =>
    Effect.gen(function* () {
      const policy = policyOf({ kind: "fixed", delay: ms(hour) }, { jitter: "equal" })
      const delays = yield* Effect.all(Array.from({ length: 100 }, () => after(policy, 3)))
      assert.isAbove(new Set(delays).size, 90)
    }).pipe(Random.withSeed("storm"))
  )
})

describe("decorrelated backoff", () => {
  const decorrelated = (base: number, cap: number) =>
    policyOf({ kind: "decorrelated", base: ms(base), cap: ms(cap) }, { jitter: "full" })

  /** The delays of one delivery: each draw is told the one before, as `nextStep` does. */
  const drawn = Effect.fnUntraced(function* (policy: RetryPolicy, draws: number) {
    const schedule = toSchedule(policy)
    const delays: Array<number> = []
    for (let attempts = 1; attempts <= draws; attempts++) {
      const previous = delays.at(-1)
      const delay = yield* delayAfter(schedule, { attempts, began: 0, now: 0, previous })
      delays.push(delay ?? assert.fail("the schedule ended"))
    }
    return delays
  })

  it.effect.prop(
    "lies between base and three times the delay drawn before, at most the cap",
    { base: int(1, hour), cap: int(1, 24 * hour), seed: Schema.String },
    ({ base, cap, seed }) =>
      Effect.gen(function* () {
        const delays = yield* drawn(decorrelated(base, cap), 20).pipe(Random.withSeed(seed))
        for (const [index, delay] of delays.entries()) {
          const previous = delays[index - 1] ?? base
          assert.isTrue(Number.isInteger(delay))
          assert.isAtLeast(delay, Math.min(base, cap))
          assert.isAtMost(delay, Math.min(Math.max(base, 3 * previous), cap))
        }
      })
  )

  it.effect("falls again after a long delay, and spreads over the whole range", () =>
    Effect.gen(function* () {
      const delays = yield* drawn(decorrelated(1000, hour), 200)
      const falls = delays.filter((delay, index) => delay < (delays[index - 1] ?? 0))
      assert.isAbove(falls.length, 40)
      assert.isBelow(Math.min(...delays), 5000)
      assert.strictEqual(Math.max(...delays), hour)
    }).pipe(Random.withSeed("walk"))
  )

  it.effect("goes to both ends of what the delay before allows", () =>
    Effect.gen(function* () {
      const policy = decorrelated(1000, hour)
      assert.deepStrictEqual(yield* drawn(policy, 3).pipe(lowest), [1000, 1000, 1000])
      const most = yield* drawn(policy, 30).pipe(highest)
      assert.deepStrictEqual(most.slice(0, 3), [3000, 9000, 27_000])
      assert.strictEqual(most.at(-1), hour)
    })
  )

  it.effect("draws from its base where the delay before is unknown or below it", () =>
    Effect.gen(function* () {
      const schedule = toSchedule(decorrelated(1000, hour))
      for (const [previous, most] of [
        [undefined, 3000],
        [10, 1000]
      ] as const) {
        const delay = delayAfter(schedule, { attempts: 7, began: 0, now: 0, previous })
        assert.strictEqual(yield* delay.pipe(lowest), 1000)
        assert.strictEqual(yield* delay.pipe(highest), most)
      }
    })
  )
})

describe("a policy's end", () => {
  const backoff: Backoff = { kind: "fixed", delay: ms(1000) }

  it.effect.prop(
    "comes with the last attempt",
    { maxAttempts: int(1, 50), attempts: int(1, 60) },
    ({ maxAttempts, attempts }) =>
      Effect.gen(function* () {
        const delay = yield* after(policyOf(backoff, { maxAttempts }), attempts)
        assert.strictEqual(delay, attempts < maxAttempts ? 1000 : undefined)
      })
  )

  it.effect.prop(
    "comes when the window since the round began has passed, after the first attempt too",
    {
      began: int(0, 2_000_000_000_000),
      window: int(1, 100 * hour),
      elapsed: int(0, 200 * hour),
      attempts: int(1, 20)
    },
    ({ began, window, elapsed, attempts }) =>
      Effect.gen(function* () {
        const delay = yield* delayAfter(toSchedule(policyOf(backoff, { window: ms(window) })), {
          attempts,
          began,
          now: began + elapsed
        })
        assert.strictEqual(delay, elapsed <= window ? 1000 : undefined)
      })
  )
})
