import { readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { readDeadLetters } from "../../src/history/dead-letters.ts"
import { readFacts } from "../../src/history/read.ts"
import { RefusalCells, RefusedRequests } from "../../src/metrics/refused-requests.ts"
import { discardDeadLetters } from "../../src/operations/dead-letters/discard-dead-letters.ts"
import { explainDelivery } from "../../src/operations/deliveries/explain-delivery.ts"
import type { EventQuery } from "../../src/operations/history/event-facts.ts"
import { readEventFacts } from "../../src/operations/history/event-facts.ts"
import { startProjection } from "../../src/projection/projection.ts"
import {
  getRemotely,
  remoteStatus,
  serveProjection,
  sumRemotely
} from "../../src/projection/remote-log.ts"
import {
  caughtUp,
  directory,
  lookedUp,
  optionsOf,
  projecting,
  store,
  walk
} from "../kit/delivery-log.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { randomFacts, randomOf } from "../kit/random-facts.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { foldedRows, saidBy } from "../projection/folded-rows.ts"

vi.setConfig({ maxConcurrency: 3, testTimeout: 90_000 })

const { longScenario, scenario } = onServer()

const seed = Number(process.env.PETREL_TEST_SEED ?? Date.now() % 1_000_000)

describe.concurrent("the projection", () => {
  scenario("shows what workers do, also what has not ended, and answers over NATS", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: byAttempt(500, 200) })
      const gone = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "flaky", url: hook.url, types: ["a"] })
      yield* endpoint({ id: "gone", url: gone.url, types: ["a"] })
      const facts = yield* history
      yield* worker()
      const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      yield* publish("a", "{}", { "Nats-Msg-Id": "acme.one", traceparent })
      yield* facts.count("delivered", 1)
      yield* facts.count("dead-lettered", 1)
      const ids = ["acme.one.flaky", "acme.one.gone"]
      const explained = Effect.forEach(ids, (id) => explainDelivery(id, "acme"))
      const fromHistory = yield* explained
      assert.isTrue(fromHistory.every(({ trace }) => trace === traceparent))
      assert.isTrue(
        fromHistory.every(({ rounds }) => rounds[0]?.attempts.every(({ response }) => response))
      )
      const options = optionsOf(place, yield* directory)
      const log = yield* serveProjection(options)
      yield* caughtUp(log.status)
      const lag0 = { facts: 0, ms: 0 }
      const fromLog = fromHistory.map((one) => ({ ...one, lag: lag0 }))
      assert.deepStrictEqual(yield* explained, fromLog)
      const { deliveries, lag } = yield* log.find({ tenant: "acme", event: "acme.one" })
      assert.deepStrictEqual(lag, lag0)
      assert.deepStrictEqual(
        deliveries
          .map(({ attempts, endpoint, state, status }) => [endpoint, state, attempts, status])
          .sort(),
        [
          ["flaky", "delivered", 2, 200],
          ["gone", "dead-lettered", 1, 400]
        ]
      )
      const { rounds } = yield* log.get({ tenant: "acme", event: "acme.one", endpoint: "flaky" })
      assert.deepStrictEqual(
        rounds[0]?.recorded.map(({ isSuccess, status }) => [isSuccess, status]),
        [
          [false, 500],
          [true, 200]
        ]
      )
      const fault = yield* Effect.flip(log.find({ cursor: "nonsense" }))
      assert.include(fault.message, "cursor must be")
    })
  )

  scenario("says where in the history the facts about an event are", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "gone", url: hook.url, types: ["a"] })
      const facts = yield* history
      yield* worker()
      yield* publish("a", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("dead-lettered", 1)
      yield* publish("a", "{}", { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("dead-lettered", 2)
      yield* discardDeadLetters(
        [nth(yield* Stream.runCollect(readDeadLetters({})), 0)],
        "test",
        () => {}
      )
      yield* facts.count("discarded", 1)
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      for (const query of [
        { event: "acme.one" },
        { event: "acme.two", tenant: "acme", kinds: ["attempt-failed", "routed"] },
        { event: "acme.one", endpoint: { tenant: "acme", id: "gone" } }
      ] satisfies ReadonlyArray<EventQuery>) {
        const all = yield* Stream.runCollect(readFacts(query))
        assert.isNotEmpty(all)
        const found = yield* readEventFacts(query)
        assert.deepStrictEqual(found.facts, all)
        assert.isDefined(found.lag)
      }
      assert.strictEqual(facts.of("discarded")[0]?.event, "acme.one")
    })
  )

  longScenario(
    `is killed at any moment and shows what a fold shows (seed ${seed}, PETREL_TEST_SEED)`,
    (place) =>
      Effect.gen(function* () {
        const random = randomOf(seed)
        const facts = randomFacts(seed, 3_000)
        const options = optionsOf(place, yield* directory)
        yield* Effect.forkScoped(store(facts))
        for (let kills = 0; kills < 5; kills++) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const { kill9 } = yield* projecting(options)
              yield* eventually(Effect.option(remoteStatus), ({ _tag }) => _tag === "Some")
              yield* Effect.sleep(random() * 300)
              yield* kill9
            })
          )
        }
        const { names, streamInfo } = yield* Broker
        yield* eventually(
          streamInfo("look", names.history),
          ({ state }) => state.last_seq >= facts.length
        )
        yield* projecting(options)
        yield* eventually(Effect.option(remoteStatus), (known) =>
          known._tag === "Some" ? known.value.position >= facts.length : false
        )
        const live = yield* lookedUp(getRemotely, facts)
        assert.deepStrictEqual(saidBy(live), foldedRows(facts))
        const { whole } = yield* sumRemotely({ since: 0, until: Date.now(), by: "hour" })
        const count = (kinds: ReadonlyArray<string>) =>
          facts.filter(({ kind }) => kinds.includes(kind)).length
        const { attemptsFailed, delivered } = whole.totals
        assert.strictEqual(attemptsFailed, count(["attempt-failed"]))
        assert.strictEqual(delivered, count(["delivered", "delivered-late"]))
        const other = yield* startProjection(optionsOf(place, yield* directory))
        yield* caughtUp(other.log.status)
        assert.deepStrictEqual(yield* lookedUp(other.log.get, facts), live)
        assert.deepStrictEqual(saidBy(yield* walk(other.log.find)), saidBy(live))
      })
  )

  scenario("searches for one tenant after the other, and not for who has left", (place) =>
    Effect.gen(function* () {
      const cells = new RefusalCells()
      yield* store(randomFacts(seed, 3_000), 500)
      const { log } = yield* startProjection(optionsOf(place, yield* directory)).pipe(
        Effect.provideService(RefusedRequests, cells)
      )
      yield* caughtUp(log.status)
      let found = 0
      const search = (tenant: string) => log.find({ tenant, status: ["599"] })
      const searches = (count: number) =>
        Effect.forEach(
          Array.from({ length: count }),
          () =>
            Effect.matchEffect(search("acme"), {
              onFailure: ({ message }) => Effect.succeed(message),
              onSuccess: () => Effect.sync(() => `found ${++found}`)
            }),
          { concurrency: "unbounded" }
        )
      const many = yield* Effect.forkChild(searches(100), { startImmediately: true })
      yield* search("globex")
      assert.isAtMost(found, 3)
      const answers = yield* Fiber.join(many)
      // One is searched for at once, and 64 wait.
      assert.strictEqual(found, 65)
      assert.include(answers.at(-1) ?? "", "64 searches of the tenant wait")
      const { samples } = cells.family()
      assert.strictEqual(samples.find(({ labels }) => labels.bound === "searches")?.value, 35)
      const leaving = yield* Effect.forkChild(searches(65), { startImmediately: true })
      yield* Fiber.interrupt(leaving)
      assert.notInclude((yield* searches(64)).join(), "wait for their turn")
    })
  )

  scenario("goes on where it was once its broker is back", (place, server) =>
    Effect.gen(function* () {
      const facts = randomFacts(14, 200)
      yield* store(facts.slice(0, 100))
      const proxy = yield* tcpProxy(server.port)
      const near = optionsOf(place, yield* directory)
      const url = `nats://127.0.0.1:${proxy.port}`
      const { count, layer } = makeLog()
      const projection = startProjection({ ...near, broker: { ...near.broker, url } })
      const { log } = yield* Effect.provide(projection, layer)
      yield* caughtUp(log.status)
      yield* proxy.cut
      yield* store(facts.slice(100))
      const stopped = yield* eventually(log.status, ({ state }) => state === "stopped")
      assert.include(stopped.problem ?? "", "the history cannot be read now")
      const unavailable = yield* Effect.flip(log.find({}))
      assert.include(unavailable.message, "the history cannot be read now")
      yield* proxy.join
      yield* caughtUp(log.status)
      assert.strictEqual(count("the history cannot be read now"), 1)
      assert.strictEqual(count("the delivery log continues"), 2)
      assert.deepStrictEqual(saidBy(yield* walk(log.find)), foldedRows(facts))
    })
  )

  scenario("makes damaged files again, and those of another history", (place) =>
    Effect.gen(function* () {
      const facts = randomFacts(11, 300)
      yield* store(facts)
      const options = optionsOf(place, yield* directory)
      const { jsm, names } = yield* natsClients
      const shows = (expected: ReadonlyArray<Fact>) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { log } = yield* startProjection(options)
            yield* caughtUp(log.status)
            assert.deepStrictEqual(saidBy(yield* walk(log.find)), foldedRows(expected))
          })
        )
      yield* shows(facts)
      writeFileSync(join(options.data, "notes"), "of somebody else")
      const segment = readdirSync(options.data).find((name) => /^segment-\d+\.db$/.test(name))
      truncateSync(join(options.data, segment ?? ""), 4_096)
      rmSync(join(options.data, `${segment}-wal`), { force: true })
      yield* shows(facts)
      writeFileSync(join(options.data, "main.db"), "x".repeat(10_000))
      rmSync(join(options.data, "main.db-wal"), { force: true })
      yield* shows(facts)
      const { config } = yield* Effect.promise(() => jsm.streams.info(names.history))
      yield* Effect.promise(() => jsm.streams.delete(names.history))
      yield* Effect.promise(() => jsm.streams.add(config))
      const others = randomFacts(12, 400)
      yield* store(others)
      yield* shows(others)
      assert.include(readdirSync(options.data), "notes")
    })
  )
})
