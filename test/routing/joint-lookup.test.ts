import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeJointLookup } from "../../src/routing/plan-store.ts"

/** A lookup whose readings end when the test says so, and the requests of each reading. */
const made = Effect.gen(function* () {
  const readings: Array<ReadonlyArray<string>> = []
  const ends = [yield* Deferred.make<void, string>(), yield* Deferred.make<void, string>()]
  const lookup = yield* makeJointLookup((requests: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const end = ends[readings.length]
      readings.push([...requests])
      if (end !== undefined) yield* Deferred.await(end)
      return readings.length
    })
  )
  const ask = (request: string) => Effect.forkChild(lookup(request), { startImmediately: true })
  const end = (reading: number, why?: string) => {
    const it = ends[reading]
    if (it === undefined) return Effect.die(new Error(`there is no reading ${reading}`))
    return why === undefined ? Deferred.succeed(it, undefined) : Deferred.fail(it, why)
  }
  return { ask, end, readings }
})

describe("requests for what one reading answers", () => {
  it.effect("that arrive while it goes on are answered together by the next", () =>
    Effect.gen(function* () {
      const { ask, end, readings } = yield* made
      const first = yield* ask("a")
      const later = [yield* ask("b"), yield* ask("c")]
      assert.deepStrictEqual(readings, [["a"]])
      yield* end(0)
      assert.strictEqual(yield* Fiber.join(first), 1)
      yield* end(1)
      assert.deepStrictEqual(yield* Effect.forEach(later, Fiber.join), [2, 2])
      assert.deepStrictEqual(readings, [["a"], ["b", "c"]])
    })
  )

  it.effect("that come after an answer have a reading of their own", () =>
    Effect.gen(function* () {
      const { ask, end, readings } = yield* made
      yield* end(0)
      yield* end(1)
      assert.strictEqual(yield* Fiber.join(yield* ask("a")), 1)
      assert.strictEqual(yield* Fiber.join(yield* ask("a")), 2)
      assert.deepStrictEqual(readings, [["a"], ["a"]])
    })
  )

  it.effect("fail with their reading, and not those of the next", () =>
    Effect.gen(function* () {
      const { ask, end } = yield* made
      const first = yield* ask("a")
      const second = yield* ask("b")
      yield* end(0, "the broker does not answer")
      assert.strictEqual(yield* Effect.flip(Fiber.join(first)), "the broker does not answer")
      yield* end(1)
      assert.strictEqual(yield* Fiber.join(second), 2)
    })
  )
})
