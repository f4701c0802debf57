import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { countWaiting } from "../../src/delivery/introspection/waiting.ts"
import { entryCount } from "../../src/domain/backlog-message.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { consistentRounds, noRecords } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { disable } from "../kit/live-endpoints.ts"
import { attempts, reasons } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

describe.concurrent("an endpoint that takes less than comes", () => {
  scenario("has the rest in its backlog, and gets all of it once, never above its cap", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      const quick = yield* receiver()
      yield* endpoint({ id: "slow", url: slow.url, maxInFlight: 3, types: ["slow"] })
      yield* endpoint({ id: "quick", url: quick.url, types: ["quick"] })
      const facts = yield* history
      yield* worker()
      yield* publishMany(400, "slow")
      yield* eventually(backlogged, (count) => count >= 380)
      // Three are attempted, from the queue or from their events.
      yield* eventually(
        countWaiting("acme", "slow"),
        ({ backlog, queue }) => backlog >= 380 && queue + backlog >= 397
      )
      yield* publishMany(100, "quick")
      yield* quick.received(100)
      assert.strictEqual(slow.requests.length, 3)
      yield* slow.open
      yield* facts.count("delivered", 500)
      assert.strictEqual(slow.now.most, 3)
      assert.strictEqual(slow.requests.length, 400)
      yield* consistentRounds
      yield* eventually(backlogged, (count) => count === 0)
      yield* noRecords
    })
  )

  scenario("gets the rest from the next worker, and nothing twice", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({ url: slow.url, maxInFlight: 3 })
      const facts = yield* history
      const first = yield* worker()
      yield* publishMany(200)
      yield* eventually(backlogged, (count) => count >= 180)
      const stopping = yield* Effect.forkScoped(first.stop)
      yield* slow.open
      yield* Fiber.join(stopping)
      assert.isBelow(slow.requests.length, 200)
      yield* worker({ id: "w2" })
      yield* facts.count("delivered", 200)
      yield* consistentRounds
      assert.strictEqual(slow.requests.length, 200)
      assert.strictEqual(slow.now.most, 3)
    })
  )
})

/** A worker stores so many deliveries for a paused endpoint, and dies. Returns their message. */
const storedByFormer = Effect.fnUntraced(function* (url: string, count: number) {
  const { ask, jsm, names } = yield* natsClients
  yield* endpoint({ url, paused: { at: 1, by: "test" } })
  const stream = names.backlog(partitionOf("acme", "hook", 2))
  const message = yield* Effect.scoped(
    Effect.gen(function* () {
      yield* worker({ id: "former" })
      yield* publishMany(count)
      const last = ask("read", () => jsm.streams.getMessage(stream, { last_by_subj: ">" }))
      return yield* eventually(
        last,
        (last) =>
          last !== null && entryCount((name) => last.header.get(name) || undefined) === count
      )
    })
  )
  assert(message !== null)
  const { data, header, seq, subject } = message
  header.delete("Nats-Msg-Id")
  return { data, header, seq, stream, subject }
})

const resume = resumeEndpoint({ tenant: "acme", endpoint: "hook" }, "test")

describe.concurrent("a backlog that a former owner fills late", () => {
  scenario("is found by the one that owns its partition now", () =>
    Effect.gen(function* () {
      const { ask, connection, jsm } = yield* natsClients
      const hook = yield* receiver()
      const { data, header, stream, subject } = yield* storedByFormer(hook.url, 1)
      yield* ask("take it away", () => jsm.streams.purge(stream))
      yield* resume
      const facts = yield* history
      const present = yield* worker({ findEvery: 200 })
      yield* present.delivering
      connection.publish(subject, data, { headers: header })
      yield* facts.count("delivered", 1)
      assert.strictEqual(hook.requests.length, 1)
      yield* consistentRounds
    })
  )

  scenario("is delivered by the owner after that one", () =>
    Effect.gen(function* () {
      const { ask, js, jsm } = yield* natsClients
      const hook = yield* receiver()
      const { data, header, stream, subject } = yield* storedByFormer(hook.url, 1)
      yield* ask("take it away", () => jsm.streams.purge(stream))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* worker({ id: "between" })
          yield* ask("store late", () => js.publish(subject, data, { headers: header }))
        })
      )
      const facts = yield* history
      yield* worker()
      yield* resume
      yield* facts.count("delivered", 1)
      assert.strictEqual(hook.requests.length, 1)
      yield* consistentRounds
    })
  )
})

