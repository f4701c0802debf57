import { assert, describe } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Option } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { eraseValue, readValue, writeValue } from "../../src/broker/values.ts"
import type { WorkerOptions } from "../../src/delivery/worker.ts"
import type { Installation } from "../engine.ts"
import { endpoint, eventually, history, publish, worker } from "../engine.ts"
import { makeLog } from "../log.ts"
import { receiver } from "../receiver.ts"
import { onServer, quiet } from "../scenario.ts"

const { scenario } = onServer()

const key = "owner.all"
const standsBy = "another worker delivers; this one stands by"

const took = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    yield* work
    return (yield* Clock.currentTimeMillis) - start
  })

/** What the lease says: its worker, and which process that is. */
const lease = Effect.gen(function* () {
  const { bucket, names } = yield* Broker
  const entry = yield* readValue(yield* bucket(names.buckets.workers), key)
  const value: { readonly worker?: string; readonly instance?: string } =
    entry === undefined ? {} : JSON.parse(entry.string())
  return value
})
const owner = Effect.map(lease, ({ worker }) => worker)

const another = { worker: "w1", instance: "another process of the same id" }

/** Gives the lease to a process that does not exist. */
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
  scenario("says once that it stands by, and takes over at once when the first one stops", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const first = yield* worker({ id: "w1" })
      yield* first.delivering
      const log = makeLog()
      const second = yield* Effect.provide(worker({ id: "w2" }), log.layer)
      yield* eventually(
        Effect.sync(() => log.count(standsBy)),
        (count) => count === 1
      )
      for (let event = 0; event < 20; event++)
        yield* Effect.andThen(publish("a"), Effect.sleep("100 millis"))
      yield* facts.count("delivered", 20)
      assert.deepStrictEqual(workers(facts.of("delivered")), new Set(["w1"]))
      assert.strictEqual(log.count(standsBy), 1)
      assert.strictEqual(yield* owner, "w1")

      yield* first.stop
      assert.isBelow(yield* took(second.delivering), 5_000)
      assert.strictEqual(yield* owner, "w2")
      yield* publish("a")
      yield* facts.count("delivered", 21)
      assert.strictEqual(facts.of("delivered").at(-1)?.worker, "w2")
    })
  )

  scenario("takes over when the lease of the first one ends, which has died", (place) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const slow = yield* receiver({
        answer: () => Effect.runPromise(Effect.as(Deferred.await(gate), {}))
      })
      yield* endpoint({ url: slow.url })
      const facts = yield* history
      const die = yield* mortalWorker(place, { id: "w1", leaseTtl: 2_000, stopWithin: 100 })
      const second = yield* worker({ id: "w2", leaseTtl: 2_000 })
      yield* publish("a")
      yield* slow.received(1)
      yield* die
      yield* second.delivering
      yield* Deferred.succeed(gate, undefined)
      yield* facts.count("delivered", 1)
      assert.deepStrictEqual(workers(facts.of("delivered")), new Set(["w2"]))
      assert.strictEqual(slow.requests.length, 2)
    })
  )

  scenario("is another, also when it was given the same id", () =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const first = yield* worker({ id: "same", leaseTtl: 1_000 })
      yield* first.delivering
      const log = makeLog()
      const second = yield* Effect.provide(worker({ id: "same", leaseTtl: 1_000 }), log.layer)
      yield* eventually(
        Effect.sync(() => log.count(standsBy)),
        (count) => count === 1
      )
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(second.delivering, "1500 millis")))
      yield* first.stop
      yield* second.delivering
      yield* publish("a")
      yield* facts.count("delivered", 1)
      assert.strictEqual(requests.length, 1)
    })
  )

  scenario("may stop while it stands by", () =>
    Effect.gen(function* () {
      const first = yield* worker({ id: "w1" })
      yield* first.delivering
      const second = yield* worker({ id: "w2", stopWithin: 25_000 })
      assert.isBelow(yield* took(second.stop), 5_000)
      assert.strictEqual(yield* owner, "w1")
    })
  )
})

describe.concurrent("the owner", () => {
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
      yield* endpoint({ url })
      const facts = yield* history
      const log = makeLog()
      yield* Effect.provide(worker({ leaseTtl: 2_000 }), log.layer)
      yield* publish("a")
      yield* facts.count("delivered", 1)
      yield* giveAway
      yield* eventually(
        Effect.sync(() => log.count("another worker delivers now")),
        (count) => count === 1
      )
      yield* eventually(
        Effect.sync(() => log.count(standsBy)),
        (count) => count === 1
      )
      yield* publish("a")
      yield* facts.count("routed", 2)
      yield* Effect.sleep("1500 millis")
      assert.strictEqual(requests.length, 1)
      assert.deepStrictEqual(yield* lease, another)
      yield* eraseValue(names.buckets.workers, key)
      yield* facts.count("delivered", 2)
      assert.strictEqual(yield* owner, "w1")
    })
  )

  scenario("does not give back what has passed to somebody else", () =>
    Effect.gen(function* () {
      const first = yield* worker()
      yield* first.delivering
      yield* giveAway
      yield* first.stop
      assert.deepStrictEqual(yield* lease, another)
    })
  )
})
