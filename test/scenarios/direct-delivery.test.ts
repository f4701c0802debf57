import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { readRecord } from "../../src/delivery/retry/retry-records.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { consistentRounds, isClean, noRecords, quiet } from "../kit/consistency.ts"
import { deliveryCount, everQueued, recreateConsumers } from "../kit/consumers.ts"
import { counting } from "../kit/counting.ts"
import {
  backlogged,
  countsQueued,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  queued,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { about, assertNoneTooEarly, attempts, patientRetry } from "../kit/outcomes.ts"
import { owners } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { rival } from "../kit/rival.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

/** From which streams the messages came that facts are about, each once. */
const sources = (facts: ReadonlyArray<Fact>) => new Set(facts.map(({ from }) => from?.stream))

describe.concurrent("a delivery whose worker routes its event and owns its endpoint", () => {
  scenario(
    "comes to no queue where it succeeds",
    () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver()
        const ids = ["hook", "a", "b", "c"]
        assert.strictEqual(new Set(ids.map((id) => partitionOf("acme", id, 2))).size, 2)
        for (const id of ids) yield* endpoint({ id, url: hook.url })
        const facts = yield* history
        yield* worker()
        for (let event = 1; event <= 20; event++) {
          yield* publish("a")
          // Nothing stands in line, however busy the machine is.
          yield* facts.count("delivered", ids.length * event)
        }
        const accounts = yield* consistentRounds
        assert.strictEqual(yield* everQueued, 0)
        assert.strictEqual(hook.requests.length, 80)
        for (const { ends } of accounts) {
          const { attempt, eventAt = 0, eventSeq = 0, from } = nth(ends, 0)
          assert.strictEqual(attempt, 1)
          assert.deepStrictEqual(from, { stream: names.events, seq: eventSeq, at: eventAt })
        }
        assert.deepInclude(yield* isClean, { begun: 80, delivered: 80, pending: 0, missing: 0 })
      }),
    countsQueued
  )

  scenario(
    "comes to its queue where it fails, with what is known of it",
    () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const failing = yield* receiver({ answer: byAttempt(503, 200) })
        yield* endpoint({ url: failing.url })
        const facts = yield* history
        yield* worker()
        const { seq } = yield* publish("a")
        yield* facts.count("delivered", 1)
        yield* consistentRounds
        assert.strictEqual(yield* everQueued, 1)
        assert.deepStrictEqual(attempts(failing), [1, 2])
        assertNoneTooEarly(failing, facts.of("attempt-failed"))
        const queue = names.deliveries(partitionOf("acme", "hook", 2))
        assert.deepStrictEqual(
          about(facts.facts, "hook").map(({ attempt, from, kind }) => [
            ...[kind, attempt],
            ...[from?.stream, from?.seq]
          ]),
          [
            ["attempt-failed", 1, names.events, seq],
            ["delivered", 2, queue, 1]
          ]
        )
        yield* noRecords
      }),
    countsQueued
  )

  scenario("waits there for its time, also through a stop and when it is handed out early", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const failing = yield* receiver({ answer: byAttempt(503, 200) })
      const soon = yield* receiver({ answer: byAttempt(503, 200) })
      yield* endpoint({ id: "later", url: failing.url, retry: patientRetry })
      yield* endpoint({
        id: "soon",
        url: soon.url,
        retry: quickRetry({ backoff: { kind: "fixed", delay: "4 seconds" } })
      })
      const facts = yield* history
      const first = yield* worker()
      yield* publish("a")
      yield* facts.count("attempt-failed", 2)
      yield* eventually(everQueued, (count) => count === 2)

      const { nextAttemptAt = 0 } = nth(about(facts.of("attempt-failed"), "later"), 0)
      const partition = partitionOf("acme", "later", 2)
      const subject = names.subjects.delivery(partition, "acme", "later")
      const waiting = nth(yield* queued(partition, subject), 0)
      const progress = JSON.parse(waiting.header.get("petrel-progress"))
      assert.deepInclude(progress, { attempts: 1, lastStatus: 503, nextAttemptAt })
      const queue = names.deliveries(partition)
      const record = readRecord({ stream: queue, seq: waiting.seq, at: waiting.time.getTime() })
      const decision = { _tag: "Nak", at: nextAttemptAt } as const
      assert.deepInclude(yield* eventually(record, (found) => found !== undefined), { decision })

      yield* first.stop
      yield* recreateConsumers
      yield* worker({ id: "w2" })
      yield* facts.count("delivered", 1)
      yield* eventually(
        ask("look", () => jsm.consumers.info(queue, names.deliverConsumer)),
        ({ delivered }) => delivered.stream_seq === waiting.seq
      )
      assert.deepInclude(yield* isClean, { begun: 2, delivered: 1, pending: 1 })
      assert.deepInclude(yield* record, { decision, progress })
      assert.deepStrictEqual(attempts(soon), [1, 2])
      assertNoneTooEarly(soon, about(facts.of("attempt-failed"), "soon"))
      assert.deepStrictEqual(attempts(failing), [1])
      assert.deepStrictEqual(
        facts.of("attempt-failed", "delivered").map(({ worker }) => worker),
        ["w1", "w1", "w2"]
      )
    })
  )

  scenario("counts against its endpoint's limits with what comes from the queue", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const capped = counting(20, ({ headers }) => (headers["petrel-attempt"] === "1" ? 503 : 200))
      const rated = counting(5)
      const cap = yield* receiver({ answer: capped.answer })
      const rate = yield* receiver({ answer: rated.answer })
      yield* endpoint({ id: "cap", url: cap.url, types: ["cap"], maxInFlight: 3 })
      yield* endpoint({
        id: "rate",
        url: rate.url,
        types: ["rate"],
        rate: { perSecond: 20, burst: 5 }
      })
      const facts = yield* history
      yield* worker()
      // What this one routes comes by the queues.
      yield* worker({ id: "routes", roles: ["router"] })
      yield* Effect.all([publishMany(80, "cap"), publishMany(65, "rate")], {
        concurrency: 2
      })
      yield* facts.count("delivered", 145)
      assert.strictEqual(capped.most(), 3)
      for (const id of ["cap", "rate"]) {
        const from = sources(about(facts.of("attempt-failed", "delivered"), id))
        assert.isTrue(from.has(names.events), id)
        assert.isAbove(from.size, 1, id)
      }
      const times = about(facts.of("delivered"), "rate")
        .map(({ at, durationMs = 0 }) => at - durationMs)
        .sort((a, b) => a - b)
      for (const [index, at] of times.entries()) {
        const within = times.slice(index).filter((later) => later - at < 1_000).length
        assert.isAtMost(within, 27)
      }
      yield* consistentRounds
      assert.strictEqual(cap.requests.length, 160)
      assert.strictEqual(rate.requests.length, 65)
    })
  )
})

