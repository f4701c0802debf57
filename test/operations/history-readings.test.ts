import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HistoryReadings, readingHistory } from "../../src/operations/history/history-readings.ts"

describe("a reading of the history", () => {
  it.live("that takes too long is broken off, and makes room for the next one", () =>
    Effect.gen(function* () {
      const readings = HistoryReadings.make(20)
      const read = <A>(reading: Effect.Effect<A>) =>
        Effect.provideService(readingHistory(reading), HistoryReadings, readings)
      const busy = yield* Effect.flip(
        Effect.all([read(Effect.never), read(Effect.never)], { concurrency: 2 })
      )
      assert.strictEqual(busy.retryAfter, 60)
      assert.include(busy.message, "longer than 0.02 s")
      const twice = Effect.all([read(Effect.succeed(1)), read(Effect.succeed(2))])
      assert.deepStrictEqual(yield* twice, [1, 2])
    })
  )

  it.effect("is not bounded where no API asked for it", () =>
    Effect.gen(function* () {
      const read = readingHistory(Effect.succeed(1))
      assert.deepStrictEqual(yield* Effect.all([read, read, read], { concurrency: 3 }), [1, 1, 1])
    })
  )
})
