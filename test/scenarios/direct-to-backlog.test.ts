import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { EventBodies } from "../../src/delivery/bodies/event-bodies.ts"
import { originStreams, referencesIn } from "../../src/domain/backlog-message.ts"
import { deliveryHeaders } from "../../src/domain/delivery.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { consistentRounds, isClean, noRecords, quiet } from "../kit/consistency.ts"
import { everQueued, handOutEventsAgain } from "../kit/consumers.ts"
import type { Installation } from "../kit/engine.ts"
import {
  backlogged,
  countsQueued,
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { attempts } from "../kit/outcomes.ts"
import { lease } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

const hook = { tenant: "acme", endpoint: "hook" }
const paused = { at: 1, by: "test" }
const resume = resumeEndpoint(hook, "test")

/** Puts what waits in the backlog into the queue as well, as a router does that knows nothing of it. */
const queueToo = Effect.gen(function* () {
  const { ask, jsm, names, publisher } = yield* natsClients
  const bodies = yield* EventBodies.make()
  const partition = partitionOf("acme", "hook", 2)
  const message = yield* ask("read", () =>
    jsm.streams.getMessage(names.backlog(partition), { seq: 1 })
  )
  assert(message !== null)
  const get = (name: string) => message.header.get(name) || undefined
  const [reference] = referencesIn(message.subject, get, originStreams(names, partition)) ?? []
  assert(reference !== undefined)
  const [contents] = yield* bodies.read([reference], [])
  assert(contents !== undefined && contents !== "gone")
  const { bytes: _, origin: __, ...routed } = reference
  const { body, ...event } = contents
  const subject = names.subjects.delivery(partition, "acme", "hook")
  yield* publisher.publish(subject, body, deliveryHeaders({ ...routed, ...event }, "by another"))
})

describe.concurrent("an endpoint that takes nothing, and whose owner routes its events", () => {
  scenario(
    "gets them from its backlog, and none comes to the queue",
    () =>
      Effect.gen(function* () {
        const { url, requests } = yield* receiver()
        yield* endpoint({ url, paused })
        const facts = yield* history
        yield* worker()
        yield* publishMany(30)
        yield* eventually(backlogged, (count) => count === 30)
        assert.strictEqual(yield* everQueued, 0)
        yield* isClean
        yield* resume
        yield* facts.count("delivered", 30)
        yield* consistentRounds
        assert.strictEqual(requests.length, 30)
        assert.strictEqual(yield* everQueued, 0)
        yield* isClean
      }),
    countsQueued
  )

  scenario(
    "stands alone: of the same event's endpoints the others have it at once",
    () =>
      Effect.gen(function* () {
        const held = yield* receiver()
        const well = yield* receiver()
        yield* endpoint({ url: held.url, paused })
        yield* endpoint({ id: "well", url: well.url })
        const facts = yield* history
        yield* worker()
        for (let event = 1; event <= 5; event++) {
          yield* publish("a")
          yield* facts.count("delivered", event)
        }
        yield* eventually(backlogged, (count) => count === 5)
        assert.strictEqual(well.requests.length, 5)
        assert.strictEqual(yield* everQueued, 0)
        yield* resume
        yield* consistentRounds
        assert.strictEqual(held.requests.length, 5)
      }),
    countsQueued
  )

  scenario("gets those again that fail when they come from there", () =>
    Effect.gen(function* () {
      const failing = yield* receiver({ answer: byAttempt(503, 503, 200) })
      yield* endpoint({ url: failing.url, paused, retry: quickRetry() })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* eventually(backlogged, (count) => count === 1)
      yield* resume
      yield* facts.count("delivered", 1)
      yield* consistentRounds
      yield* noRecords
      assert.deepStrictEqual(attempts(failing), [1, 2, 3])
      yield* isClean
    })
  )
})

describe.concurrent("a delivery that went from its event into the backlog", () => {
  for (const [who, changes] of [
    ["the same owner", false],
    ["the next owner", true]
  ] as const)
    scenario(
      `is not made once more by a copy that comes to the queue of ${who}`,
      () =>
        Effect.gen(function* () {
          const { ask, jsm, names } = yield* natsClients
          const held = yield* receiver()
          yield* endpoint({ url: held.url, paused })
          const facts = yield* history
          const first = yield* worker()
          yield* publish("a")
          yield* eventually(backlogged, (count) => count === 1)
          if (changes) {
            yield* first.stop
            yield* Effect.flatMap(worker({ id: "next" }), ({ delivering }) => delivering)
          }
          yield* queueToo
          const queue = names.deliveries(partitionOf("acme", "hook", 2))
          yield* eventually(
            ask("look", () => jsm.streams.info(queue)),
            ({ state }) => state.last_seq === 1 && state.messages === 0
          )
          yield* resume
          yield* facts.count("delivered", 1)
          yield* quiet
          yield* consistentRounds
          assert.deepStrictEqual(attempts(held), [1])
        }),
      countsQueued
    )

  scenario("is there once though its router dies before it says so", (place: Installation) =>
    Effect.gen(function* () {
      const held = yield* receiver()
      yield* endpoint({ url: held.url, paused })
      yield* crashAt(place, "moved", 1, {}, publish("a"))
      assert.strictEqual(yield* backlogged, 1)
      const second = yield* worker({ id: "second" })
      yield* second.delivering
      yield* handOutEventsAgain
      yield* quietEvents
      assert.strictEqual(yield* backlogged, 1)
      assert.strictEqual(yield* everQueued, 0)
      yield* resume
      yield* quiet
      yield* consistentRounds
      assert.deepStrictEqual(attempts(held), [1])
    })
  )

  scenario(
    "is there once though its owner was cut off, and another has put it there",
    (place, server) =>
      Effect.gen(function* () {
        const leaseTtl = 2_000
        const held = yield* receiver()
        yield* endpoint({ url: held.url, paused })
        const proxy = yield* tcpProxy(server.port)
        let isCut = false
        const cuts = Effect.provideService(Failpoint, (step: FailpointName) => {
          if (step !== "plan-stored" || isCut) return
          isCut = true
          Effect.runSync(proxy.cut)
        })
        const url = `nats://127.0.0.1:${proxy.port}`
        const ownBroker = yield* Layer.build(
          Layer.fresh(connectTo({ ...place, url, publishTimeoutMs: 200 }))
        )
        const first = yield* Effect.provideContext(cuts(worker({ leaseTtl })), ownBroker)
        yield* publish("a")
        yield* worker({ id: "w2", leaseTtl })
        yield* eventually(backlogged, (count) => count === 1)
        assert.isTrue(isCut)
        assert.strictEqual((yield* lease(0)).worker, "w2")
        yield* proxy.join
        yield* eventually(lease(1), (owner) => owner.worker === "w1")
        // It is through then with what it had begun.
        yield* first.stop
        assert.strictEqual(yield* backlogged, 1)
        yield* resume
        yield* quiet
        yield* consistentRounds
        assert.deepStrictEqual(attempts(held), [1])
      })
  )
})

/** Waits until all events are routed. */
const quietEvents = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  yield* eventually(
    ask("look at the router", () => jsm.consumers.info(names.events, names.routerConsumer)),
    ({ ack_floor }) => ack_floor.stream_seq === 1
  )
})

