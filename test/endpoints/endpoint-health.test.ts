import { assert, describe } from "@effect/vitest"
import { Clock, Context, Effect, FiberSet, Layer } from "effect"
import type { Broker } from "../../src/broker/broker.ts"
import type { Delivery } from "../../src/domain/delivery.ts"
import { untried } from "../../src/domain/delivery.ts"
import type { Endpoint } from "../../src/domain/endpoint.ts"
import { Directory } from "../../src/endpoints/directory.ts"
import { makeEndpointHealth } from "../../src/endpoints/endpoint-health.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { changeEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { readHealth } from "../../src/endpoints/health-store.ts"
import { HostLimits } from "../../src/endpoints/host-limits.ts"
import type { LiveEndpoint } from "../../src/endpoints/live-endpoint.ts"
import type { Facts } from "../../src/history/facts.ts"
import { SpreadTimes } from "../../src/policy/spread-times.ts"
import { endpoint, eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const delivery: Delivery = {
  tenant: "acme",
  endpoint: "hook",
  event: "e",
  eventSeq: 1,
  eventAt: 0,
  type: "a",
  round: "0",
  began: 0,
  deadline: 0,
  generation: "g",
  revision: 0,
  content: {},
  progress: untried
}

/** The health of a partition's endpoints, as its owner keeps it. */
const makeHealth = Effect.gen(function* () {
  const real = Context.get(yield* Layer.build(Directory.layer), Directory)
  let finds = 0
  const directory = Directory.of({
    ...real,
    find: (key) => {
      finds++
      return real.find(key)
    }
  })
  /** Returns how often something asked for a whole configuration. */
  const findsIn = (work: () => void): number => {
    const before = finds
    work()
    return finds - before
  }
  const clock = yield* Clock.Clock
  const run = yield* FiberSet.makeRuntime<Broker | Facts>()
  const health = yield* makeEndpointHealth({
    worker: "w1",
    clock,
    nextId: () => crypto.randomUUID(),
    holds: () => true,
    isClockTrusted: () => true,
    isOver: () => false,
    hosts: new HostLimits(directory.hosts),
    spreadTimes: new SpreadTimes(),
    run
  }).pipe(Effect.provideService(Directory, directory))
  const liveOf = (id: string): LiveEndpoint => {
    const found = directory.find(`acme.${id}`)
    if (found === undefined) throw new Error(`${id} is not there`)
    return found
  }
  const answered = (to: LiveEndpoint, status: number) =>
    health.answered(
      to,
      { ...delivery, endpoint: to.config.id },
      {
        result: { status, durationMs: 1 },
        verdict: status === 200 ? "delivered" : "retry",
        gone: false,
        overloaded: false,
        at: clock.currentTimeMillisUnsafe()
      },
      {}
    )
  return { answered, directory, findsIn, health, liveOf }
})

describe.concurrent("what the owner of a partition remembers of its endpoints", () => {
  scenario(
    "ends when they are well again or gone, and what fails then is stored all the same",
    () =>
      Effect.gen(function* () {
        for (const id of ["hook", "gone"]) yield* endpoint({ id })
        const { answered, health, liveOf } = yield* makeHealth
        const answer = (id: string, status: number) => answered(liveOf(id), status)
        const failuresOf = (id: string) =>
          Effect.map(readHealth("acme", id), (stored) => stored.health?.failuresInRow)
        const ticked = Effect.sync(() => {
          health.tick()
          return health.remembered()
        })

        for (let round = 0; round < 2; round++) {
          answer("hook", 503)
          yield* eventually(failuresOf("hook"), (failures) => failures === 1)
          assert.strictEqual(yield* ticked, 1)
          answer("hook", 200)
          yield* eventually(ticked, (remembered) => remembered === 0)
          assert.isUndefined(yield* failuresOf("hook"))
        }

        answer("gone", 503)
        yield* eventually(failuresOf("gone"), (failures) => failures === 1)
        yield* removeEndpoint("acme", "gone")
        yield* eventually(ticked, (remembered) => remembered === 0)
        assert.isUndefined(yield* failuresOf("gone"))
      })
  )

  scenario("counts no open circuit of an endpoint that is paused or suspended", () =>
    Effect.gen(function* () {
      const ids = ["paused", "suspended", "down"]
      const circuit = { failures: 1, coolDown: "1 hour", maxCoolDown: "1 hour" }
      yield* Effect.forEach(ids, (id) => endpoint({ id, circuit }))
      const { answered, health, liveOf } = yield* makeHealth
      for (const id of ids) answered(liveOf(id), 503)
      assert.deepStrictEqual([...health.openCircuits()], [["acme", 3]])
      yield* pauseEndpoint({ tenant: "acme", endpoint: "paused" }, undefined, "test")
      const suspended = { at: 1, by: "w1", reason: "nothing but failures" }
      yield* changeEndpoint("acme", "suspended", (before) =>
        Effect.succeed({ ...before, suspended })
      )
      yield* eventually(Effect.sync(health.openCircuits), (open) => open.get("acme") === 1)
      yield* resumeEndpoint({ tenant: "acme", endpoint: "paused" }, "test")
      yield* eventually(Effect.sync(health.openCircuits), (open) => open.get("acme") === 2)
    })
  )

  scenario(
    "is looked at a few at a time where many are down, and at once where something is due",
    () =>
      Effect.gen(function* () {
        const ids = Array.from({ length: 200 }, (_, index) => `hook-${index}`)
        const circuit = { failures: 1, coolDown: "1 hour", maxCoolDown: "1 hour" }
        yield* Effect.forEach(ids, (id) => endpoint({ id, circuit }), { concurrency: 20 })
        const { answered, directory, findsIn, health, liveOf } = yield* makeHealth
        for (const id of ids) answered(liveOf(id), 503)
        health.tick()
        assert.strictEqual(health.openCircuits().get("acme"), ids.length)

        assert.isAtMost(
          findsIn(() => health.tick()),
          20
        )
        const asked = findsIn(() => {
          for (const id of ids) assert.strictEqual(health.limit(`acme.${id}`), 0)
        })
        assert.strictEqual(asked, 0)

        const { revision } = liveOf("hook-150")
        const mend = (config: Endpoint) => Effect.succeed({ ...config, description: "mended" })
        yield* changeEndpoint("acme", "hook-150", mend)
        yield* eventually(
          Effect.sync(() => directory.outline("acme.hook-150")?.revision ?? 0),
          (now) => now > revision
        )
        health.tick()
        assert.strictEqual(health.limit("acme.hook-150"), 1)
      })
  )

  scenario("has the same left of a rate after a change, however often it is saved", () =>
    Effect.gen(function* () {
      const rate = { perSecond: 1 / 3_600, burst: 2 }
      yield* endpoint({ id: "hook", rate })
      const { directory, health } = yield* makeHealth
      const change = Effect.fnUntraced(function* (changes: Partial<Endpoint>) {
        const { revision } = yield* changeEndpoint("acme", "hook", (config) =>
          Effect.succeed({ ...config, ...changes })
        )
        yield* eventually(
          Effect.sync(() => directory.outline("acme.hook")?.revision),
          (now) => now === revision
        )
      })
      const admitted = () =>
        health.admit("acme.hook", { lane: { turn: () => false }, hostLine: undefined })
      assert.deepStrictEqual([admitted(), admitted(), admitted()], [true, true, false])
      for (const description of ["once", "twice"]) {
        yield* change({ description })
        assert.isFalse(admitted(), description)
      }
      yield* change({ rate: { perSecond: 1 / 1_800, burst: 9 } })
      assert.isFalse(admitted())
    })
  )

  scenario("has no limits of those that were removed, though a late answer comes from them", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 20 }, (_, index) => `hook-${index}`)
      const rate = { perSecond: 1, burst: 1 }
      yield* Effect.forEach(ids, (id) => endpoint({ id, rate, adapt: true }))
      const { answered, directory, health, liveOf } = yield* makeHealth
      const removed = ids.map((id) => liveOf(id))
      for (const one of removed) {
        health.soon(one.key)
        answered(one, 200)
      }
      assert.strictEqual(health.throttled(), ids.length)
      yield* Effect.forEach(ids, (id) => removeEndpoint("acme", id))
      yield* eventually(
        Effect.sync(() => ids.filter((id) => directory.find(`acme.${id}`) !== undefined)),
        (left) => left.length === 0
      )
      for (const one of removed) answered(one, 200)
      assert.strictEqual(health.throttled(), 0)
    })
  )
})
