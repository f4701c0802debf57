import { assert, describe } from "@effect/vitest"
import { Clock, Deferred, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { PublishError } from "../../src/broker/publication.ts"
import { deliveryHeaders, untried } from "../../src/domain/delivery.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import {
  deadLetters,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  waitingMessages,
  worker,
  workersApart
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { disable, publishUntil } from "../kit/live-endpoints.ts"
import { about, patientRetry, reasons } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe.concurrent("what waits for an endpoint", () => {
  scenario("ends when the endpoint is removed or disabled, wherever it waits", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      for (const id of ["removed", "disabled", "stays"])
        yield* endpoint({ id, url: busy.url, retry: patientRetry, maxInFlight: 1 })
      const facts = yield* history
      yield* workersApart({ maxWaiting: 3 })
      for (let event = 0; event < 4; event++) yield* publish("a")
      yield* facts.count("attempt-failed", 12)
      const waits = new Set(facts.of("attempt-failed").map(({ wait }) => wait))
      assert.deepStrictEqual(waits, new Set(["nak", "schedule"]))

      yield* removeEndpoint("acme", "removed")
      yield* disable("disabled")
      yield* facts.count("dead-lettered", 8)
      for (const id of ["removed", "disabled"])
        assert.deepStrictEqual(
          reasons(about(facts.of("dead-lettered"), id)),
          Array.from({ length: 4 }, () => ["dead-lettered", 1, `endpoint-${id}`])
        )
      yield* eventually(waitingMessages, (count) => count === 4)
      assert.strictEqual((yield* deadLetters).length, 8)
      assert.strictEqual(busy.requests.length, 12)
      assert.strictEqual(about(facts.of("dead-lettered"), "stays").length, 0)
    })
  )

  scenario("also when that happened while no worker was running", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const ids = ["removed", "disabled", "renewed", "stays"]
      for (const id of ids) yield* endpoint({ id, url: busy.url, retry: patientRetry })
      const facts = yield* history
      const first = yield* worker()
      yield* publish("a")
      yield* facts.count("attempt-failed", 4)
      yield* first.stop
      for (const id of ["removed", "renewed"]) yield* removeEndpoint("acme", id)
      yield* disable("disabled")
      yield* endpoint({ id: "renewed", url: busy.url })
      yield* worker({ id: "w2" })
      yield* facts.count("dead-lettered", 3)
      assert.deepStrictEqual(
        Object.fromEntries(facts.of("dead-lettered").map((fact) => [fact.endpoint, fact.reason])),
        {
          removed: "endpoint-removed",
          disabled: "endpoint-disabled",
          renewed: "endpoint-removed"
        }
      )
      yield* eventually(waitingMessages, (count) => count === 1)
      assert.strictEqual(busy.requests.length, 4)
    })
  )

  scenario("and when nothing but schedules was left of it", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const ids = ["removed", "disabled", "renewed", "stays"]
      for (const id of ids) yield* endpoint({ id, url: busy.url, retry: patientRetry })
      const facts = yield* history
      const first = yield* worker({ maxWaiting: 0 })
      yield* publish("a")
      yield* facts.count("attempt-failed", 4)
      yield* first.stop
      for (const id of ["removed", "renewed"]) yield* removeEndpoint("acme", id)
      yield* disable("disabled")
      yield* endpoint({ id: "renewed", url: busy.url })
      yield* worker({ id: "w2" })
      yield* facts.count("dead-lettered", 3)
      yield* eventually(waitingMessages, (count) => count === 1)
      assert.strictEqual(about(facts.of("dead-lettered"), "stays").length, 0)
    })
  )

  scenario(
    "ends once, though the broker has not said whether it is in the backlog",
    () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const count = 10
        const slow = yield* gate
        yield* endpoint({ url: slow.url, retry: patientRetry, maxInFlight: 1 })
        const facts = yield* history
        const moving = new Set<unknown>()
        let isSilent = true
        let sweeps = 0
        const partition = partitionOf("acme", "hook", 2)
        const backlog = names.subjects.backlog(partition, "acme", "hook")
        const altered = yield* alteredBroker((broker) => ({
          // What is stored there is not acknowledged, nor found.
          publish: (subject, body, headers) =>
            Effect.tap(broker.publish(subject, body, headers), () => {
              if (subject !== backlog || !isSilent) return Effect.void
              moving.add(headers.find(([name]) => name === "Nats-Msg-Id")?.[1])
              const detail = "no acknowledgement"
              return Effect.fail(new PublishError({ subject, reason: "timeout", code: 0, detail }))
            }),
          batch: (stream, subject, seq, limits) => {
            if (subject === backlog && isSilent)
              return Effect.fail(new BrokerError({ operation: "read", cause: new Error("silent") }))
            if (stream === names.deliveries(partition) && subject.endsWith(".acme.hook")) sweeps++
            return broker.batch(stream, subject, seq, limits)
          }
        }))
        yield* worker({ id: "routes", roles: ["router"] })
        yield* Effect.provideService(worker({ roles: ["deliver"] }), Broker, altered)
        yield* publishMany(count)
        yield* eventually(
          Effect.sync(() => moving.size),
          (size) => size > 0
        )
        yield* disable("hook")
        const before = sweeps
        yield* eventually(
          Effect.sync(() => sweeps),
          (times) => times >= before + 4
        )
        isSilent = false
        yield* slow.open
        yield* facts.until(() => facts.of("delivered", "dead-lettered").length >= count)
        yield* consistentRounds
        assert.lengthOf(facts.of("delivered", "dead-lettered"), count)
        yield* isClean
      }),
    { moveDedupe: 500 }
  )

  scenario("does not go to another endpoint that is made under the same name", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const next = yield* receiver()
      yield* endpoint({ url: busy.url, retry: patientRetry })
      const facts = yield* history
      yield* worker()
      yield* publish("old", "old")
      yield* facts.count("attempt-failed", 1)
      yield* removeEndpoint("acme", "hook")
      yield* endpoint({ url: next.url })
      yield* facts.count("dead-lettered", 1)
      assert.strictEqual(nth(facts.of("dead-lettered"), 0).reason, "endpoint-removed")
      yield* publishUntil(next, "new", () => true)
      assert.isTrue(next.requests.every(({ body }) => body.toString() === "{}"))
    })
  )

  scenario("ends also when it was on its way there and comes only afterwards", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      const { connections, url } = yield* receiver()
      const former = yield* endpoint({ id: "former", url })
      const gone = yield* endpoint({ id: "gone", url })
      yield* endpoint({ id: "off", url })
      yield* removeEndpoint("acme", "former")
      yield* endpoint({ id: "former", url })
      yield* removeEndpoint("acme", "gone")
      const off = yield* disable("off")
      const facts = yield* history
      const { delivering } = yield* worker()
      yield* delivering
      const deadline = (yield* Clock.currentTimeMillis) + 600_000
      for (const { endpoint, revision } of [former, gone, off]) {
        const delivery = {
          tenant: "acme",
          endpoint: endpoint.id,
          event: "e1",
          eventSeq: 1,
          eventAt: 0,
          type: "a",
          round: "0",
          began: 0,
          deadline,
          generation: endpoint.generation,
          revision,
          content: {},
          progress: untried
        }
        const partition = partitionOf("acme", endpoint.id, 2)
        yield* publisher.publish(
          names.subjects.delivery(partition, "acme", endpoint.id),
          "{}",
          deliveryHeaders(delivery, `late.${endpoint.id}`)
        )
      }
      yield* facts.count("dead-lettered", 3)
      assert.deepStrictEqual(
        Object.fromEntries(
          facts
            .of("dead-lettered")
            .map(({ attempt, endpoint, reason }) => [endpoint, [attempt, reason]])
        ),
        {
          former: [0, "endpoint-removed"],
          gone: [0, "endpoint-removed"],
          off: [0, "endpoint-disabled"]
        }
      )
      assert.strictEqual(connections(), 0)
    })
  )

  scenario("ends soon after its attempt where that was under way at that moment", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const held = yield* receiver({
        answer: ({ path }) =>
          Effect.runPromise(Effect.as(Deferred.await(gate), { status: Number(path.slice(1)) }))
      })
      yield* endpoint({ id: "fails", url: `${held.url}/500`, retry: patientRetry })
      yield* endpoint({ id: "works", url: `${held.url}/200`, retry: patientRetry })
      yield* endpoint({ id: "other", url: `${held.url}/500`, retry: patientRetry })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* held.received(3)
      yield* removeEndpoint("acme", "fails")
      yield* removeEndpoint("acme", "works")
      yield* disable("other")
      yield* facts.count("endpoint-disabled", 1)
      yield* Deferred.succeed(gate, undefined)
      yield* facts.count("dead-lettered", 2)
      assert.deepStrictEqual(reasons(about(facts.facts, "fails")), [
        ["attempt-failed", 1, undefined],
        ["dead-lettered", 1, "endpoint-removed"]
      ])
      assert.deepStrictEqual(reasons(about(facts.facts, "works")), [["delivered", 1, undefined]])
      yield* eventually(waitingMessages, (count) => count === 0)
    })
  )
})