describe.concurrent("an endpoint whose circuit is open", () => {
  scenario(
    "has what comes in its backlog until it is well, and none in its queue",
    () =>
      Effect.gen(function* () {
        const failing = yield* receiver({ answer: () => ({ status: 503 }) })
        yield* endpoint({
          url: failing.url,
          circuit: { failures: 1, rate: "none", coolDown: "6 seconds" },
          retry: quickRetry()
        })
        const facts = yield* history
        yield* worker()
        yield* publish("a")
        yield* facts.count("circuit-opened", 1)
        // Its first one, which failed, by the queue.
        yield* eventually(backlogged, (count) => count === 1)
        yield* publishMany(20)
        yield* eventually(backlogged, (count) => count === 21)
        assert.strictEqual(yield* everQueued, 1)
        failing.answer(() => ({ status: 200 }))
        yield* facts.count("delivered", 21)
        yield* consistentRounds
        yield* isClean
      }),
    countsQueued
  )

  scenario("has dead letters instead, where it asks for that", () =>
    Effect.gen(function* () {
      const failing = yield* receiver({ answer: () => ({ status: 503 }) })
      yield* endpoint({
        url: failing.url,
        circuit: { failures: 1, rate: "none", coolDown: "1 minute", onOpen: "dead-letter" },
        retry: quickRetry({ maxAttempts: 1 })
      })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("circuit-opened", 1)
      yield* publishMany(5)
      yield* facts.count("dead-lettered", 6)
      assert.strictEqual(yield* backlogged, 0)
      assert.strictEqual(
        facts.of("dead-lettered").filter((f) => f.reason === "circuit-open").length,
        5
      )
    })
  )
})

describe.concurrent("an endpoint that is paused as a worker stops", () => {
  scenario("loses nothing of what comes meanwhile", () =>
    Effect.gen(function* () {
      const { url, requests } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const first = yield* worker()
      yield* publishMany(20)
      yield* pauseEndpoint(hook, undefined, "test")
      yield* publishMany(40, "during")
      yield* Effect.all([first.stop, publishMany(40, "after")], { concurrency: 2 })
      yield* worker({ id: "next" })
      yield* resume
      yield* facts.count("delivered", 100)
      yield* consistentRounds
      assert.strictEqual(requests.length, 100)
      yield* isClean
    })
  )
})
