import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { readValue, writeValue } from "../../src/broker/values.ts"
import { crashBroker } from "../kit/broker-crash.ts"
import { consistentRounds } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, eventually, history, publish, worker } from "../kit/engine.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { eight, owners } from "../kit/owners.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { steadyPublisher } from "../kit/steady-publisher.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 120_000 })

const leaseTtl = 2_000

const inEight = { partitions: 8 }
/** A worker with a connection of its own, as another process would have. */
const workerApart = (place: Installation, id: string, ttl = leaseTtl) =>
  Effect.gen(function* () {
    const options = { id, leaseTtl: ttl }
    return yield* Effect.provideService(worker(options), Broker, yield* place.connection)
  })

/** Waits until both have half of the partitions. */
const halves = eventually(owners(8).pipe(Effect.orElseSucceed(() => [])), (all) =>
  ["w1", "w2"].every((id) => all.filter((owner) => owner === id).length === 4)
)

const makeEndpoints = Effect.gen(function* () {
  const hook = yield* receiver({
    answer: () => latency(20)
  })
  yield* Effect.forEach(eight, (id) => endpoint({ id, url: `${hook.url}/${id}` }))
  return hook
})

describe.concurrent("an outage that is longer than every lease", () => {
  const away = {
    "is killed": (server: TestServer) => crashBroker(server, { downFor: 2 * leaseTtl }),
    "is frozen": (server: TestServer) =>
      Effect.gen(function* () {
        server.pause()
        yield* Effect.sleep(2 * leaseTtl)
        server.resume()
      })
  }
  for (const [how, happens] of Object.entries(away))
    outage(
      `leaves each partition with one owner, the same as before: it ${how}`,
      (place, server) =>
        Effect.gen(function* () {
          const hook = yield* makeEndpoints
          const facts = yield* history
          yield* workerApart(place, "w1")
          yield* workerApart(place, "w2")
          yield* halves
          const before = yield* owners(8)
          for (let event = 0; event < 5; event++) yield* publish("a")
          yield* facts.count("delivered", 40)
          yield* happens(server)
          for (let event = 0; event < 20; event++) yield* publish("a").pipe(Effect.eventually)
          yield* facts.count("delivered", 200)
          yield* halves
          assert.deepStrictEqual(yield* owners(8), before)
          const after = facts.of("delivered").slice(40)
          for (const { endpoint, worker } of after)
            assert.strictEqual(worker, before[eight.indexOf(endpoint)], endpoint)
          assert.strictEqual(hook.requests.length, 200)
        }),
      inEight
    )
})

describe.concurrent("a worker that is back before another", () => {
  outage(
    "does not take what is the other's, before that may be heard again",
    (place, server) =>
      Effect.gen(function* () {
        const hook = yield* makeEndpoints
        const facts = yield* history
        const ttl = 4_000
        const [own, others] = [["w1"], ["w2"]].map(
          ([id]) =>
            (all: ReadonlyArray<unknown>) =>
              all.filter((owner) => owner === id).length
        )
        assert.isDefined(own)
        assert.isDefined(others)
        yield* workerApart(place, "w1", ttl)
        const late = yield* workerProcess(place, {
          id: "w2",
          leaseTtl: ttl,
          crash: { step: "outcome-stored", arrival: 4, signal: "SIGSTOP" }
        })
        yield* halves
        const before = yield* owners(8)
        yield* publish("a")
        yield* facts.count("delivered", 8)
        yield* crashBroker(server, { downFor: 1.5 * ttl })
        yield* eventually(owners(8), (all) => own(all) === 4 && others(all) === 0)
        const until = performance.now() + ttl / 2
        yield* eventually(owners(8), (all) => {
          assert.strictEqual(own(all), 4)
          assert.strictEqual(others(all), 0)
          return performance.now() > until
        })
        yield* late.resume
        yield* halves
        assert.deepStrictEqual(yield* owners(8), before)
        yield* publish("a")
        yield* facts.count("delivered", 16)
        assert.strictEqual(hook.requests.length, 16)
      }),
    inEight
  )

  outage(
    "takes it when that does not come back",
    (place, server) =>
      Effect.gen(function* () {
        yield* workerApart(place, "w1")
        const late = yield* workerProcess(place, { id: "w2", leaseTtl })
        yield* halves
        yield* late.kill9
        yield* crashBroker(server, { downFor: 1.5 * leaseTtl })
        yield* eventually(owners(8), (all) => all.every((owner) => owner === "w1"))
      }),
    inEight
  )
})

describe.concurrent("a broker that is killed while owners change", () => {
  outage(
    "loses nothing: each delivery ends once",
    (place, server) =>
      Effect.gen(function* () {
        const hook = yield* makeEndpoints
        const facts = yield* history
        const first = yield* workerApart(place, "w1")
        yield* first.delivering
        const publisher = yield* steadyPublisher("a", 20)
        yield* facts.count("delivered", 80)

        // The second one has come, and the first one is giving up what is to be the second's.
        yield* workerApart(place, "w2")
        yield* eventually(owners(8), (all) => all.includes(undefined) || all.includes("w2"))
        yield* crashBroker(server)
        yield* halves

        const stopping = yield* Effect.forkScoped(first.stop, { startImmediately: true })
        yield* crashBroker(server)
        yield* Fiber.join(stopping)
        yield* eventually(
          owners(8).pipe(Effect.orElseSucceed(() => [])),
          (all) => all.length > 0 && all.every((owner) => owner === "w2")
        )
        const published = yield* publisher.stop
        const accounts = yield* consistentRounds
        assert.strictEqual(accounts.length, 8 * published)
        for (const { attempts } of accounts) assert.deepStrictEqual(attempts, [1])
        assert.strictEqual(hook.requests.length, 8 * published)
      }),
    inEight
  )
})

describe.concurrent("a worker", () => {
  outage(
    "stops, and says why, when there are more partitions than it knows",
    (place, server) =>
      Effect.gen(function* () {
        const { names } = yield* natsClients
        const { refused } = yield* workerApart(place, "w1")
        // As where another installation took the place of this one.
        const layout = yield* readValue(names.buckets.workers, "layout")
        const record = { ...JSON.parse(layout?.string() ?? "{}"), partitions: 9 }
        yield* writeValue(names.buckets.workers, "layout", JSON.stringify(record))
        yield* crashBroker(server)
        const { message } = yield* Effect.flip(refused)
        assert.include(
          message,
          "has 9 partitions now, and this worker began with 8: start it again"
        )
        yield* eventually(owners(8), (all) => all.every((owner) => owner === undefined))
      }),
    inEight
  )

  outage(
    "stops when another process has taken its id while it could not be heard",
    (place) =>
      Effect.gen(function* () {
        const { names, publisher } = yield* natsClients
        const { delivering, refused } = yield* workerApart(place, "w1")
        yield* delivering
        const entry = yield* readValue(names.buckets.workers, "worker.w1")
        const other = { ...JSON.parse(entry?.string() ?? "{}"), instance: "x", host: "elsewhere" }
        yield* publisher.publish(
          `$KV.${names.buckets.workers}.worker.w1`,
          JSON.stringify(other),
          []
        )
        const { message } = yield* Effect.flip(refused)
        assert.include(message, "a worker named w1 is running already (on elsewhere")
        const left = yield* readValue(names.buckets.workers, "worker.w1")
        assert.strictEqual(JSON.parse(left?.string() ?? "{}").instance, "x")
        yield* eventually(owners(8), (all) => all.every((owner) => owner === undefined))
      }),
    inEight
  )
})
