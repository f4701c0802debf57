import { gzipSync } from "node:zlib"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, eventually, nth, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage } from "../kit/scenario.ts"

const { scenario } = onServer()

const events = "/v1/tenants/acme/events"

describe.concurrent("what is published over HTTP", () => {
  scenario("arrives as each form says", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      yield* worker()
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ scopes: ["events:publish"] })
      const bytes = Uint8Array.from([0xff, 0x00, 0x0d, 0x0a])
      const sent = [
        {
          body: '{"type":"a","id":"data","data": {"n": 12345678901234567890, "m": 1.10, "t": "é\\u00e9"}}',
          headers: { "content-type": "application/json" }
        },
        { body: { type: "a", id: "text", text: "grüße" } },
        { body: { type: "a", id: "base64", base64: Buffer.from(bytes).toString("base64") } },
        { body: { type: "a", id: "typed", contentType: "application/xml", text: "<a/>" } }
      ]
      for (const one of sent) {
        const answer = yield* ask(events, { method: "POST", token, ...one })
        assert.strictEqual(answer.status, 201, answer.text)
      }
      const raw = yield* ask("/v1/tenants/acme/raw-events/report.ready", {
        method: "POST",
        token,
        body: bytes,
        headers: { "content-type": "text/csv", "idempotency-key": "raw" }
      })
      assert.strictEqual(raw.headers.get("location"), `${events}/acme.raw`)
      yield* received(5)
      const got = new Map(
        requests.map(({ body, headers }) => [
          headers["webhook-id"],
          [headers["content-type"], body.toString("latin1")]
        ])
      )
      const utf8 = (text: string) => Buffer.from(text).toString("latin1")
      assert.deepStrictEqual(
        got,
        new Map([
          [
            "acme.data",
            ["application/json", utf8('{"n":12345678901234567890,"m":1.10,"t":"é\\u00e9"}')]
          ],
          ["acme.text", ["text/plain; charset=utf-8", utf8("grüße")]],
          ["acme.base64", ["application/octet-stream", Buffer.from(bytes).toString("latin1")]],
          ["acme.typed", ["application/xml", "<a/>"]],
          ["acme.raw", ["text/csv", Buffer.from(bytes).toString("latin1")]]
        ])
      )
    })
  )

  scenario("goes on with the trace of its request, unless it has one of its own", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      yield* worker()
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ scopes: ["events:publish"] })
      const parentOf = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`
      const headers = { traceparent: parentOf("1"), tracestate: "a=1" }
      const own = { Traceparent: parentOf("2") }
      yield* ask(events, {
        ...{ method: "POST", token, headers },
        body: [
          { type: "a", id: "none", data: 1 },
          { type: "a", id: "own", data: 2, headers: own }
        ]
      })
      // It says nothing of the event: it is not refused for it.
      const broken = yield* ask(events, {
        ...{ method: "POST", token, headers: { traceparent: "broken", tracestate: "a=1" } },
        body: { type: "a", id: "broken", data: 3 }
      })
      assert.strictEqual(broken.status, 201, broken.text)
      yield* received(3)
      assert.deepStrictEqual(
        new Map(
          requests.map(({ headers: got }) => [got["webhook-id"], [got.traceparent, got.tracestate]])
        ),
        new Map([
          ["acme.none", [parentOf("1"), "a=1"]],
          ["acme.own", [parentOf("2"), undefined]],
          ["acme.broken", [undefined, undefined]]
        ])
      )
    })
  )

  scenario("is refused with a Content-Encoding: receivers would not be told of it", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const raw = "/v1/tenants/acme/raw-events/a"
      const body = gzipSync('{"type":"a","data":1}')
      const headers = { "content-type": "application/json", "content-encoding": "gzip" }
      for (const path of [events, raw]) {
        const refused = yield* ask(path, { method: "POST", token, body, headers })
        assert.strictEqual(refused.status, 415, refused.text)
        assert.strictEqual(refused.headers.get("accept-encoding"), "identity")
        assert.include(refused.text, "without gzip")
      }
      const plain = yield* ask(raw, {
        ...{ method: "POST", token, body: "{}" },
        headers: { "content-type": "application/json", "content-encoding": "identity" }
      })
      assert.strictEqual(plain.status, 201, plain.text)
    })
  )

  scenario("is there from its answer on, also before it is routed", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      yield* ask(events, { method: "POST", token, body: { type: "b", data: 1 } })
      const published = yield* ask(events, {
        ...{ method: "POST", token },
        body: { type: "invoice.paid", id: "i1", data: { total: 1 } }
      })
      const path = published.headers.get("location") ?? ""
      const shown = yield* ask(path, { token })
      assert.strictEqual(shown.status, 200, shown.text)
      assert.deepInclude(shown.json, {
        ...{ id: "acme.i1", type: "invoice.paid", seq: published.json.seq },
        ...{ routed: false, deliveries: [], bytes: 11, contentType: "application/json" }
      })
      assert.strictEqual((yield* ask(`${path}/body`, { token })).text, '{"total":1}')
      assert.strictEqual((yield* ask(`${events}/i1`, { token })).status, 200)
      assert.strictEqual((yield* ask(`${events}/i2`, { token })).status, 404)
      const theirs = yield* make({ tenant: "globex" })
      const other = path.replace("acme", "globex")
      assert.strictEqual((yield* ask(other, { token: theirs })).status, 404)
      yield* worker()
      const routed = yield* eventually(ask(path, { token }), ({ json }) => json.routed === true)
      assert.lengthOf(routed.json.deliveries as ReadonlyArray<unknown>, 1)
    })
  )

  scenario("is stored once under its id, and refused with other bytes", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const other = yield* make({ tenant: "globex" })
      const publish = (body: unknown, headers = {}) =>
        ask(events, { method: "POST", token, body, headers })
      const event = { type: "invoice.paid", id: "i1", data: { total: 1 } }
      const first = yield* publish(event)
      assert.strictEqual(first.status, 201)
      const { seq } = first.json
      const again = yield* publish(event)
      assert.deepInclude(again.json, { seq, duplicate: true })
      assert.strictEqual(again.status, 200)
      const { id: _, ...unnamed } = event
      const byKey = yield* publish(unnamed, { "idempotency-key": "i1" })
      assert.deepInclude(byKey.json, { seq, duplicate: true })
      for (const change of [
        { data: { total: 2 } },
        { type: "invoice.sent" },
        { contentType: "a/b" }
      ]) {
        const changed = yield* publish({ ...event, ...change })
        assert.strictEqual(changed.status, 409, changed.text)
        assert.strictEqual(changed.json.type, "urn:petrel:problem:conflict")
      }
      const differs = yield* publish(event, { "idempotency-key": "i2" })
      assert.strictEqual(differs.status, 400)
      const theirs = yield* ask("/v1/tenants/globex/events", {
        method: "POST",
        token: other,
        body: event
      })
      assert.deepInclude(theirs.json, { id: "globex.i1", duplicate: false })
    })
  )

  scenario("has an answer for each event of a batch, as array and as NDJSON", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const batch = [
        { type: "a", id: "1", data: 1 },
        { type: "a b", data: 1 },
        { type: "a", id: "1", data: 2 },
        { type: "a", id: "2", text: "x".repeat(2_000_000) },
        { type: "a", id: "1", data: 1 },
        { type: "a", data: 1, text: "x" }
      ]
      const statuses = ({ json }: { readonly json: Record<string, unknown> }) =>
        (json.events as ReadonlyArray<{ readonly status: number }>).map(({ status }) => status)
      const answer = yield* ask(events, { method: "POST", token, body: batch })
      assert.strictEqual(answer.status, 200, answer.text)
      // Those of one id are published at the same time: which of them is the first is not known.
      const [one, two, three, four, five, six] = statuses(answer)
      assert.deepStrictEqual([two, four, six], [400, 413, 400])
      for (const status of [one, three, five]) assert.include([201, 200, 409], status)
      assert.deepInclude(answer.json, { stored: 1 })
      const lines = ['{"type":"a","id":"n1","data":1}', "", "no json", '{"type":"a","data":[]}']
      const ndjson = yield* ask(events, {
        method: "POST",
        token,
        body: lines.join("\n"),
        headers: { "content-type": "application/x-ndjson" }
      })
      assert.deepStrictEqual(statuses(ndjson), [201, 400, 201])
      const many = Array.from({ length: 1_001 }, () => ({ type: "a", data: 1 }))
      const tooMany = yield* ask(events, { method: "POST", token, body: many })
      assert.strictEqual(tooMany.status, 400)
      assert.include(tooMany.text, "at most 1000 events: send several")
      const thousand = yield* ask(events, { method: "POST", token, body: many.slice(1) })
      assert.deepInclude(thousand.json, { stored: 1_000, failed: 0 })
    })
  )

  scenario("says when to send again what a full stream did not take of a batch", () =>
    Effect.gen(function* () {
      const { ask: askBroker, jsm, names } = yield* natsClients
      const { config } = yield* askBroker("look", () => jsm.streams.info(names.events))
      const full = { ...config, max_msgs: 1, discard: "new" as const }
      yield* askBroker("fill", () => jsm.streams.update(names.events, full))
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const batch = ["x", "y"].map((id) => ({ type: "a", id, data: 1 }))
      const publish = ask(events, { method: "POST", token, body: batch })
      const answer = yield* publish
      assert.strictEqual(answer.status, 200, answer.text)
      const told = answer.json.events as ReadonlyArray<Record<string, unknown>>
      const stored = nth(told, told[0]?.status === 201 ? 0 : 1)
      const refused = nth(told, stored === told[0] ? 1 : 0)
      assert.deepInclude(stored, { status: 201 })
      assert.deepInclude(refused, { status: 503, retryAfter: 2 })
      assert.notProperty(stored, "retryAfter")
      assert.strictEqual(answer.headers.get("retry-after"), "2")
      yield* askBroker("make room", () => jsm.streams.update(names.events, config))
      const again = yield* publish
      assert.deepInclude(again.json, { stored: 1, duplicates: 1, failed: 0 })
      assert.isNull(again.headers.get("retry-after"))
    })
  )

  outage("is not acknowledged while the broker does not store it", (_, server) =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const event = { type: "a", id: "x", data: 1 }
      server.pause()
      const one = yield* ask(events, { method: "POST", token, body: event })
      const batch = yield* ask(events, { method: "POST", token, body: [event, event] })
      for (const answer of [one, batch]) {
        assert.strictEqual(answer.status, 503, answer.text)
        assert.strictEqual(answer.headers.get("retry-after"), "2")
        assert.strictEqual(answer.json.retryAfter, 2)
        assert.strictEqual(answer.json.type, "urn:petrel:problem:unavailable")
      }
      server.resume()
      const again = yield* ask(events, { method: "POST", token, body: event })
      assert.include([200, 201], again.status)
      assert.strictEqual(nth([again.json.id], 0), "acme.x")
    })
  )
})