describe.concurrent("a backlog that is full", () => {
  scenario("takes no more: what comes then is a dead letter, and what is there arrives", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({ url: slow.url, maxInFlight: 2 })
      const facts = yield* history
      yield* worker({ maxBacklog: 50 })
      yield* publishMany(300)
      yield* facts.count("dead-lettered", 100)
      assert.isAtMost(yield* backlogged, 180)
      yield* slow.open
      yield* consistentRounds
      const ends = facts.of("dead-lettered")
      assert.isTrue(ends.every(({ reason }) => reason === "backlog-full"))
      assert.strictEqual(slow.requests.length, 300 - ends.length)
    })
  )
})

describe.concurrent("a delivery from the backlog", () => {
  scenario("that fails waits elsewhere, and does not hold up those behind it", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({
        url: slow.url,
        maxInFlight: 1,
        retry: quickRetry({ backoff: { kind: "fixed", delay: "300 millis" } })
      })
      const facts = yield* history
      yield* worker()
      yield* publishMany(120)
      yield* eventually(backlogged, (count) => count >= 110)
      slow.answer(({ body, headers }) => {
        const isLate = Number(body.toString()) >= 100
        return { status: isLate && Number(headers["petrel-attempt"]) < 3 ? 503 : 200 }
      })
      yield* slow.open
      yield* facts.count("delivered", 120)
      assert.strictEqual(facts.of("attempt-failed").length, 40)
      const failed = facts
        .of("attempt-failed")
        .filter(({ from }) => from?.stream.includes("BACKLOG"))
      assert.isAbove(failed.length, 0)
      assert.isTrue(failed.every(({ wait }) => wait === "schedule"))
      yield* consistentRounds
      yield* noRecords
      assert.strictEqual(Math.max(...attempts(slow)), 3)
    })
  )

  scenario("ends as a dead letter when its endpoint is disabled meanwhile", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({ url: slow.url, maxInFlight: 2 })
      const facts = yield* history
      yield* worker()
      yield* publishMany(100)
      yield* eventually(backlogged, (count) => count >= 90)
      yield* disable("hook")
      yield* slow.open
      yield* facts.count("dead-lettered", 90)
      yield* consistentRounds
      const ends = facts.of("dead-lettered")
      assert.isTrue(ends.every(({ reason }) => reason === "endpoint-disabled"))
      assert.strictEqual(ends.length + facts.of("delivered").length, 100)
      assert.isAtMost(slow.requests.length, 4)
    })
  )

  scenario("whose time is over ends without an attempt", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({
        url: slow.url,
        maxInFlight: 1,
        retry: quickRetry({ window: "5 seconds" })
      })
      const facts = yield* history
      yield* worker()
      yield* publishMany(80)
      yield* eventually(backlogged, (count) => count >= 75)
      const deadline = Math.max(
        ...facts
          .plans()
          .flatMap(({ plan }) => plan?.endpoints ?? [])
          .map((planned) => planned.deadline)
      )
      yield* eventually(
        Effect.sync(() => Date.now()),
        (now) => now > deadline
      )
      yield* slow.open
      yield* facts.until(() => facts.of("delivered", "dead-lettered").length === 80)
      assert.deepStrictEqual(
        new Set(
          reasons(facts.of("dead-lettered")).map(
            ([kind, attempt, reason]) => `${kind} ${attempt} ${reason}`
          )
        ),
        new Set(["dead-lettered 0 deadline"])
      )
      yield* consistentRounds
    })
  )
})
