import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { Delivery } from "../../src/domain/delivery.ts"
import { deliveryHeaders, firstRound, untried } from "../../src/domain/delivery.ts"
import type { Fact, Plan } from "../../src/domain/fact.ts"
import { successKinds } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { Facts } from "../../src/history/facts.ts"
import { newestPlanned, planId } from "../../src/history/plans.ts"
import { makeLocator, makePartialRoutings } from "../../src/routing/partial-routing.ts"
import type { StoredPart } from "../../src/routing/plan.ts"
import { acknowledgeEvents, eventually, publish } from "../kit/engine.ts"
import { tellMissing } from "../kit/missing-fact.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const planned = { id: "hook", generation: "g", revision: 1, deadline: Date.now() + 60_000 }
const plan: Plan = { part: 0, last: true, endpoints: [planned], skipped: [] }
const partition = partitionOf("acme", "hook", 2)

/** The first event, as what is written by hand says of it. */
const event = { eventSeq: 1, eventAt: Date.UTC(2026, 2, 1) }

/** Stores the plan of the first event and gives the part as the history holds it. */
const storePlan = Effect.gen(function* () {
  const facts = yield* Facts
  const fact: Fact = {
    v: 1,
    kind: "routed",
    at: 0,
    tenant: "acme",
    endpoint: "_",
    ...event,
    plan
  }
  const { seq } = yield* facts.append(fact, planId(event, 0))
  return { plan, seq } satisfies StoredPart
})

/** Stores the delivery of the first event, in some round. */
const storeDelivery = (round = firstRound) =>
  Effect.gen(function* () {
    const { names, publisher } = yield* natsClients
    const delivery: Delivery = {
      tenant: "acme",
      endpoint: "hook",
      event: "evt_1",
      ...event,
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
const tellDelivered = (round = firstRound, kind: "delivered" | "delivered-late" = "delivered") =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const fact: Fact = {
      v: 1,
      kind,
      at: 0,
      tenant: "acme",
      endpoint: "hook",
      ...event,
      round,
      attempt: 1
    }
    yield* facts.append(fact, `delivered.${round}`)
  })

/** Tells of an attempt at the delivery of the first event that did not succeed. */
const tellFailed = (stream: string, changes: Partial<Fact> = {}) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const fact: Fact = {
      v: 1,
      kind: "attempt-failed",
      at: 1_000,
      tenant: "acme",
      endpoint: "hook",
      ...event,
      round: firstRound,
      attempt: 1,
      from: { stream, seq: 1, at: event.eventAt },
      ...changes
    }
    yield* facts.append(fact, `failed.${stream}.${fact.round}`)
  })

/** Lets the delivery of the first event wait as a schedule of the broker. */
const storeSchedule = (target: string) =>
  Effect.gen(function* () {
    const { names, publisher } = yield* natsClients
    const at = new Date(Date.now() + 3_600_000).toISOString()
    yield* publisher.publish(names.subjects.schedule(partition, "once"), "{}", [
      ["petrel-event-seq", "1"],
      ["petrel-event-at", String(event.eventAt)],
      ["petrel-round", firstRound],
      ["Nats-Schedule", `@at ${at}`],
      ["Nats-Schedule-Target", names.subjects.delivery(partition, "acme", target)]
    ])
  })

/** @param at when the event was stored, ms since the epoch. */
const lookAt = Effect.fnUntraced(function* (stored: StoredPart, at = event.eventAt) {
  const find = yield* makeLocator(2)
  return yield* find({ at, seq: 1, tenant: "acme" }, planned, stored)
})

const look = (stored: StoredPart) => Effect.map(lookAt(stored), ({ isSent }) => isSent)

