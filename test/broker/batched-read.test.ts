import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeBatchedRead } from "../../src/broker/batched-read.ts"

/** A read that waits until it is let go, and the batches that it was given. */
const slowRead = Effect.gen(function* () {
  const batches: Array<ReadonlyArray<string>> = []
  const gates: Array<Deferred.Deferred<void>> = []
  const ask = yield* makeBatchedRead(
    (): Array<string> => [],
    (names) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        batches.push([...names])
        gates.push(gate)
        yield* Deferred.await(gate)
        return names.length
      })
  )
  const request = (name: string) => Effect.forkChild(ask((names) => void names.push(name)))
  const letGo = (index: number) =>
    Effect.suspend(() => {
      const gate = gates[index]
      return gate === undefined ? Effect.die("it has not begun") : Deferred.succeed(gate, undefined)
    })
  return { batches, request, letGo }
})

describe("a batched read", () => {
  it.effect("answers together what was asked while the one before ran", () =>
    Effect.gen(function* () {
      const { batches, letGo, request } = yield* slowRead
      const first = yield* request("a")
      yield* Effect.yieldNow
      const others = yield* Effect.forEach(["b", "c", "d"], request)
      yield* Effect.yieldNow
      assert.deepStrictEqual(batches, [["a"]])
      yield* letGo(0)
      assert.strictEqual(yield* Fiber.join(first), 1)
      yield* Effect.yieldNow
      assert.deepStrictEqual(batches, [["a"], ["b", "c", "d"]])
      yield* letGo(1)
      assert.deepStrictEqual(yield* Effect.forEach(others, Fiber.join), [3, 3, 3])
    })
  )

  it.effect("fails all requests of a batch, and none of the next", () =>
    Effect.gen(function* () {
      let reads = 0
      const ask = yield* makeBatchedRead(
        (): Array<string> => [],
        (names) => (reads++ === 0 ? Effect.fail("away") : Effect.succeed(names))
      )
      const request = (name: string) => ask((names) => void names.push(name))
      assert.strictEqual(yield* Effect.flip(request("a")), "away")
      assert.deepStrictEqual(yield* request("b"), ["b"])
    })
  )
})
