import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { deliveryHeaders, untried } from "../../src/domain/delivery.ts"
import { placeName } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { deliveryCount, recreateConsumers } from "../kit/consumers.ts"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  queued,
  quickRetry,
  secret,
  waitingMessages,
  worker,
  workersApart
} from "../kit/engine.ts"
import { about, assertNoneTooEarly, attempts } from "../kit/outcomes.ts"
import type { Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const verify = (key: string, { body, headers }: Received) =>
  new Webhook(key).verify(body.toString(), headers as Record<string, string>)

describe.concurrent("where too many wait already", () => {
  scenario("a retry waits as a schedule of the broker, and goes on where it was", () =>
    Effect.gen(function* () {
      const mends = yield* receiver({ answer: byAttempt(500, 502, 200) })
      const breaks = yield* receiver({ answer: byAttempt(500, 502, 400) })
      yield* endpoint({ id: "mends", url: mends.url })
      yield* endpoint({ id: "breaks", url: breaks.url })
      const facts = yield* history
      yield* workersApart({ maxWaiting: 0 })
      yield* publish("a", "[1]", {
        "Nats-Msg-Id": "acme-1",
        traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`
      })
      yield* facts.count("delivered", 1)
      yield* facts.count("dead-lettered", 1)
      for (const [id, made] of [
        ["mends", mends],
        ["breaks", breaks]
      ] as const) {
        const told = about(facts.facts, id)
        const failed = told.filter(({ wait }) => wait !== undefined)
        assert.deepStrictEqual(
          failed.map(({ attempt, status, wait }) => [attempt, status, wait]),
          [
            [1, 500, "schedule"],
            [2, 502, "schedule"]
          ]
        )
        assert.deepStrictEqual(attempts(made), [1, 2, 3])
        assertNoneTooEarly(made, failed)
        assert.strictEqual(new Set(told.map(({ deadline }) => deadline)).size, 1)
        assert.deepStrictEqual(new Set(told.map(({ round }) => round)), new Set(["0"]))
        assert.deepStrictEqual(new Set(told.map(({ event }) => event)), new Set(["acme-1"]))
        for (const request of made.requests) {
          assert.strictEqual(request.body.toString(), "[1]")
          assert.isDefined(request.headers.traceparent)
          verify(secret, request)
        }
      }
      assert.deepInclude(nth(facts.of("dead-lettered"), 0), { reason: "permanent", attempt: 3 })
      yield* eventually(waitingMessages, (count) => count === 0)
    })
  )

  scenario("the schedule tells what is known and where it came from", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const busy = yield* receiver({ answer: { status: 500 } })
      const retry = quickRetry({
        backoff: { kind: "fixed", delay: "30 minutes" },
        window: "1 hour"
      })
      yield* endpoint({ url: busy.url, retry })
      const facts = yield* history
      yield* workersApart({ maxWaiting: 0 })
      yield* publish("a")
      yield* facts.count("attempt-failed", 1)
      const { from, nextAttemptAt } = nth(facts.of("attempt-failed"), 0)
      const partition = partitionOf("acme", "hook", 2)
      const [schedule] = yield* eventually(
        queued(partition, names.subjects.schedule(partition, "*")),
        ({ length }) => length === 1
      )
      const header = (name: string) => schedule?.header.get(name) ?? ""
      assert.strictEqual(
        header("Nats-Schedule"),
        `@at ${new Date(nextAttemptAt ?? 0).toISOString()}`
      )
      assert.strictEqual(
        header("Nats-Schedule-Target"),
        names.subjects.delivery(partition, "acme", "hook")
      )
      assert.strictEqual(header("petrel-origin"), from && placeName(from))
      assert.deepInclude(JSON.parse(header("petrel-progress")), {
        attempts: 1,
        lastStatus: 500,
        nextAttemptAt
      })
      yield* eventually(waitingMessages, (count) => count === 1)
    })
  )

  scenario("those within the limit wait in place, and only the others move", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver({ answer: { status: 500 } })
      const retry = quickRetry({
        backoff: { kind: "fixed", delay: "30 minutes" },
        window: "1 hour"
      })
      yield* endpoint({ url, retry, maxInFlight: 1 })
      const facts = yield* history
      yield* workersApart({ maxWaiting: 2 })
      yield* Effect.forEach([1, 2, 3, 4], () => publish("a"))
      yield* facts.count("attempt-failed", 4)
      assert.deepStrictEqual(
        facts.of("attempt-failed").map(({ wait }) => wait),
        ["nak", "nak", "schedule", "schedule"]
      )
    })
  )
})

describe.concurrent("a delivery that the broker hands out too early", () => {
  const retry = quickRetry({ backoff: { kind: "fixed", delay: "4 seconds" } })

  scenario("goes back for the rest of its time, without an attempt", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: byAttempt(500, 200) })
      yield* endpoint({ url: busy.url, retry })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("attempt-failed", 1)
      yield* recreateConsumers
      yield* eventually(deliveryCount, (count) => count > 0)
      const failed = facts.of("attempt-failed")
      assert.isBelow(yield* Clock.currentTimeMillis, nth(failed, 0).nextAttemptAt ?? 0)
      yield* facts.count("delivered", 1)
      assert.deepStrictEqual(attempts(busy), [1, 2])
      assertNoneTooEarly(busy, failed)
    })
  )

  scenario("also when its worker has only just come and knows nothing of it", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: byAttempt(500, 200) })
      yield* endpoint({ url: busy.url, retry })
      const facts = yield* history
      const first = yield* worker()
      yield* publish("a")
      yield* facts.count("attempt-failed", 1)
      yield* first.stop
      yield* recreateConsumers
      yield* worker({ id: "w2" })
      yield* eventually(deliveryCount, (count) => count > 0)
      const failed = facts.of("attempt-failed")
      assert.isBelow(yield* Clock.currentTimeMillis, nth(failed, 0).nextAttemptAt ?? 0)
      yield* facts.count("delivered", 1)
      assert.deepStrictEqual(attempts(busy), [1, 2])
      assertNoneTooEarly(busy, failed)
      assert.deepStrictEqual(
        facts.of("attempt-failed", "delivered").map(({ worker }) => worker),
        ["w1", "w2"]
      )
    })
  )

  scenario("also when it is a schedule that fired before its time", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      const hook = yield* receiver()
      const { endpoint: stored, revision } = yield* endpoint({ url: hook.url })
      const facts = yield* history
      const { delivering } = yield* worker()
      yield* delivering
      const now = yield* Clock.currentTimeMillis
      const nextAttemptAt = now + 600
      const delivery = {
        tenant: "acme",
        endpoint: "hook",
        event: "e1",
        eventSeq: 1,
        eventAt: now,
        type: "a",
        round: "0",
        began: now,
        deadline: now + 60_000,
        generation: stored.generation,
        revision,
        content: {},
        progress: { ...untried, attempts: 1, nextAttemptAt }
      }
      yield* publisher.publish(
        names.subjects.delivery(partitionOf("acme", "hook", 2), "acme", "hook"),
        "{}",
        deliveryHeaders(delivery, "early.hook")
      )
      yield* facts.count("delivered", 1)
      assert.deepStrictEqual(attempts(hook), [2])
      assert.isAtLeast(nth(hook.requests, 0).at, nextAttemptAt - 25)
    })
  )
})
