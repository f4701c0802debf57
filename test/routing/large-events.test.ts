import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Broker } from "../../src/broker/broker.ts"
import { makeNames } from "../../src/domain/names.ts"
import type { LargeEvent } from "../../src/routing/large-events.ts"
import { makeLargeEvents } from "../../src/routing/large-events.ts"
import { makeQueueDepth } from "../../src/routing/queue-depth.ts"

/** A router with queues that hold as many messages as `world` says, and what has a turn. */
const makeWorld = Effect.fnUntraced(function* (maxBytes = 1_000_000) {
  const world = { untaken: 0, looks: 0 }
  const consumerInfo = () =>
    Effect.sync(() => {
      world.looks++
      return { num_pending: world.untaken }
    })
  const broker = Broker.of({ names: makeNames(), consumerInfo } as unknown as Broker["Service"])
  const depth = yield* Effect.provideService(makeQueueDepth(1), Broker, broker)
  const large = yield* makeLargeEvents(depth, maxBytes)
  const log: Array<string> = []
  const hold = (tenant: string, bytes = 1) =>
    large.hold(tenant, bytes, (deliveries) => void log.push(`${tenant} ${deliveries}`))
  /** Waits for a turn in the background. */
  const turn = (event: LargeEvent | undefined, deliveries: number) =>
    Effect.forkScoped(event?.turn(deliveries) ?? Effect.die("it is not held"), {
      startImmediately: true
    })
  const settle = Effect.repeat(TestClock.adjust(1), { times: 20 })
  return { world, large, log, hold, turn, settle }
})

describe("large events of a router", () => {
  it.effect("are routed one after the other within a tenant, tenants at the same time", () =>
    Effect.gen(function* () {
      const { hold, log, settle, turn } = yield* makeWorld()
      const [first, second, other] = [hold("acme"), hold("acme"), hold("globex")]
      yield* turn(first, 100)
      yield* turn(second, 200)
      yield* turn(other, 300)
      yield* settle
      assert.deepStrictEqual(log, ["acme 100", "globex 300"])
      first?.over()
      yield* settle
      assert.deepStrictEqual(log, ["acme 100", "globex 300", "acme 200"])
    })
  )

  it.effect("are finished once begun, before those that came later", () =>
    Effect.gen(function* () {
      const { hold, log, settle, turn } = yield* makeWorld()
      const [first, second] = [hold("acme"), hold("acme")]
      yield* turn(first, 1_000)
      yield* turn(second, 200)
      yield* settle
      yield* turn(first, 999)
      yield* settle
      assert.deepStrictEqual(log, ["acme 1000", "acme 999"])
    })
  )

  it.effect("have eight turns at a time, tenants in turn", () =>
    Effect.gen(function* () {
      const { hold, log, settle, turn } = yield* makeWorld()
      const tenants = Array.from({ length: 9 }, (_, index) => `t${index}`)
      const first = hold("t0")
      yield* turn(first, 65)
      for (const tenant of [...tenants.slice(1), "t0"]) yield* turn(hold(tenant), 65)
      yield* settle
      assert.deepStrictEqual(
        log,
        tenants.slice(0, 8).map((tenant) => `${tenant} 65`)
      )
      first?.over()
      yield* settle
      assert.deepStrictEqual(log.slice(8), ["t8 65"])
    })
  )

  it.effect("wait while 2,048 deliveries lie in queues that nobody has taken", () =>
    Effect.gen(function* () {
      const { hold, log, settle, turn, world } = yield* makeWorld()
      world.untaken = 2_048
      yield* turn(hold("acme"), 100)
      yield* settle
      assert.deepStrictEqual(log, [])
      assert.isAbove(world.looks, 0)
      world.untaken = 2_047
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(log, ["acme 100"])
    })
  )

  it.effect("wait no longer than 2 s for queues that stay long", () =>
    Effect.gen(function* () {
      const { hold, log, settle, turn, world } = yield* makeWorld()
      world.untaken = 100_000
      yield* turn(hold("acme"), 100)
      yield* TestClock.adjust(1_900)
      yield* settle
      assert.deepStrictEqual(log, [])
      yield* TestClock.adjust(100)
      yield* settle
      assert.deepStrictEqual(log, ["acme 100"])
    })
  )

  it.effect("cost one look at the queues for as many deliveries as they may take", () =>
    Effect.gen(function* () {
      const { hold, settle, turn, world } = yield* makeWorld()
      for (let count = 0; count < 20; count++) {
        const event = hold("acme")
        yield* turn(event, 100)
        yield* settle
        event?.leave()
      }
      assert.strictEqual(world.looks, 1)
      yield* turn(hold("acme"), 100)
      yield* settle
      yield* turn(hold("globex"), 100)
      yield* settle
      assert.strictEqual(world.looks, 2)
    })
  )

  it.effect("are held by number and bytes, of one tenant no more than others may have", () =>
    Effect.gen(function* () {
      const { hold } = yield* makeWorld(1_000)
      for (let count = 0; count < 4; count++) assert.isDefined(hold("acme", 125))
      assert.isUndefined(hold("acme", 1))
      for (let count = 0; count < 2; count++) assert.isDefined(hold("globex", 125))
      for (let count = 0; count < 1_024; count++) hold("initech", 0)
      assert.isUndefined(hold("initech", 0))
      assert.isDefined(hold("umbrella", 0))
    })
  )

  it.effect("are held however large one is", () =>
    Effect.gen(function* () {
      const { hold } = yield* makeWorld(1_000)
      for (let count = 0; count < 4; count++) assert.isDefined(hold("acme", 2_000))
      assert.isUndefined(hold("acme", 2_000))
      assert.isDefined(hold("globex", 2_000))
    })
  )

  it.effect("are given back when the router stops: those that wait, and those that come", () =>
    Effect.gen(function* () {
      const { hold, large, settle, turn } = yield* makeWorld()
      const begun = hold("acme")
      yield* turn(begun, 100)
      const waits = yield* turn(hold("acme"), 100)
      yield* settle
      large.close()
      assert.strictEqual((yield* Effect.flip(Fiber.join(waits)))._tag, "RouterStops")
      const comes = yield* turn(hold("globex"), 100)
      assert.strictEqual((yield* Effect.flip(Fiber.join(comes)))._tag, "RouterStops")
      const next = yield* turn(begun, 100)
      assert.strictEqual((yield* Effect.flip(Fiber.join(next)))._tag, "RouterStops")
    })
  )

  it.effect("leave their line when they are cancelled", () =>
    Effect.gen(function* () {
      const { hold, log, settle, turn } = yield* makeWorld()
      const first = hold("acme")
      yield* turn(first, 100)
      const cancelled = yield* turn(hold("acme"), 200)
      yield* turn(hold("acme"), 300)
      yield* settle
      yield* Fiber.interrupt(cancelled)
      first?.leave()
      yield* settle
      assert.deepStrictEqual(log, ["acme 100", "acme 300"])
    })
  )
})