describe.concurrent("a delivery that a plan led to", () => {
  for (const kind of successKinds)
    scenario(`is found where it waits, and where it is told of as ${kind}`, () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const stored = yield* storePlan
        assert.isFalse(yield* look(stored))
        const { seq } = yield* storeDelivery()
        assert.isTrue(yield* look(stored))
        yield* ask("remove", () => jsm.streams.deleteMessage(names.deliveries(partition), seq))
        assert.isFalse(yield* look(stored))
        yield* tellDelivered(firstRound, kind)
        assert.isTrue(yield* look(stored))
      })
    )

  scenario("is found though it leaves its stream while it is looked for", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const { deleteMessage, names } = broker
      const stored = yield* storePlan
      const { seq } = yield* storeDelivery()
      const arrive = Effect.andThen(
        tellDelivered(),
        deleteMessage("remove", names.deliveries(partition), seq)
      )
      let told = false
      let arrived = false
      /** Lets it arrive between the looks at its stream and at the history, whichever is first. */
      const batch: typeof broker.batch = (stream, subject, ...rest) =>
        Effect.gen(function* () {
          const isQueue = subject === names.subjects.delivery(partition, "acme", "hook")
          if (isQueue && told) yield* Effect.orDie(arrive)
          const answer = yield* broker.batch(stream, subject, ...rest)
          if (isQueue && !told) yield* Effect.orDie(arrive)
          arrived ||= isQueue
          return answer
        }).pipe(Effect.provideContext(context))
      const read: typeof broker.read = (...range) => {
        told = true
        return broker.read(...range)
      }
      const context = yield* Effect.context<Broker | Facts>()
      assert.isTrue(
        yield* Effect.provideService(look(stored), Broker, Broker.of({ ...broker, batch, read }))
      )
      assert.isTrue(arrived)
    })
  )

  scenario("is not found by what an audit tells of it: that it is missing", () =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      const stored = yield* storePlan
      yield* tellMissing({ ...event, endpoint: "hook", event: "evt_1", round: firstRound })
      assert.deepStrictEqual(yield* lookAt(stored), { isSent: false, failed: undefined })
      const known = yield* (yield* makePartialRoutings(2, "router")).of(event, 2)
      assert.deepStrictEqual(known?.parts, [stored])
      assert.strictEqual(known?.sent.size, 0)
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

describe.concurrent("a delivery whose attempt from its event did not succeed", () => {
  scenario("is not sent, and what is known of it is", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      assert.isUndefined((yield* lookAt(stored)).failed)
      yield* tellFailed(names.events, { status: 503, nextAttemptAt: 61_000 })
      assert.deepStrictEqual(yield* lookAt(stored), {
        isSent: false,
        failed: {
          attempts: 1,
          firstAttemptAt: 1_000,
          lastAttemptAt: 1_000,
          lastStatus: 503,
          nextAttemptAt: 61_000
        }
      })
    })
  )

  scenario("is known by its error, too, and by why it was the last", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      const error = { class: "timeout", message: "no answer within 15 s" } as const
      yield* tellFailed(names.events, { error, reason: "attempts" })
      assert.deepStrictEqual((yield* lookAt(stored)).failed, {
        attempts: 1,
        firstAttemptAt: 1_000,
        lastAttemptAt: 1_000,
        lastErrorClass: "timeout",
        lastError: "no answer within 15 s",
        ends: "attempts"
      })
    })
  )

  scenario("is known when its event is redelivered, and not as one that was sent", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      yield* publish("invoice.paid")
      yield* storePlan
      yield* tellFailed(names.events, { status: 503 })
      const known = yield* (yield* makePartialRoutings(2, "router")).of(event, 2)
      assert.deepStrictEqual([...(known?.sent ?? [])], [])
      assert.strictEqual(known?.failed.get("hook")?.lastStatus, 503)
    })
  )

  scenario("is sent where it failed in its queue", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      yield* tellFailed(names.deliveries(partition), { status: 503 })
      assert.deepStrictEqual(yield* lookAt(stored), { isSent: true, failed: undefined })
    })
  )

  scenario("is sent where it failed in its queue since", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      yield* tellFailed(names.events, { status: 503 })
      yield* tellFailed(names.deliveries(partition), { attempt: 2, status: 503 })
      assert.isTrue(yield* look(stored))
    })
  )

  scenario("is sent where it has come to its queue since", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      yield* tellFailed(names.events, { status: 503 })
      yield* storeDelivery()
      assert.isTrue(yield* look(stored))
    })
  )

  scenario("is sent where it waits as a schedule, and not where another does", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      yield* tellFailed(names.events, { status: 503 })
      yield* storeSchedule("other")
      assert.isFalse(yield* look(stored))
      yield* storeSchedule("hook")
      assert.isTrue(yield* look(stored))
    })
  )

  scenario("is not one of another round", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      yield* tellFailed(names.events, { round: "d7", status: 503 })
      assert.deepStrictEqual(yield* lookAt(stored), { isSent: false, failed: undefined })
    })
  )

  scenario("is not one of an event that had the sequence before", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stored = yield* storePlan
      yield* tellFailed(names.events, { status: 503 })
      yield* tellDelivered()
      assert.deepStrictEqual(yield* lookAt(stored, event.eventAt + 1), {
        isSent: false,
        failed: undefined
      })
      assert.isTrue((yield* lookAt(stored)).isSent)
    })
  )
})

