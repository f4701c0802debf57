import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { startConsole } from "../kit/console.ts"
import { caughtUp, directory, optionsOf } from "../kit/delivery-log.ts"
import { closedCircuit, endpoint, history, publish, quickRetry, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A console whose process reads nothing of the history that its log has taken: the log has to know. */
const consoleWithoutHistory = Effect.gen(function* () {
  const { names, streamInfo: infoNow } = yield* Broker
  const taken = (yield* infoNow("look at the history", names.history)).state.last_seq
  const refused = <A, E, R>(stream: string, from: number, reading: Effect.Effect<A, E, R>) =>
    stream === names.history && from <= taken ? Effect.die("the history was read") : reading
  const altered = yield* alteredBroker(({ batch, firstSince, read, readRun }) => ({
    // Others are about the few facts of a rare kind.
    batch: (stream, subject, from, limits) =>
      subject.endsWith(".attempt-failed")
        ? Effect.die("the failures of an endpoint were read")
        : batch(stream, subject, from, limits),
    firstSince: (stream, time) => refused(stream, 0, firstSince(stream, time)),
    read: (range, from) =>
      Stream.unwrap(refused(range.stream, from, Effect.succeed(read(range, from)))),
    readRun: (options, see) => refused(options.stream, options.from, readRun(options, see))
  }))
  return yield* Effect.provideService(startConsole(), Broker, altered)
})

describe.concurrent("a console with a log of deliveries", () => {
  scenario("finds events and deliveries in it, and reads no history for those unknown", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({})
      yield* endpoint({ id: "billing", url: hook.url, types: ["paid"] })
      yield* endpoint({ id: "off", types: ["paid"], disabled: { at: 1, by: "t", reason: "r" } })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", '{"n":1}', { "Nats-Msg-Id": "acme.one" })
      yield* publish("unwanted", '{"n":2}', { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("delivered", 1)
      yield* facts.count("routed", 2)
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      const { ask: request, token: make } = yield* consoleWithoutHistory
      const token = yield* make()
      const ask = (path: string) => request(`/v1/tenants/acme/${path}`, { token })

      const one = yield* ask("events/one")
      assert.strictEqual(one.status, 200)
      const off = (one.json.deliveries as ReadonlyArray<Record<string, unknown>>).find(
        ({ endpoint: id }) => id === "off"
      )
      assert.deepInclude(off, { state: "skipped", reason: "endpoint-disabled" })
      assert.deepStrictEqual((yield* ask("events/evt_1")).json, one.json)
      assert.strictEqual((yield* ask("events/evt_1/body")).text, '{"n":1}')
      const delivery = yield* ask("deliveries/one.billing")
      assert.strictEqual(delivery.status, 200)
      assert.deepStrictEqual((yield* ask("deliveries/evt_1.billing")).json, delivery.json)

      for (const id of ["two", "acme.two", "evt_2"]) {
        const { json } = yield* ask(`events/${id}`)
        assert.deepInclude(json, { id: "acme.two", type: "unwanted", seq: 2, deliveries: [] })
      }
      assert.strictEqual((yield* ask("events/two/body")).text, '{"n":2}')

      const skipped = yield* ask("deliveries/one.off")
      assert.strictEqual(skipped.status, 404)
      assert.include(skipped.text, "endpoint-disabled")
      for (const path of [
        "events/none",
        "events/none/body",
        "events/evt_9",
        "deliveries/none.billing",
        "deliveries/two.billing"
      ]) {
        const { json, status } = yield* ask(path)
        assert.strictEqual(status, 404, path)
        assert.match(String(json.detail), /which reaches back to \d{4}-\d\d-\d\dT/, path)
        assert.include(String(json.detail), "not routed yet", path)
      }
      const stranger = yield* make({ tenant: "globex" })
      for (const id of ["acme.one", "evt_1", "evt_2"]) {
        const { status } = yield* request(`/v1/tenants/globex/events/${id}`, { token: stranger })
        assert.strictEqual(status, 404, id)
      }
    })
  )

  scenario("finds the attempts of a dead letter in it, not among all of its endpoint", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: byAttempt(500) })
      yield* endpoint({
        ...{ id: "billing", url: hook.url, types: ["paid"] },
        ...{ retry: quickRetry({ maxAttempts: 2 }), circuit: closedCircuit }
      })
      const facts = yield* history
      yield* worker()
      for (let n = 0; n < 20; n++) yield* publish("paid", `{"n":${n}}`)
      yield* facts.count("dead-lettered", 20)
      const fromHistory = yield* startConsole()
      const token = yield* fromHistory.token()
      const path = "/v1/tenants/acme/dead-letters/7"
      const { json: before } = yield* fromHistory.ask(path, { token })
      assert.lengthOf(before.history as ReadonlyArray<unknown>, 2)
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      const { ask } = yield* consoleWithoutHistory
      const { json, status } = yield* ask(path, { token })
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(json, before)
    })
  )

  scenario("sums up attempts of endpoints and tenants, and reads no history for it", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: byAttempt(500, 200) })
      yield* endpoint({ id: "billing", url: hook.url, types: ["paid"] })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("delivered", 1)
      const fromHistory = yield* startConsole()
      const asked = yield* fromHistory.token()
      const totalsOf = (ask: typeof fromHistory.ask, by: string) =>
        ask(`/v1/tenants/acme/totals?by=${by}`, { token: asked })
      const kinds = ["hour", "day", "endpoint", "type"]
      const before = yield* Effect.forEach(kinds, (by) => totalsOf(fromHistory.ask, by))
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      const { ask } = yield* consoleWithoutHistory
      const after = yield* Effect.forEach(kinds, (by) => totalsOf(ask, by))
      assert.deepStrictEqual(
        after.map(({ json }) => json.totals),
        before.map(({ json }) => json.totals)
      )
      assert.isTrue(after.every(({ json }) => typeof json.oldestHour === "string"))
      for (const path of ["stats", "endpoints/billing/stats", "endpoints/billing/stats?by=day"]) {
        const { json, status } = yield* ask(`/v1/tenants/acme/${path}`, { token: asked })
        assert.strictEqual(status, 200, path)
        const whole = json.whole as Record<string, unknown>
        assert.deepInclude(whole, {
          ...{ attempts: 2, succeeded: 1, failed: 1, successRate: 0.5 },
          answers: { "2xx": 1, "5xx": 1 }
        })
        assert.hasAllKeys(whole.latencyMs, ["p50", "p95", "p99"])
        assert.match(String(json.since), /T\d\d:00:00\.000Z$/)
        const periods = json.periods as ReadonlyArray<{ readonly attempts: number }>
        assert.strictEqual(
          periods.reduce((sum, { attempts }) => sum + attempts, 0),
          2
        )
      }
      const none = yield* ask("/v1/tenants/acme/endpoints/none/stats", { token: asked })
      assert.deepInclude(none.json.whole, { attempts: 0, successRate: null, latencyMs: null })
      const wrong = yield* ask("/v1/tenants/acme/stats?since=2999-01-01T00:00:00Z", {
        token: asked
      })
      assert.strictEqual(wrong.status, 400)
    })
  )

  scenario("finds in the newest facts what its log has not taken yet", () =>
    Effect.gen(function* () {
      const { listen, names, say } = yield* Broker
      const hook = yield* receiver({})
      yield* endpoint({ id: "billing", url: hook.url, types: ["paid"] })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("delivered", 1)
      // A log that has begun and taken nothing.
      const nothing = { rounds: [], unwanted: [], oldest: null, position: 0 }
      const text = JSON.stringify({ found: { ...nothing, lag: { facts: 1, ms: 300 } } })
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          listen(names.subjects.projection, ({ reply = "" }) =>
            say(reply, JSON.stringify({ from: "late", isLast: true, text }))
          )
        ),
        (unlisten) => Effect.sync(unlisten)
      )
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const event = yield* ask("/v1/tenants/acme/events/one", { token })
      assert.deepInclude(event.json, { id: "acme.one", routed: true })
      const delivery = yield* ask("/v1/tenants/acme/deliveries/one.billing", { token })
      assert.strictEqual(delivery.status, 200)
    })
  )

  scenario("says so where the log has nothing yet, to many who ask at the same time", (place) =>
    Effect.gen(function* () {
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      const { ask, token: make } = yield* consoleWithoutHistory
      const token = yield* make()
      const answers = yield* Effect.forEach(
        Array.from({ length: 10 }, (_, n) => n),
        (n) => ask(`/v1/tenants/acme/events/none-${n}`, { token }),
        { concurrency: 10 }
      )
      for (const { json, status } of answers) {
        assert.strictEqual(status, 404)
        assert.include(String(json.detail), "the log of deliveries is empty")
      }
    })
  )
})
