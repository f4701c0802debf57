import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Random, Schema } from "effect"
import { RetryPolicy, type RetryPolicyJson } from "../../src/domain/retry-policy.ts"
import { stepsOf, toSchedule } from "../../src/policy/backoff.ts"
import { presets } from "../../src/policy/presets.ts"
import { ladder, outlineOf, totalTime } from "../../src/policy/retry-outline.ts"

const decode = Schema.decodeUnknownSync(RetryPolicy)

const policy = (changes: Partial<RetryPolicyJson> = {}): RetryPolicy =>
  decode({
    backoff: { kind: "exponential", base: "1 second", factor: 2, cap: "10 seconds" },
    jitter: "equal",
    maxAttempts: 6,
    window: "1 hour",
    ...changes
  } satisfies RetryPolicyJson)

const waitsOf = (changes: Partial<RetryPolicyJson>) =>
  outlineOf(policy(changes)).waits.map(({ earliest, latest, least, most }) => [
    least,
    most,
    earliest,
    latest
  ])

describe("the outline of a policy", () => {
  it.each<
    [what: string, changes: Partial<RetryPolicyJson>, waits: ReadonlyArray<ReadonlyArray<number>>]
  >([
    [
      "has the range of each wait, and adds them up",
      { maxAttempts: 4 },
      [
        [500, 1_000, 500, 1_000],
        [1_000, 2_000, 1_500, 3_000],
        [2_000, 4_000, 3_500, 7_000]
      ]
    ],
    [
      "has no range without jitter",
      { jitter: "none", maxAttempts: 3 },
      [
        [1_000, 1_000, 1_000, 1_000],
        [2_000, 2_000, 3_000, 3_000]
      ]
    ],
    ["begins at 1 ms with full jitter", { jitter: "full", maxAttempts: 2 }, [[1, 1_000, 1, 1_000]]],
    [
      "grows by three with decorrelated jitter, up to the cap",
      {
        backoff: { kind: "decorrelated", base: "1 second", cap: "8 seconds" },
        maxAttempts: 4
      },
      [
        [1_000, 3_000, 1_000, 3_000],
        [1_000, 8_000, 2_000, 11_000],
        [1_000, 8_000, 3_000, 19_000]
      ]
    ],
    ["has no wait for a single attempt", { maxAttempts: 1 }, []]
  ])("%s", (_, changes, waits) => assert.deepStrictEqual(waitsOf(changes), waits))

  it.each<
    [
      what: string,
      changes: Partial<RetryPolicyJson>,
      ended: string,
      gives: readonly [number, number]
    ]
  >([
    ["by its attempts", { maxAttempts: 4 }, "attempts", [3_500, 7_000]],
    [
      "by its window",
      { maxAttempts: 100, window: "3 seconds", jitter: "none" },
      "window",
      [1_000, 1_000]
    ],
    ["by either", { maxAttempts: 4, window: "5 seconds" }, "either", [1_500, 5_000]],
    ["at once", { maxAttempts: 1 }, "attempts", [0, 0]]
  ])("ends %s", (_, changes, ended, [earliest, latest]) => {
    const { endedBy, givesUp } = outlineOf(policy(changes))
    assert.deepStrictEqual([endedBy, givesUp], [ended, { earliest, latest }])
  })
})

/** Draws a round: the moments of its attempts, with requests that take no time. */
const draw = (of: RetryPolicy) =>
  Effect.gen(function* () {
    const step = yield* stepsOf(toSchedule(of))
    const delays: Array<number> = []
    let now = yield* step(0)
    while (now !== undefined) {
      const delay: number | undefined = yield* step(now, delays.at(-1))
      if (delay === undefined || now + delay >= Duration.toMillis(of.window)) break
      delays.push(delay)
      now += delay
    }
    return delays
  })

describe("what is drawn by any policy with a name", () => {
  for (const [name, { policy: of }] of presets)
    it.effect(`lies within its outline (${name})`, () =>
      Effect.gen(function* () {
        const { givesUp, waits } = outlineOf(of)
        for (let seed = 0; seed < 30; seed++) {
          const delays = yield* draw(of).pipe(Random.withSeed(`${name} ${seed}`))
          assert.isAtMost(delays.length, waits.length)
          assert.isAtLeast(delays.length, waits.filter(({ mayBeCut }) => !mayBeCut).length)
          let at = 0
          for (const [n, delay] of delays.entries()) {
            at += delay
            const wait = waits[n]
            assert.isDefined(wait)
            if (wait === undefined) continue
            assert.isAtLeast(delay, wait.least)
            assert.isAtMost(delay, wait.most)
            assert.isAtLeast(at, wait.earliest)
            assert.isAtMost(at, wait.latest)
          }
          assert.isAtMost(at, givesUp.latest)
          assert.isAtLeast(at, givesUp.earliest)
        }
      })
    )
})

const seconds = Duration.seconds
const climbing: RetryPolicy = {
  backoff: { kind: "exponential", base: seconds(1), factor: 2, cap: seconds(10) },
  jitter: "full",
  maxAttempts: 7,
  window: seconds(1000),
  retryAfterCap: seconds(1000)
}

describe("a policy's ladder", () => {
  it("has a rung between every two attempts, without jitter", () => {
    assert.deepStrictEqual(ladder(climbing), [1000, 2000, 4000, 8000, 10_000, 10_000])
    assert.strictEqual(totalTime(climbing), 35_000)
  })

  it("has none for a policy of one attempt", () => {
    assert.deepStrictEqual(ladder({ ...climbing, maxAttempts: 1 }), [])
    assert.strictEqual(totalTime({ ...climbing, maxAttempts: 1 }), 0)
  })

  it("ends where the next attempt would be after the window", () => {
    assert.deepStrictEqual(ladder({ ...climbing, window: seconds(15) }), [1000, 2000, 4000, 8000])
    assert.deepStrictEqual(ladder({ ...climbing, window: seconds(14) }), [1000, 2000, 4000])
    assert.deepStrictEqual(ladder({ ...climbing, window: Duration.millis(999) }), [])
  })

  it("takes the middle of decorrelated delays, the same each time", () => {
    const decorrelated: RetryPolicy = {
      ...climbing,
      backoff: { kind: "decorrelated", base: seconds(1), cap: seconds(6) },
      maxAttempts: 5
    }
    assert.deepStrictEqual(ladder(decorrelated), [2000, 3500, 5750, 6000])
  })
})