describe.concurrent("a worker that stops while it attempts deliveries from their events", () => {
  scenario(
    "finishes those, and leaves what stands in line to the next one",
    () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const slow = yield* gate
        yield* endpoint({ url: slow.url, maxInFlight: 3 })
        const facts = yield* history
        const first = yield* worker({ stopWithin: 30_000 })
        yield* publishMany(30)
        yield* facts.planned(30)
        yield* slow.received(3)
        const before = yield* Clock.currentTimeMillis
        const stopping = yield* Effect.forkChild(first.stop, { startImmediately: true })
        // What has stood in line for a second may be in the backlog, with and without the queue before.
        const stored = Effect.zipWith(everQueued, backlogged, Math.max)
        yield* eventually(stored, (count) => count === 27)
        yield* slow.open
        yield* Fiber.join(stopping)
        assert.isBelow((yield* Clock.currentTimeMillis) - before, 15_000)
        assert.strictEqual(slow.requests.length, 3)
        assert.deepStrictEqual(sources(facts.of("delivered")), new Set([names.events]))
        yield* worker({ id: "w2" })
        yield* facts.count("delivered", 30)
        const accounts = yield* consistentRounds
        assert.strictEqual(slow.requests.length, 30)
        const byFirst = accounts.filter(({ ends }) => nth(ends, 0).worker === "w1")
        assert.lengthOf(byFirst, 3)
      }),
    { ackWait: 25_000 }
  )
})

