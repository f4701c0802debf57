import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { closedBooks, isClean } from "../kit/books.ts"
import {
  closedCircuit,
  deadLetters,
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  publishTo,
  queued,
  quickRetry,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

/** Lets the stream of dead letters take so many bytes. */
const resize = Effect.fnUntraced(function* (max_bytes: number) {
  const { ask, jsm, names } = yield* natsClients
  yield* ask("resize the dead letters", () => jsm.streams.update(names.dead, { max_bytes }))
})

/** How many deliveries have ended and wait for room among the dead letters. */
const ended = Effect.gen(function* () {
  const { names } = yield* Broker
  const found = yield* Effect.forEach([0, 1], (partition) =>
    queued(partition, names.subjects.schedule(partition, "ended.>"))
  )
  return found.flat().length
})

/** Messages that the consumers of both queues have handed out and that are not acknowledged. */
const unacknowledged = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const infos = yield* Effect.forEach([0, 1], (index) =>
    ask("look", () => jsm.consumers.info(names.deliveries(index), names.deliverConsumer))
  )
  return infos.reduce((sum, info) => sum + info.num_ack_pending + info.num_pending, 0)
})

/** An endpoint that fails for good is disabled else. */
const circuit = { ...closedCircuit, permanentFailures: 10_000 }
const count = 300
const body = 2_048

/** An endpoint of acme that takes nothing for good, and one that does not, in the same partition. */
const endpoints = Effect.gen(function* () {
  const ids = ["a", "b", "c", "d", "e", "f"]
  const good = ids.find((id) => partitionOf("acme", id, 2) === partitionOf("acme", "bad", 2)) ?? ""
  const bad = yield* receiver({ answer: { status: 400 } })
  const well = yield* receiver({ answer: byAttempt(503, 200) })
  yield* endpoint({ id: "bad", url: bad.url, types: ["bad"], circuit })
  yield* endpoint({ id: good, url: well.url, types: ["good"] })
  return { bad, well }
})

describe.concurrent("while there is no room among the dead letters", () => {
  scenario("what has ended takes up no place, and all of it goes when there is room", () =>
    Effect.gen(function* () {
      const { bad, well } = yield* endpoints
      const facts = yield* history
      yield* resize(20_000)
      yield* worker()
      yield* publishMany(count, "bad", body)
      yield* bad.received(count)
      yield* eventually(
        Effect.all([ended, unacknowledged]),
        ([waiting, held]) => waiting + facts.of("dead-lettered").length === count && held === 0
      )
      assert.isAbove(yield* ended, count - 20)
      // A retry beside them is made as always.
      yield* publish("good")
      yield* well.received(2)
      yield* facts.count("delivered", 1)
      yield* resize(64 * 1024 * 1024)
      yield* facts.count("dead-lettered", count)
      assert.lengthOf(yield* deadLetters, count)
      assert.lengthOf(bad.requests, count)
      yield* closedBooks
      assert.deepInclude(yield* isClean, { deadLettered: count, delivered: 1, missing: 0 })
    })
  )

  scenario("what has ended goes on waiting when its worker dies, and ends once", (place) =>
    Effect.gen(function* () {
      const { bad } = yield* endpoints
      const facts = yield* history
      yield* resize(20_000)
      const first = yield* workerProcess(place, { leaseTtl: 2_000 })
      yield* publishMany(count, "bad", body)
      yield* bad.received(count)
      yield* eventually(ended, (waiting) => waiting > count / 2)
      yield* first.kill9
      yield* worker({ leaseTtl: 2_000 })
      yield* eventually(ended, (waiting) => waiting + facts.of("dead-lettered").length === count)
      yield* resize(64 * 1024 * 1024)
      yield* facts.count("dead-lettered", count)
      yield* closedBooks
      assert.lengthOf(yield* deadLetters, count)
      assert.deepInclude(yield* isClean, { deadLettered: count, missing: 0 })
    })
  )

  scenario(
    "what was never attempted in its time waits like the rest",
    () =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver()
        yield* endpoint({ url, retry: quickRetry({ window: "1 millis" }) })
        const facts = yield* history
        yield* resize(1)
        yield* worker({ id: "routes", roles: ["router"] })
        yield* publishMany(10, "invoice.paid", body)
        yield* eventually(waitingMessages, (waiting) => waiting === 10)
        yield* worker({ roles: ["deliver"] })
        yield* eventually(
          Effect.all([ended, unacknowledged]),
          ([waiting, held]) => waiting === 10 && held === 0
        )
        yield* resize(64 * 1024 * 1024)
        yield* facts.count("dead-lettered", 10)
        yield* closedBooks
        assert.lengthOf(requests, 0)
        assert.deepInclude(yield* isClean, { deadLettered: 10, missing: 0 })
      }),
    // It comes back before its end would be forgotten.
    { ackWait: 10_000 }
  )

  scenario("one tenant leaves the others their part", () =>
    Effect.gen(function* () {
      const bad = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "bad", url: bad.url, types: ["bad"], circuit })
      yield* endpoint({ tenant: "globex", id: "bad", url: bad.url, types: ["bad"], circuit })
      const facts = yield* history
      yield* resize(200_000)
      yield* worker()
      yield* publishTo("globex.bad", "x".repeat(body))
      yield* facts.count("dead-lettered", 1)
      yield* publishMany(count, "bad", body)
      yield* bad.received(count + 1)
      yield* eventually(
        Effect.all([ended, unacknowledged]),
        ([waiting, held]) => waiting + facts.of("dead-lettered").length === count + 1 && held === 0
      )
      const had = facts.of("dead-lettered").length
      // Far from full, though so many wait.
      yield* publishTo("globex.bad", "x".repeat(body))
      yield* facts.count("dead-lettered", had + 1)
      assert.lengthOf(
        facts.of("dead-lettered").filter(({ tenant }) => tenant === "globex"),
        2
      )
      yield* resize(64 * 1024 * 1024)
      yield* facts.count("dead-lettered", count + 2)
      assert.deepInclude(yield* isClean, { deadLettered: count + 2, missing: 0 })
    })
  )
})
