import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { DeliveryLog } from "../../src/projection/delivery-log.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { startConsole } from "../kit/console.ts"
import { caughtUp, directory, optionsOf } from "../kit/delivery-log.ts"
import { endpoint, history, publish, quickRetry, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

type Row = Readonly<Record<string, unknown>>

describe.concurrent("the lists of the log", () => {
  scenario("have attempts by what came of them, with answers for who may see payloads", (place) =>
    Effect.gen(function* () {
      const good = yield* receiver({ answer: { status: 201 } })
      const bad = yield* receiver({ answer: { status: 409, body: "gone for good" } })
      const off = yield* receiver({ answer: { status: 422, body: "not that" } })
      yield* endpoint({ id: "good", url: good.url, types: ["paid"] })
      yield* endpoint({ id: "bad", url: bad.url, types: ["paid"] })
      yield* endpoint({ id: "off", url: off.url, types: ["paid"] })
      // What a policy counts as delivered has its status, too.
      const missing = yield* receiver({ answer: { status: 404 } })
      const retry = quickRetry({ statuses: { "404": "delivered" } })
      yield* endpoint({ id: "missing", url: missing.url, types: ["refunded"], retry })
      const facts = yield* history
      yield* worker()
      for (const id of ["acme.one", "acme.two"])
        yield* publish("paid", '{"n":1}', { "Nats-Msg-Id": id })
      yield* publish("refunded", "{}", { "Nats-Msg-Id": "acme.three" })
      yield* facts.count("delivered", 3)
      yield* facts.count("attempt-failed", 4)
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      const { ask: request, token: make } = yield* Effect.provideService(
        startConsole(),
        DeliveryLog,
        log
      )
      const all = yield* make()
      const ask = (path: string, token = all) => request(`/v1/tenants/acme/${path}`, { token })
      const attempts = (query: string, token = all) =>
        Effect.map(ask(`attempts?${query}`, token), ({ json, status, text }) => {
          assert.strictEqual(status, 200, text)
          return json.attempts as ReadonlyArray<Row>
        })

      const failed = yield* attempts("status=409&status=5xx&outcome=failure")
      assert.deepStrictEqual(
        failed.map(({ endpoint, number, outcome, status }) => ({
          ...{ endpoint, number, outcome, status }
        })),
        Array.from({ length: 2 }, () => ({
          ...{ endpoint: "bad", number: 1, outcome: "failure", status: 409 }
        }))
      )
      assert.deepInclude(failed[0]?.response, { body: "gone for good" })
      const blind = yield* make({ scopes: ["deliveries:read"] })
      const [seen] = yield* attempts("status=409", blind)
      assert.notProperty(seen, "response")
      assert.lengthOf(yield* attempts("outcome=success"), 3)
      assert.lengthOf(yield* attempts("endpoint=good&endpoint=bad&event=acme.one"), 2)
      assert.lengthOf(yield* attempts("status=4xx&since=2100-01-01T00:00:00Z"), 0)
      assert.lengthOf((yield* ask("deliveries?status=409&status=2xx")).json.deliveries as [], 4)
      for (const status of ["404", "4xx&state=delivered"]) {
        const found = (yield* ask(`deliveries?status=${status}`)).json.deliveries
        assert.deepStrictEqual(
          (found as ReadonlyArray<Row>).map(({ delivery, state, status }) => [
            ...[delivery, state, status]
          ]),
          [["acme.three.missing", "delivered", 404]]
        )
      }

      for (const list of ["attempts", "deliveries"]) {
        const first = yield* ask(`${list}?limit=4`)
        assert.notProperty(first.json, "previous")
        const second = yield* ask(`${list}?limit=4&cursor=${first.json.next}`)
        assert.lengthOf(second.json[list] as [], 3)
        assert.notProperty(second.json, "next")
        const back = yield* ask(`${list}?limit=4&cursor=${second.json.previous}`)
        assert.deepStrictEqual(back.json[list], first.json[list])
      }
      for (const query of ["status=600", "outcome=none", "error=none", "cursor=x"])
        assert.strictEqual((yield* ask(`attempts?${query}`)).status, 400, query)
    })
  )

  scenario("have events by how they came, those that nobody wanted among them", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ id: "e", url: hook.url, types: ["paid"] })
      const facts = yield* history
      yield* worker()
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      const { ask: request, token: make } = yield* Effect.provideService(
        startConsole(),
        DeliveryLog,
        log
      )
      const token = yield* make()
      const ask = (path: string, options = {}) =>
        request(`/v1/tenants/acme/${path}`, { token, ...options })
      const { status } = yield* ask("events", {
        method: "POST",
        body: { type: "paid", id: "one", data: { n: 1 } }
      })
      assert.strictEqual(status, 201)
      yield* publish("unwanted", "{}", { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("delivered", 1)
      yield* facts.count("routed", 1)
      yield* caughtUp(log.status)
      const events = (query: string) =>
        Effect.map(ask(`events?${query}`), ({ json }) => json.events as ReadonlyArray<Row>)
      assert.deepStrictEqual(
        (yield* events("")).map(({ channel, id, type }) => ({ channel, id, type })),
        [
          { channel: "nats", id: "acme.two", type: "unwanted" },
          { channel: "http", id: "acme.one", type: "paid" }
        ]
      )
      const [one] = yield* events("channel=http&type=paid&type=none")
      assert.deepInclude(one, { id: "acme.one", seq: 1 })
      assert.deepInclude(one?.rounds, { delivered: 1, waiting: 0 })
      assert.lengthOf(yield* events("until=2020-01-01T00:00:00%2B02:00"), 0)
    })
  )
})
