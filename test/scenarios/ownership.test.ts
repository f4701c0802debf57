import { assert, describe } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Result } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { eraseValue, readValue, writeValue } from "../../src/broker/values.ts"
import type { WorkerOptions } from "../../src/delivery/worker.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { quiet as quietBooks } from "../books.ts"
import { counting } from "../counting.ts"
import type { Installation } from "../engine.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../engine.ts"
import { makeLog } from "../log.ts"
import { receiver } from "../receiver.ts"
import { onServer, quiet } from "../scenario.ts"

const { scenario } = onServer()

const key = "owner.0"
/** One endpoint in each of 8 partitions, by partition. */
const eight = ["c", "h", "e", "b", "g", "d", "a", "f"]

const took = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    yield* work
    return (yield* Clock.currentTimeMillis) - start
  })

/** What the lease of a partition says: its worker, and which process that is. */
const lease = (partition = 0) =>
  Effect.gen(function* () {
    const { bucket, names } = yield* Broker
    const entry = yield* readValue(yield* bucket(names.buckets.workers), `owner.${partition}`)
    const value: { readonly worker?: string; readonly instance?: string } =
      entry === undefined ? {} : JSON.parse(entry.string())
    return value
  })
const owners = (partitions: number) =>
  Effect.forEach(
    Array.from({ length: partitions }, (_, partition) => lease(partition)),
    Effect.map(({ worker }) => worker)
  )

const another = { worker: "w1", instance: "another process of the same id" }

/** Gives the lease of the first partition to a process that does not exist. */
const giveAway = Effect.flatMap(Broker, ({ names }) =>
  writeValue(names.buckets.workers, key, JSON.stringify(another))
)

/** What the bucket of leases takes at most, bytes. */
const limitLeases = (max_msg_size: number) =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* Broker
    const stream = `KV_${names.buckets.workers}`
    const { config } = yield* ask("look", () => jsm.streams.info(stream))
    yield* ask("change", () => jsm.streams.update(stream, { ...config, max_msg_size }))
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
        const { connection } = yield* Broker
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

const workers = (facts: ReadonlyArray<{ readonly worker?: string }>) =>
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
        let published = 0
        let publishing = true
        const publisher = yield* Effect.forkScoped(
          Effect.gen(function* () {
            while (publishing) {
              yield* publish("a")
              published++
              yield* Effect.sleep("70 millis")
            }
          })
        )
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
          3_000
        )
        publishing = false
        yield* Fiber.join(publisher)
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