describe.concurrent("an event that somebody has begun to route", () => {
  scenario("is known with its plan and with those who have it", () =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      yield* publish("invoice.paid")
      const stored = yield* storePlan
      yield* storeDelivery()
      const begun = yield* makePartialRoutings(2, "router")
      const known = yield* begun.of(event, 2)
      assert.deepStrictEqual(known?.parts, [stored])
      assert.deepStrictEqual([...(known?.sent ?? [])], ["hook"])
      assert.isUndefined(yield* begun.of({ ...event, eventSeq: 2 }, 2))
    })
  )

  scenario("is known though the broker has forgotten that it handed it out", () =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      yield* publish("invoice.paid")
      yield* storePlan
      const begun = yield* makePartialRoutings(2, "router")
      yield* begun.ready
      assert.isFalse(begun.isNew(event, 1))
      assert.isTrue(begun.isNew({ ...event, eventSeq: 2 }, 1))
      assert.isDefined(yield* begun.of(event, 1))
    })
  )

  scenario("is new again where it was given back before, and was with nobody else meanwhile", () =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      yield* publish("invoice.paid")
      yield* publish("invoice.paid")
      const begun = yield* makePartialRoutings(2, "router")
      yield* begun.ready
      const [first, second, third] = [1, 2, 3].map((eventSeq) => ({ ...event, eventSeq }))
      if (first === undefined || second === undefined || third === undefined) return
      for (const one of [first, second, third]) {
        assert.isTrue(begun.isNew(one, 1))
        begun.givesBack(one, 1)
      }
      assert.isTrue(begun.isNew(first, 2))
      // It was not given back again.
      assert.isFalse(begun.isNew(first, 3))
      // The second time it was with another router.
      assert.isFalse(begun.isNew(second, 3))
      // A truncated stream has used its sequence for another event.
      assert.isFalse(begun.isNew({ ...third, eventAt: third.eventAt + 1 }, 2))

      begun.givesBack(first, 3)
      assert.isTrue(begun.isNew(first, 4))
      begun.givesBack(first, 4)
      // A consumer that was made again counts from one, and nothing is known any more.
      begun.delivered({ consumerSeq: 0 })
      assert.isFalse(begun.isNew(first, 5))
    })
  )

  scenario("is new to another router, too, which was told that it was given back", () =>
    Effect.gen(function* () {
      yield* Effect.forEach([1, 2, 3], () => publish("invoice.paid"), { discard: true })
      const own = yield* makePartialRoutings(2, "router")
      const other = yield* makePartialRoutings(2, "router")
      yield* own.ready
      yield* other.ready
      const last = { ...event, eventSeq: 300 }
      for (let eventSeq = 1; eventSeq <= 300; eventSeq++) own.givesBack({ ...event, eventSeq }, 1)
      // More than fit into one message.
      const isTold = Effect.sync(() => other.isNew(last, 2))
      yield* eventually(isTold, (isNew) => isNew)
      assert.isTrue(other.isNew({ ...event, eventSeq: 2 }, 2))
      // A third one has had it meanwhile.
      assert.isFalse(other.isNew({ ...event, eventSeq: 3 }, 3))

      const second = { ...event, eventSeq: 2 }
      other.givesBack(second, 2)
      const isToldBack = Effect.sync(() => own.isNew(second, 3))
      yield* eventually(isToldBack, (isNew) => isNew)
    })
  )

  scenario("is looked for each time it comes back", () =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      const begun = yield* makePartialRoutings(2, "router")
      yield* begun.ready
      assert.isTrue(begun.isNew(event, 1))
      assert.isUndefined(yield* begun.of(event, 2))
      yield* storePlan
      assert.isFalse(begun.isNew(event, 2))
      assert.isDefined(yield* begun.of(event, 2))
      // A leader that does not know of the first time counts from one again.
      assert.isFalse(begun.isNew(event, 1))
      assert.isDefined(yield* begun.of(event, 1))
    })
  )

  scenario("is any that was handed out, and none that nobody has had", () =>
    Effect.gen(function* () {
      for (let seq = 1; seq <= 5; seq++) yield* publish("invoice.paid")
      yield* acknowledgeEvents(3)
      const begun = yield* makePartialRoutings(2, "router")
      yield* begun.ready
      const isNew = (eventSeq: number) => begun.isNew({ ...event, eventSeq }, 1)
      assert.deepStrictEqual([3, 4, 5].map(isNew), [false, true, true])
    })
  )

  scenario("is looked for where the consumer was made again, though another router had it", () =>
    Effect.gen(function* () {
      const begun = yield* makePartialRoutings(2, "router")
      yield* begun.ready
      begun.delivered({ consumerSeq: 7 })
      // Another router took it from the consumer that was removed.
      yield* publish("invoice.paid")
      yield* storePlan
      begun.delivered({ consumerSeq: 1 })
      assert.isFalse(begun.isNew(event, 1))
      assert.lengthOf((yield* begun.of(event, 1))?.parts ?? [], 1)
      // What follows is as it always is.
      begun.delivered({ consumerSeq: 2 })
      assert.isTrue(begun.isNew({ ...event, eventSeq: 2 }, 1))
    })
  )
})

describe.concurrent("the newest event with a plan", () => {
  scenario("is looked for from the event's own time on, where one broker stores both", () =>
    Effect.gen(function* () {
      const { names, readMessage } = yield* Broker
      const { seq } = yield* storePlan
      const stored = yield* readMessage("read the plan", names.history, { seq })
      const storedAt = stored?.time.getTime() ?? 0
      assert.strictEqual(yield* newestPlanned(storedAt, 100), event.eventSeq)
      // A minute of facts took a joining worker seconds.
      assert.strictEqual(yield* newestPlanned(storedAt + 5_000, 100), 0)
    }).pipe(Effect.provide(Facts.layer))
  )

  scenario("is found behind many facts without a plan", () =>
    Effect.gen(function* () {
      const { append } = yield* Facts
      yield* storePlan
      for (let n = 0; n < 40; n++)
        yield* append(
          { v: 1, kind: "delivered", at: n, tenant: "acme", endpoint: "hook", ...event },
          `without-plan.${n}`
        )
      assert.strictEqual(yield* newestPlanned(0, 1), event.eventSeq)
      const isOther = () => false
      assert.strictEqual(yield* newestPlanned(0, 1, isOther), 0)
    }).pipe(Effect.provide(Facts.layer))
  )
})
