import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { makeBegun, makeLook } from "../../src/delivery/routing/begun.ts"
import type { StoredPart } from "../../src/delivery/routing/plan.ts"
import type { Delivery } from "../../src/domain/delivery.ts"
import { deliveryHeaders, firstRound, untried } from "../../src/domain/delivery.ts"
import type { Fact, Plan } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { Facts } from "../../src/history/facts.ts"
import { publish } from "../engine.ts"
import { onServer } from "../scenario.ts"

const { scenario } = onServer()

const planned = { id: "hook", generation: "g", revision: 1, deadline: Date.now() + 60_000 }
const plan: Plan = { part: 0, last: true, endpoints: [planned], skipped: [] }
const partition = partitionOf("acme", "hook", 2)

/** Stores the plan of the first event and gives the part as the history holds it. */
const storePlan = Effect.gen(function* () {
  const facts = yield* Facts
  const fact: Fact = {
    v: 1,
    kind: "routed",
    at: 0,
    tenant: "acme",
    endpoint: "_",
    eventSeq: 1,
    plan
  }
  const { seq } = yield* facts.append(fact, "routed.1.0")
  return { plan, seq } satisfies StoredPart
})

/** Stores the delivery of the first event, in some round. */
const storeDelivery = (round = firstRound) =>
  Effect.gen(function* () {
    const { names, publisher } = yield* Broker
    const delivery: Delivery = {
      tenant: "acme",
      endpoint: "hook",
      event: "evt_1",
      eventSeq: 1,
      type: "invoice.paid",
      round,
      began: 0,
      deadline: planned.deadline,
      generation: "g",
      revision: 1,
      content: {},
      progress: untried
    }
    const subject = names.subjects.delivery(partition, "acme", "hook")
    return yield* publisher.publish(subject, "{}", deliveryHeaders(delivery, `1.${round}.hook`))
  })

/** Tells that the delivery of the first event has arrived, in some round. */
const tellDelivered = (round = firstRound) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const fact: Fact = {
      v: 1,
      kind: "delivered",
      at: 0,
      tenant: "acme",
      endpoint: "hook",
      eventSeq: 1,
      round,
      attempt: 1
    }
    yield* facts.append(fact, `delivered.${round}`)
  })

const look = Effect.fnUntraced(function* (stored: StoredPart) {
  const find = yield* makeLook(2)
  return (yield* find({ at: 0, seq: 1, tenant: "acme" }, planned, stored)).isSent
})

describe.concurrent("a delivery that a plan led to", () => {
  scenario("is found where it waits, and where it is told of", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* Broker
      const stored = yield* storePlan
      assert.isFalse(yield* look(stored))
      const { seq } = yield* storeDelivery()
      assert.isTrue(yield* look(stored))
      yield* ask("remove", () => jsm.streams.deleteMessage(names.deliveries(partition), seq))
      assert.isFalse(yield* look(stored))
      yield* tellDelivered()
      assert.isTrue(yield* look(stored))
    })
  )

  scenario("is found though it leaves its stream while it is looked for", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const { ask, jsm, names } = broker
      const stored = yield* storePlan
      const { seq } = yield* storeDelivery()
      const arrive = Effect.andThen(
        tellDelivered(),
        ask("remove", () => jsm.streams.deleteMessage(names.deliveries(partition), seq))
      )
      let told = false
      let arrived = false
      /** Lets it arrive between the looks at its stream and at the history, whichever is first. */
      const meddling: Broker["Service"]["ask"] = (operation, run) =>
        Effect.gen(function* () {
          const isQueue = operation.includes(names.subjects.delivery(partition, "acme", "hook"))
          if (!isQueue) told = true
          if (isQueue && told) yield* Effect.orDie(arrive)
          const answer = yield* ask(operation, run)
          if (isQueue && !told) yield* Effect.orDie(arrive)
          arrived ||= isQueue
          return answer
        }).pipe(Effect.provideContext(context))
      const context = yield* Effect.context<Broker | Facts>()
      assert.isTrue(
        yield* Effect.provideService(look(stored), Broker, Broker.of({ ...broker, ask: meddling }))
      )
      assert.isTrue(arrived)
    })
  )

  scenario("is not one of another round", () =>
    Effect.gen(function* () {
      const stored = yield* storePlan
      yield* storeDelivery("d7")
      yield* tellDelivered("d7")
      assert.isFalse(yield* look(stored))
    })
  )
})

describe.concurrent("an event that somebody has begun to route", () => {
  scenario("is known with its plan and with those who have it, until it is finished", () =>
    Effect.gen(function* () {
      const { ask, js, names } = yield* Broker
      yield* publish("invoice.paid")
      yield* publish("invoice.paid")
      const stored = yield* storePlan
      yield* storeDelivery()
      const begun = yield* makeBegun(2, 60_000)
      const known = yield* begun.of(1, false)
      assert.deepStrictEqual(known?.parts, [stored])
      assert.deepStrictEqual([...(known?.sent ?? [])], ["hook"])
      assert.isUndefined(yield* begun.of(2, false))
      const router = yield* ask("router", () =>
        js.consumers.get(names.events, names.routerConsumer)
      )
      yield* ask("finish", async () => (await router.next())?.ackAck())
      begun.forget()
      assert.isUndefined(yield* begun.of(1, false))
    })
  )

  scenario("is looked for again when it comes back after a while, and not before", () =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      const patient = yield* makeBegun(2, 60_000)
      const impatient = yield* makeBegun(2, 0)
      yield* patient.ready
      yield* impatient.ready
      yield* storePlan
      assert.isUndefined(yield* patient.of(1, true))
      assert.isUndefined(yield* impatient.of(1, false))
      assert.isDefined(yield* impatient.of(1, true))
    })
  )
})