describe.concurrent("a worker that does not own an event's endpoint", () => {
  scenario("stores its delivery in the queue, and the owner delivers it once", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      assert.strictEqual(partitionOf("acme", "hook", 2), 0)
      const facts = yield* history
      yield* worker({ id: "w1" })
      yield* worker({ id: "w2" })
      yield* eventually(owners(2), ([first, second]) => first === "w2" && second === "w1")
      const routers = () => new Set(facts.plans().map(({ worker }) => worker))
      let published = 0
      yield* eventually(
        Effect.tap(publish("a"), () => Effect.sync(() => published++)),
        () => routers().size === 2 && published >= 50
      )
      yield* facts.count("delivered", published)
      yield* consistentRounds
      assert.strictEqual(hook.requests.length, published)
      const routedBy = new Map(facts.plans().map(({ eventSeq, worker }) => [eventSeq, worker]))
      for (const { eventSeq, from, worker } of facts.of("delivered")) {
        assert.strictEqual(worker, "w2")
        const isOwn = routedBy.get(eventSeq) === "w2"
        // On a busy machine one waits in its endpoint's backlog instead.
        const ofOwn = [names.events, names.backlog(0)]
        assert.include(isOwn ? ofOwn : [names.deliveries(0)], from?.stream)
      }
    })
  )
})

describe.concurrent("an audit while deliveries are attempted from their events", () => {
  scenario(
    "counts them as pending",
    () =>
      Effect.gen(function* () {
        const slow = yield* gate
        yield* endpoint({ url: slow.url })
        const facts = yield* history
        yield* worker()
        yield* publishMany(3)
        yield* slow.received(3)
        // Told by itself after a while, so that the history knows of what takes long.
        yield* facts.planned(3)
        const pending = { begun: 3, delivered: 0, pending: 3, missing: 0, overdue: 0 }
        assert.deepInclude(yield* isClean, pending)
        assert.strictEqual(yield* everQueued, 0)
        yield* slow.open
        yield* facts.count("delivered", 3)
        yield* quiet
        assert.deepInclude(yield* isClean, { begun: 3, delivered: 3, pending: 0 })
      }),
    countsQueued
  )

  scenario("also when their worker was killed and nobody runs", (place) =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({ url: slow.url })
      const facts = yield* history
      const killed = yield* workerProcess(place, { id: "killed" })
      yield* killed.delivering
      yield* publish("a")
      yield* slow.received(1)
      yield* facts.planned(1)
      yield* killed.kill9
      assert.deepInclude(yield* isClean, { begun: 1, delivered: 0, pending: 1, missing: 0 })
      assert.strictEqual(yield* everQueued, 0)
      yield* slow.open
      yield* endLeases
      yield* worker({ id: "second" })
      yield* facts.count("delivered", 1)
      yield* consistentRounds
      assert.deepInclude(yield* isClean, { begun: 1, delivered: 1, pending: 0 })
      // Nobody has recorded what came of the first one.
      assert.deepStrictEqual(attempts(slow), [1, 1])
    })
  )
})

describe.concurrent("an event that another router is given while a delivery of it is attempted", () => {
  scenario("goes to its receiver once, though it comes to the queue", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const slow = yield* gate
      yield* endpoint({ url: slow.url })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* slow.received(1)
      yield* rival
      yield* eventually(deliveryCount, (count) => count >= 2)
      assert.strictEqual(slow.requests.length, 1)
      yield* slow.open
      yield* facts.count("delivered", 1)
      yield* consistentRounds
      assert.strictEqual(slow.requests.length, 1)
      assert.deepStrictEqual(sources(facts.of("delivered")), new Set([names.events]))
    })
  )

  scenario("goes there once, too, where the next owner finds it in the queue", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({ url: slow.url })
      const facts = yield* history
      const first = yield* worker({ stopWithin: 30_000 })
      yield* publish("a")
      yield* slow.received(1)
      yield* rival
      const stopping = yield* Effect.forkChild(first.stop, { startImmediately: true })
      yield* slow.open
      yield* Fiber.join(stopping)
      yield* facts.count("delivered", 1)
      yield* recreateConsumers
      yield* worker({ id: "w2" })
      yield* consistentRounds
      assert.strictEqual(slow.requests.length, 1)
    })
  )
})
