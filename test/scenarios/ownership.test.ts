import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { eraseValue, writeValue } from "../../src/broker/values.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { quiet as quietBooks } from "../kit/consistency.ts"
import { endpoint, eventually, history, publish, worker } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { eight, lease, owners } from "../kit/owners.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const key = "owner.0"

const another = { worker: "w1", instance: "another process of the same id" }

/** Gives the lease of the first partition to a process that does not exist. */
const giveAway = Effect.flatMap(Broker, ({ names }) =>
  writeValue(names.buckets.workers, key, JSON.stringify(another))
)

/** What the bucket of leases takes at most, bytes. */
const limitLeases = (max_msg_size: number) =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    const stream = `KV_${names.buckets.workers}`
    const { config } = yield* ask("look", () => jsm.streams.info(stream))
    yield* ask("change", () => jsm.streams.update(stream, { ...config, max_msg_size }))
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
      assert.strictEqual(log.count("exceeds maximum allowed"), 1)
      yield* publish("a")
      yield* facts.planned(2)
      // That nothing is sent has no event: it would be sent within a few ms of its plan.
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
      yield* facts.planned(3)
      yield* other.received(1)
      // What is published after it has come and gone: it would have been sent by now.
      for (const count of [2, 3, 4, 5]) {
        yield* publish("b")
        yield* other.received(count)
      }
      assert.strictEqual(requests.length, 1)
      assert.deepStrictEqual(yield* lease(), another)
      yield* eraseValue(names.buckets.workers, key)
      yield* facts.count("delivered", 7)
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
        if (last !== undefined) yield* writeValue(workers, "last-owner.0", last)
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
          answer: () => latency(20)
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
        yield* second.delivering
        for (let event = 0; event < 100; event++) {
          yield* publish("a", "{}", { "Nats-Msg-Id": `acme-${event}` })
          if (event !== 30) continue
          // Whoever has them now goes on until it would renew; what it has renewed at once is erased again.
          const seize = Effect.gen(function* () {
            const all = yield* owners(8)
            yield* eraseValue(names.buckets.workers, "worker.w1")
            yield* Effect.forEach(all, (owner, partition) =>
              owner === "w1" ? eraseValue(names.buckets.workers, `owner.${partition}`) : Effect.void
            )
            return yield* owners(8)
          })
          yield* eventually(seize, (all) => all.every((worker) => worker === "w2"))
        }
        yield* quietBooks
        yield* eventually(owners(8), (all) => all.filter((worker) => worker === "w1").length === 4)
        const delivered = new Set(
          facts
            .of("delivered", "delivered-late")
            .map(({ endpoint, event }) => `${event} ${endpoint}`)
        )
        assert.strictEqual(delivered.size, 800)
        assert.deepStrictEqual(facts.of("dead-lettered", "attempt-failed"), [])
        assert.isAtMost(hook.requests.length, 800 + 8 * 10)
      }),
    { partitions: 8 }
  )
})
