import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { isConflict, writeValue } from "../../src/broker/values.ts"
import { type Health, healthy } from "../../src/domain/health.ts"
import { eraseHealth, readHealth, writeHealth } from "../../src/endpoints/health-store.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const failing: Health = { ...healthy("g"), failuresInRow: 1, failingSince: 5, giveUpAt: 10 }
const key = "acme.hook"

describe.concurrent("the stored health of an endpoint", () => {
  scenario("is nothing where nothing bad is known, and may be written then", () =>
    Effect.gen(function* () {
      const { health, revision } = yield* readHealth("acme", "hook")
      assert.isUndefined(health)
      const written = yield* writeHealth(key, failing, revision)
      assert.deepStrictEqual(yield* readHealth("acme", "hook"), {
        health: failing,
        revision: written
      })
    })
  )

  scenario("is written only over the revision that is expected", () =>
    Effect.gen(function* () {
      const first = yield* writeHealth(key, failing, 0)
      const second = yield* writeHealth(key, { ...failing, failuresInRow: 2 }, first)
      for (const expected of [0, first])
        assert.isTrue(isConflict(yield* Effect.flip(writeHealth(key, failing, expected))))
      const stored = yield* readHealth("acme", "hook")
      assert.deepStrictEqual([stored.health?.failuresInRow, stored.revision], [2, second])
    })
  )

  scenario(
    "is gone when erased, by whoever meant it, and can be written anew by all who look",
    () =>
      Effect.gen(function* () {
        const first = yield* writeHealth(key, failing, 0)
        const second = yield* writeHealth(key, failing, first)
        assert.isTrue(isConflict(yield* Effect.flip(eraseHealth(key, first))))
        const erased = yield* eraseHealth(key, second)
        assert.deepStrictEqual(yield* readHealth("acme", "hook"), {
          health: undefined,
          revision: erased
        })
        yield* writeHealth(key, failing, erased)
        assert.deepStrictEqual((yield* readHealth("acme", "hook")).health, failing)
      })
  )

  scenario("says what is wrong where it is none, and which revision to write over", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { seq } = yield* writeValue(names.buckets.health, key, '{"v":2}')
      const error = yield* Effect.flip(readHealth("acme", "hook"))
      assert.include(error.message, key)
      assert.deepStrictEqual(
        [error._tag, "revision" in error && error.revision],
        ["HealthUnreadable", seq]
      )
      yield* writeHealth(key, failing, seq)
    })
  )
})
