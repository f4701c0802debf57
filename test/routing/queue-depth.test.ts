import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Broker } from "../../src/broker/broker.ts"
import { makeNames } from "../../src/domain/names.ts"
import { makeQueueDepth } from "../../src/routing/queue-depth.ts"

/** Two queues, and how many deliveries of each its owner has not pulled. */
const makeWorld = Effect.gen(function* () {
  const names = makeNames()
  const untaken = [0, 0]
  const world = { untaken, looks: 0 }
  const consumerInfo = (_: string, queue: string) =>
    Effect.sync(() => {
      world.looks++
      return { num_pending: untaken[queue === names.deliveries(0) ? 0 : 1] }
    })
  const broker = Broker.of({ names, consumerInfo } as unknown as Broker["Service"])
  const depth = yield* Effect.provideService(makeQueueDepth(2), Broker, broker)
  const wait = Effect.forkChild(depth.shallow, { startImmediately: true })
  return { world, depth, wait }
})

describe("the depth of the queues", () => {
  it.effect("is waited for where all of them together are deep", () =>
    Effect.gen(function* () {
      const { depth, wait, world } = yield* makeWorld
      world.untaken.splice(0, 2, 1_000, 1_000)
      yield* depth.shallow
      assert.strictEqual(world.looks, 2)
      // They are not looked at again before so many have been routed.
      world.untaken[1] = 1_100
      depth.routed(47)
      yield* depth.shallow
      assert.strictEqual(world.looks, 2)
      depth.routed(1)
      const waiting = yield* wait
      yield* TestClock.adjust("1 second")
      assert.isUndefined(waiting.pollUnsafe())
      // What its owner has pulled is in nobody's way.
      world.untaken[1] = 1_000
      yield* TestClock.adjust("50 millis")
      yield* Fiber.join(waiting)
    })
  )

  it.effect("is waited for 2 s at most", () =>
    Effect.gen(function* () {
      const { wait, world } = yield* makeWorld
      world.untaken[0] = 10_000
      const waiting = yield* wait
      yield* TestClock.adjust("1950 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("50 millis")
      yield* Fiber.join(waiting)
    })
  )
})
