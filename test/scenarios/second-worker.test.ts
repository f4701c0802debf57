import { assert, describe } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Result } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import type { Fact } from "../../src/domain/fact.ts"
import type { WorkerOptions } from "../../src/worker/worker.ts"
import { counting } from "../kit/counting.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../kit/engine.ts"
import { eight, owners } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, quiet } from "../kit/scenario.ts"
import { steadyPublisher } from "../kit/steady-publisher.ts"

const { scenario } = onServer()

const took = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    yield* work
    return (yield* Clock.currentTimeMillis) - start
  })

/**
 * Starts a worker that shares nothing with the others here, and gives what ends it: its connection
 * is gone from one moment to the next, and nobody gives back anything.
 */
const mortalWorker = (place: Installation, options: Partial<WorkerOptions>) =>
  Effect.gen(function* () {
    const delivers = yield* Deferred.make<void>()
    const ends = yield* Deferred.make<void>()
    const dead = yield* Deferred.make<void>()
    const life = place.run(
      Effect.gen(function* () {
        const { connection } = yield* natsClients
        const { delivering } = yield* worker(options)
        yield* delivering
        yield* Deferred.succeed(delivers, undefined)
        yield* Deferred.await(ends)
        yield* Effect.promise(() => connection.close())
        yield* Deferred.succeed(dead, undefined)
        return yield* Effect.never
      })
    )
    yield* Effect.acquireRelease(
      Effect.sync(() => Effect.runFork(Effect.provide(life, quiet))),
      Fiber.interrupt
    )
    yield* Deferred.await(delivers)
    return Effect.andThen(Deferred.succeed(ends, undefined), Deferred.await(dead))
  })

const workers = (facts: ReadonlyArray<Pick<Fact, "worker">>) =>
  new Set(facts.map(({ worker }) => worker))

describe.concurrent("a second worker", () => {
  scenario(
    "has its share within seconds, and all when the first one stops; nothing is sent twice, or beyond a cap",
    () =>
      Effect.gen(function* () {
        const { answer, most } = counting(150)
        const hook = yield* receiver({ answer })
        const maxInFlight = 2
        yield* Effect.forEach(eight, (id) =>
          endpoint({ id, url: `${hook.url}/${id}`, maxInFlight })
        )
        const facts = yield* history
        const first = yield* worker({ id: "w1" })
        assert.deepStrictEqual(yield* first.delivering, [0, 1, 2, 3, 4, 5, 6, 7])
        const publisher = yield* steadyPublisher("a", 70)
        yield* facts.count("delivered", 40)
        const second = yield* worker({ id: "w2" })
        assert.isBelow(yield* took(second.delivering), 5_000)
        const share = yield* second.delivering
        assert.lengthOf(share, 4)
        const shared = facts.facts.length
        yield* facts.count("delivered", facts.of("delivered").length + 80)
        for (const { endpoint, worker } of facts.facts.slice(shared))
          if (endpoint !== "_")
            assert.strictEqual(worker, share.includes(eight.indexOf(endpoint)) ? "w2" : "w1")
        assert.deepStrictEqual(
          yield* owners(8),
          eight.map((_, partition) => (share.includes(partition) ? "w2" : "w1"))
        )

        yield* first.stop
        assert.isBelow(
          yield* took(eventually(owners(8), (all) => all.every((worker) => worker === "w2"))),
          5_000
        )
        const published = yield* publisher.stop
        yield* facts.count("delivered", 8 * published)
        assert.strictEqual(hook.requests.length, 8 * published)
        assert.strictEqual(facts.of("delivered").length, 8 * published)
        assert.strictEqual(most(), maxInFlight)
      }),
    { partitions: 8, ackWait: 20_000 }
  )

  scenario("takes over when the leases of the first one end, which has died", (place) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const slow = yield* receiver({
        answer: () => Effect.runPromise(Effect.as(Deferred.await(gate), {}))
      })
      yield* endpoint({ url: slow.url })
      const facts = yield* history
      const die = yield* mortalWorker(place, { id: "w1", leaseTtl: 2_000, stopWithin: 100 })
      yield* publish("a")
      yield* slow.received(1)
      yield* die
      const second = yield* worker({ id: "w2", leaseTtl: 2_000 })
      yield* eventually(owners(2), (all) => all.every((worker) => worker === "w2"))
      yield* second.delivering
      yield* Deferred.succeed(gate, undefined)
      yield* facts.count("delivered", 1)
      assert.deepStrictEqual(workers(facts.of("delivered")), new Set(["w2"]))
      assert.strictEqual(slow.requests.length, 2)
    })
  )

  scenario("is refused with the id of one that is alive, and leaves that one alone", () =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const first = yield* worker({ id: "same", leaseTtl: 1_000 })
      yield* first.delivering
      const refused = yield* Effect.flip(worker({ id: "same", leaseTtl: 1_000 }))
      assert.include(refused.message, `named same is running already`)
      assert.include(refused.message, `process ${process.pid}`)
      yield* publish("a")
      yield* facts.count("delivered", 1)
      assert.strictEqual(requests.length, 1)
    })
  )

  scenario("is refused, or the first one is, where both start at the same moment", () =>
    Effect.gen(function* () {
      const start = Effect.result(worker({ id: "same", leaseTtl: 1_000 }))
      const results = yield* Effect.all([start, start], { concurrency: 2 })
      const messages = results.filter(Result.isFailure).map(({ failure }) => failure.message)
      assert.lengthOf(messages, 1)
      assert.include(nth(messages, 0), "named same is running already")
    })
  )

  scenario("may have the id of one that has died, once its time is over", (place) =>
    Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      yield* Effect.flatten(mortalWorker(place, { id: "same", leaseTtl: 2_000, stopWithin: 100 }))
      yield* publish("a")
      yield* worker({ id: "same", leaseTtl: 2_000 })
      yield* facts.count("delivered", 1)
    })
  )

  scenario("has nothing to do, and may stop, where there are no more partitions", () =>
    Effect.gen(function* () {
      const first = yield* worker({ id: "w1" })
      yield* first.delivering
      const second = yield* worker({ id: "w2" })
      const third = yield* worker({ id: "w3" })
      yield* eventually(owners(2), (all) => new Set(all).size === 2 && !all.includes(undefined))
      const shares = yield* Effect.forEach([second, third], ({ delivering }) => delivering)
      assert.isAtMost(shares.flat().length, 2)
      assert.isBelow(yield* took(third.stop), 5_000)
    })
  )
})
