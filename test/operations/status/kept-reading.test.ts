import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { keepReading } from "../../../src/operations/status/kept-reading.ts"
import { useTimers } from "../../../src/time/timers.ts"
import { virtualTimers } from "../../kit/moved-time.ts"

const keeping = { everyMs: 1_000, oldestMs: 2_000, askingMs: 5_000 }

/** A reading that counts how often it is made, and lasts 100 ms. */
const counted = () => {
  const state = { readings: 0, most: 0, now: 0 }
  const read = Effect.acquireUseRelease(
    Effect.sync(() => {
      state.most = Math.max(state.most, ++state.now)
      return ++state.readings
    }),
    (reading) => Effect.as(Effect.sleep(100), reading),
    () => Effect.sync(() => void state.now--)
  )
  return { state, read }
}

const inVirtualTime = <A, E>(
  story: (pass: (ms: number) => Effect.Effect<void>) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const { runs, timers } = virtualTimers()
    const before = useTimers(timers)
    const pass = Effect.fnUntraced(function* (ms: number) {
      for (let passed = 0; passed < ms; passed += 50) {
        runs(50)
        yield* TestClock.adjust(50)
      }
    })
    return yield* Effect.ensuring(story(pass), Effect.sync(before))
  })

describe("what is read for all who ask", () => {
  it.effect("is read once for those who ask at the same time", () =>
    inVirtualTime((pass) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { read, state } = counted()
          const ask = yield* keepReading(read, keeping)
          const all = yield* Effect.forkChild(
            Effect.all([ask, ask, ask], { concurrency: "unbounded" })
          )
          yield* pass(150)
          assert.deepStrictEqual(yield* Fiber.join(all), [1, 1, 1])
          assert.deepInclude(state, { readings: 1, most: 1 })
        })
      )
    )
  )

  it.effect("is at most so old, and read again while somebody asks, no longer", () =>
    inVirtualTime((pass) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { read, state } = counted()
          const ask = yield* keepReading(read, keeping)
          const answer = Effect.gen(function* () {
            const asking = yield* Effect.forkChild(ask)
            yield* pass(150)
            return yield* Fiber.join(asking)
          })
          assert.strictEqual(yield* answer, 1)
          yield* pass(1_200)
          // Read again meanwhile, and no other one is made for who asks.
          assert.strictEqual(yield* answer, 2)
          assert.strictEqual(state.readings, 2)
          yield* pass(20_000)
          const { readings } = state
          assert.isAtMost(readings, 8)
          yield* pass(20_000)
          assert.strictEqual(state.readings, readings)
          assert.strictEqual(yield* answer, readings + 1)
        })
      )
    )
  )

  it.effect("fails once for all who wait, and not for one after the other", () =>
    inVirtualTime((pass) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { read, state } = counted()
          const ask = yield* keepReading(Effect.andThen(read, Effect.fail("away")), keeping)
          const all = yield* Effect.forkChild(
            Effect.all([ask, ask, ask].map(Effect.flip), { concurrency: "unbounded" })
          )
          yield* pass(150)
          assert.deepStrictEqual(yield* Fiber.join(all), ["away", "away", "away"])
          assert.strictEqual(state.readings, 1)
        })
      )
    )
  )

  it.effect("fails for who asks, and is read again for the next one", () =>
    inVirtualTime(() =>
      Effect.scoped(
        Effect.gen(function* () {
          let fails = true
          const read = Effect.suspend(() => (fails ? Effect.fail("away") : Effect.succeed("here")))
          const ask = yield* keepReading(read, keeping)
          assert.strictEqual(yield* Effect.flip(ask), "away")
          fails = false
          assert.strictEqual(yield* ask, "here")
        })
      )
    )
  )
})
