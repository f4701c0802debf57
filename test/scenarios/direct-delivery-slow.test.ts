import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { everQueued } from "../kit/consumers.ts"
import {
  backlogged,
  countsQueued,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  worker
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

describe.concurrent("endpoints that do not answer", () => {
  scenario("do not keep those of other events from getting theirs", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const slow = yield* gate
      const well = yield* receiver()
      // With ten under way each these are more than are attempted from their events at a time.
      const count = 80
      for (let n = 0; n < count; n++)
        yield* endpoint({ id: `slow${n}`, url: slow.url, types: [`slow${n}`] })
      yield* endpoint({ id: "well", url: well.url, types: ["well"] })
      const facts = yield* history
      yield* worker()
      for (let n = 0; n < count; n++) yield* publishMany(12, `slow${n}`)
      yield* eventually(
        Effect.sync(() => slow.now.count),
        (now) => now === 10 * count
      )
      yield* publishMany(100, "well")
      yield* well.received(100)
      assert.strictEqual(slow.now.count, 10 * count)
      yield* slow.open
      yield* facts.count("delivered", 12 * count + 100)
      yield* consistentRounds
      assert.strictEqual(slow.requests.length, 12 * count)
      const straight = facts
        .of("delivered")
        .filter(({ endpoint, from }) => endpoint !== "well" && from?.stream === names.events)
      assert.isAbove(straight.length, 0)
      assert.isAtMost(straight.length, 768)
    })
  )

  scenario("do not keep those of the same event from getting it", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      const well = yield* receiver()
      // More than are attempted at the same time for one event, and all before the last of its plan.
      const count = 80
      for (let n = 0; n < count; n++) yield* endpoint({ id: `slow${n}`, url: slow.url })
      yield* endpoint({ id: "well", url: well.url })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* well.received(1)
      assert.strictEqual(slow.now.most, slow.now.count)
      yield* slow.open
      yield* facts.count("delivered", count + 1)
      yield* consistentRounds
      assert.strictEqual(slow.requests.length, count)
    })
  )

  scenario(
    "let another of the same event have it before anybody knows how long they take",
    () =>
      Effect.gen(function* () {
        const slow = yield* gate
        const well = yield* receiver()
        yield* endpoint({ id: "slow", url: slow.url })
        yield* endpoint({ id: "well", url: well.url })
        const facts = yield* history
        yield* worker()
        const before = yield* Clock.currentTimeMillis
        yield* publish("a")
        yield* well.received(1)
        assert.isBelow(nth(well.requests, 0).at - before, 900)
        yield* slow.received(1)
        assert.strictEqual(slow.now.count, 1)
        yield* slow.open
        yield* facts.count("delivered", 2)
        yield* consistentRounds
        assert.strictEqual(yield* everQueued, 0)
      }),
    countsQueued
  )

  scenario("have what they cannot take in their backlogs, and get it once when they do", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const slow = yield* gate
      yield* endpoint({ url: slow.url, maxInFlight: 4 })
      const facts = yield* history
      yield* worker()
      yield* publishMany(200)
      yield* eventually(backlogged, (count) => count === 196)
      assert.strictEqual(slow.requests.length, 4)
      yield* slow.open
      yield* facts.count("delivered", 200)
      yield* consistentRounds
      assert.strictEqual(slow.requests.length, 200)
      assert.strictEqual(slow.now.most, 4)
      const straight = facts.of("delivered").filter(({ from }) => from?.stream === names.events)
      assert.lengthOf(straight, 4)
    })
  )
})
