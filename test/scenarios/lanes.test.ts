import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { IpNetwork } from "effect/net"
import { endpoint, history, nth, publish, publishTo, quickRetry, worker } from "../kit/engine.ts"
import { about, patientRetry } from "../kit/outcomes.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe.concurrent("an endpoint on a private address", () => {
  scenario("is not even connected to where its network is not allowed", () =>
    Effect.gen(function* () {
      const guarded = yield* receiver()
      const retry = quickRetry({ maxAttempts: 2 })
      const urls = {
        literal: guarded.url,
        name: `http://localhost:${guarded.port}`,
        mapped: `http://[::ffff:127.0.0.1]:${guarded.port}`,
        decimal: `http://2130706433:${guarded.port}`,
        zero: `http://0.0.0.0:${guarded.port}`
      }
      for (const [id, url] of Object.entries(urls)) yield* endpoint({ id, url, retry })
      const facts = yield* history
      yield* worker({ allowNetworks: [] })
      yield* publish("a")
      yield* facts.count("dead-lettered", Object.keys(urls).length)
      for (const id of Object.keys(urls)) {
        assert.deepStrictEqual(
          about(facts.of("attempt-failed"), id).map(({ attempt, error }) => [
            attempt,
            error?.class
          ]),
          [
            [1, "address"],
            [2, "address"]
          ],
          id
        )
        assert.deepInclude(nth(about(facts.of("dead-lettered"), id), 0), { reason: "attempts" })
      }
      assert.strictEqual(guarded.connections(), 0)
    })
  )
})

describe.concurrent("a private network that one tenant may reach", () => {
  scenario("is sent to for that tenant, and for no other", () =>
    Effect.gen(function* () {
      const guarded = yield* receiver()
      for (const tenant of ["acme", "globex"]) yield* endpoint({ tenant, url: guarded.url })
      const facts = yield* history
      yield* worker({
        allowNetworks: [],
        tenantReach: new Map([
          ["acme", { networks: [IpNetwork.fromStringUnsafe("127.0.0.1/32")], ports: [] }]
        ])
      })
      yield* publish("a")
      yield* facts.count("delivered", 1)
      yield* publishTo("globex.a")
      yield* facts.count("attempt-failed", 1)
      const failed = nth(facts.of("attempt-failed"), 0)
      assert.deepStrictEqual([failed.tenant, failed.error?.class], ["globex", "address"])
      assert.strictEqual(guarded.requests.length, 1)
    })
  )
})

describe.concurrent("endpoints side by side", () => {
  scenario("never have more requests in flight than each allows", () =>
    Effect.gen(function* () {
      const counted = yield* Effect.forEach([1, 3, 50], (cap) =>
        Effect.gen(function* () {
          let now = 0
          let most = 0
          const made = yield* receiver({
            answer: async () => {
              most = Math.max(most, ++now)
              await latency(20)
              now--
              return { status: 200 }
            }
          })
          yield* endpoint({ id: `cap${cap}`, url: made.url, maxInFlight: cap })
          return { cap, made, most: () => most }
        })
      )
      const facts = yield* history
      // Before there is a worker: a machine that is busy may publish them more slowly than they are sent.
      yield* Effect.forEach(Array.from({ length: 25 }), () => publish("a"), { concurrency: 20 })
      yield* worker()
      yield* facts.count("delivered", 75)
      for (const { cap, made, most } of counted) {
        assert.isAtMost(most(), cap)
        assert.strictEqual(made.requests.length, 25)
      }
      assert.strictEqual(counted[1]?.most(), 3)
    })
  )

  scenario(
    "do not wait for one of them that is slow",
    () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const slow = yield* receiver({
          answer: () => Effect.runPromise(Effect.as(Deferred.await(gate), {}))
        })
        const quick = yield* receiver()
        yield* endpoint({ id: "slow", url: slow.url, maxInFlight: 2 })
        yield* endpoint({ id: "quick", url: quick.url })
        const facts = yield* history
        yield* worker()
        const count = 300
        yield* Effect.forEach(Array.from({ length: count }), () => publish("a"), {
          concurrency: 50
        })
        yield* quick.received(count)
        assert.strictEqual(slow.requests.length, 2)
        yield* Deferred.succeed(gate, undefined)
        yield* facts.count("delivered", 2 * count)
        assert.strictEqual(slow.requests.length, count)
        assert.deepStrictEqual(facts.of("attempt-failed"), [])
      }),
    { partitions: 1 }
  )

  scenario("keep their own pace of retries", () =>
    Effect.gen(function* () {
      const failing = yield* receiver({ answer: { status: 500 } })
      const mending = yield* receiver({ answer: byAttempt(500, 200) })
      yield* endpoint({ id: "failing", url: failing.url, retry: patientRetry })
      yield* endpoint({ id: "mending", url: mending.url })
      const facts = yield* history
      yield* worker()
      yield* Effect.forEach(Array.from({ length: 50 }), () => publish("a"), { concurrency: 10 })
      yield* facts.count("delivered", 50)
      assert.strictEqual(mending.requests.length, 100)
      assert.strictEqual(about(facts.of("attempt-failed"), "failing").length, 50)
    })
  )
})