describe.concurrent("the owner of a partition", () => {
  scenario("starts no attempt once it could not renew its lease for half its time", () =>
    Effect.gen(function* () {
      const { requests, received, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const log = makeLog()
      yield* Effect.provide(worker({ leaseTtl: 2_000 }), log.layer)
      yield* publish("a")
      yield* facts.count("delivered", 1)
      yield* limitLeases(10)
      yield* eventually(
        Effect.sync(() => log.count("the right to deliver cannot be renewed")),
        (count) => count === 1
      )
      yield* publish("a")
      yield* facts.count("routed", 2)
      yield* Effect.sleep("1500 millis")
      assert.strictEqual(requests.length, 1)
      assert.strictEqual(log.count("cannot be renewed"), 1)
      yield* limitLeases(-1)
      yield* received(2)
      yield* facts.count("delivered", 2)
      assert.deepStrictEqual(
        facts.of("attempt-failed", "delivered").map(({ attempt, kind }) => [kind, attempt]),
        [
          ["delivered", 1],
          ["delivered", 1]
        ]
      )
      yield* eventually(
        Effect.sync(() => log.count("the right to deliver is renewed again")),
        (count) => count === 1
      )
    })
  )

  scenario("stands back when the lease has passed to somebody else, until it is free again", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { requests, url } = yield* receiver()
      const other = yield* receiver()
      yield* endpoint({ url, types: ["a"] })
      yield* endpoint({ id: "other", url: other.url, types: ["b"] })
      assert.deepStrictEqual(
        ["hook", "other"].map((id) => partitionOf("acme", id, 2)),
        [0, 1]
      )
      const facts = yield* history
      const log = makeLog()
      yield* Effect.provide(worker({ leaseTtl: 2_000 }), log.layer)
      yield* publish("a")
      yield* facts.count("delivered", 1)
      yield* giveAway
      yield* eventually(
        Effect.sync(() => log.count("another worker has taken a partition over")),
        (count) => count === 1
      )
      yield* publish("a")
      yield* publish("b")
      yield* facts.count("routed", 3)
      yield* other.received(1)
      yield* Effect.sleep("500 millis")
      assert.strictEqual(requests.length, 1)
      assert.deepStrictEqual(yield* lease(), another)
      yield* eraseValue(names.buckets.workers, key)
      yield* facts.count("delivered", 3)
      assert.deepStrictEqual(yield* owners(2), ["w1", "w1"])
    })
  )

  for (const [who, last] of [
    ["goes on when its lease has ended and nobody has delivered in between", undefined],
    ["begins anew when another has delivered since its lease ended", "another process"]
  ] as const)
    scenario(who, () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const { requests, url } = yield* receiver()
        yield* endpoint({ url })
        const facts = yield* history
        const log = makeLog()
        const { delivering } = yield* Effect.provide(worker({ leaseTtl: 2_000 }), log.layer)
        yield* delivering
        yield* publish("a")
        yield* facts.count("delivered", 1)
        const { workers } = names.buckets
        if (last !== undefined) yield* writeValue(workers, "taken.0", last)
        yield* eraseValue(workers, key)
        yield* eventually(owners(2), (all) => all[0] === "w1")
        yield* publish("a")
        yield* facts.count("delivered", 2)
        yield* eventually(
          Effect.sync(() => log.count("another worker has taken a partition over")),
          (count) => count === (last === undefined ? 0 : 1)
        )
        assert.strictEqual(requests.length, 2)
      })
    )

  scenario("does not give back what has passed to somebody else", () =>
    Effect.gen(function* () {
      const first = yield* worker()
      yield* first.delivering
      yield* giveAway
      yield* first.stop
      assert.deepStrictEqual(yield* lease(), another)
    })
  )

  scenario(
    "may be two for a while: each believes that it is, and nothing is lost",
    (place) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver({
          answer: () => new Promise((answer) => setTimeout(() => answer({}), 20))
        })
        yield* Effect.forEach(eight, (id) => endpoint({ id, url: `${hook.url}/${id}` }))
        const facts = yield* history
        const first = yield* worker({ id: "w1" })
        yield* first.delivering
        const second = yield* Effect.provideService(
          worker({ id: "w2" }),
          Broker,
          yield* place.connection
        )
        const share = yield* second.delivering
        for (let event = 0; event < 100; event++) {
          yield* publish("a", "{}", { "Nats-Msg-Id": `acme-${event}` })
          if (event !== 30) continue
          // Whoever has them now goes on until it would renew.
          yield* eraseValue(names.buckets.workers, "worker.w1")
          yield* Effect.forEach(eight, (_, partition) =>
            share.includes(partition)
              ? Effect.void
              : eraseValue(names.buckets.workers, `owner.${partition}`)
          )
          yield* eventually(owners(8), (all) => all.every((worker) => worker === "w2"))
        }
        yield* quietBooks
        yield* eventually(owners(8), (all) => all.filter((worker) => worker === "w1").length === 4)
        const delivered = new Set(
          facts.of("delivered").map(({ endpoint, event }) => `${event} ${endpoint}`)
        )
        assert.strictEqual(delivered.size, 800)
        assert.deepStrictEqual(facts.of("dead-lettered", "attempt-failed"), [])
        assert.isAtMost(hook.requests.length, 800 + 8 * 10)
      }),
    { partitions: 8 }
  )
})
