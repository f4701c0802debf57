import { randomBytes } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { eventId } from "../../src/domain/event.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { makeConditions } from "../kit/conditions.ts"
import {
  deadLetters,
  endpoint,
  eventAt,
  eventually,
  history,
  nth,
  publish,
  publishTo,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
const tracestate = "vendor=1,other=2"

/** Bytes that a message's headers take, as NATS writes them. */
const headerBytes = (headers: Record<string, string>): number =>
  Buffer.byteLength(
    `NATS/1.0\r\n${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("")}\r\n`
  )

describe.concurrent("what is published", () => {
  scenario("arrives byte for byte, whatever the bytes are", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      yield* worker()
      const bodies = new Map<string, Buffer>([
        ["empty", Buffer.alloc(0)],
        ["text", Buffer.from('{"größe":"✓"}\n')],
        ["no-utf8", Buffer.from([0xff, 0xfe, 0x00, 0x0d, 0x0a, 0x0d, 0x0a, 0x80])],
        ["large", randomBytes(300 * 1024)]
      ])
      for (const [id, body] of bodies) yield* publish("file.stored", body, { "Nats-Msg-Id": id })
      yield* received(bodies.size)
      for (const { body, headers } of requests) {
        const sent = bodies.get(String(headers["webhook-id"]))
        assert.isTrue(sent?.equals(body), String(headers["webhook-id"]))
        assert.strictEqual(headers["content-length"], String(sent?.length))
      }
      assert.strictEqual(requests.length, bodies.size)
    })
  )

  scenario(
    "may be as large as EVENTS takes it, and still be put off and become a dead letter",
    () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const takes = yield* receiver()
        const puts = yield* receiver({ answer: byAttempt(503, 503, 200) })
        const never = yield* receiver({ answer: { status: 400, body: "x".repeat(2_000) } })
        yield* endpoint({ id: "t".repeat(64), url: takes.url })
        yield* endpoint({ id: "p".repeat(64), url: puts.url })
        yield* endpoint({ id: "n".repeat(64), url: never.url })
        const facts = yield* history
        yield* worker({ maxWaiting: 0 })

        const headers = {
          "Nats-Msg-Id": "i".repeat(255),
          "content-type": `text/${"c".repeat(250)}`,
          traceparent,
          tracestate: `v=${"s".repeat(510)}`
        }
        const info = yield* ask("look", () => jsm.streams.info(names.events))
        const type = Array.from({ length: 3 }, () => "t".repeat(64)).join(".")
        const body = randomBytes(info.config.max_msg_size - headerBytes(headers))
        const more = yield* Effect.flip(
          publish(type, Buffer.concat([body, body.subarray(0, 1)]), headers)
        )
        assert.include(more.message, "message size exceeds maximum allowed")

        yield* publish(type, body, headers)
        yield* facts.count("delivered", 2)
        yield* facts.count("dead-lettered", 1)
        for (const { requests } of [takes, puts, never])
          for (const request of requests) {
            assert.isTrue(request.body.equals(body))
            assert.strictEqual(request.headers["webhook-id"], headers["Nats-Msg-Id"])
            assert.strictEqual(request.headers["content-type"], headers["content-type"])
            assert.strictEqual(request.headers.tracestate, headers.tracestate)
          }
        assert.strictEqual(puts.requests.length, 3)
        const [letter] = yield* deadLetters
        assert.isTrue(body.equals(letter?.data ?? Buffer.alloc(0)))
        yield* eventually(waitingMessages, (count) => count === 0)
      })
  )

  scenario("keeps its content type and trace, in whatever case their headers are written", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      yield* worker()
      const cases: Record<string, Record<string, string>> = {
        lower: { "content-type": "text/csv", traceparent, tracestate },
        upper: { "CONTENT-TYPE": "text/csv", TRACEPARENT: traceparent, TRACESTATE: tracestate },
        mixed: { "Content-Type": "text/csv", TraceParent: traceparent, traceState: tracestate }
      }
      for (const [id, headers] of Object.entries(cases))
        yield* publish("a", id, { ...headers, "Nats-Msg-Id": id })
      yield* received(3)
      for (const { headers } of requests) {
        assert.include(Object.keys(cases), headers["webhook-id"])
        assert.strictEqual(headers["content-type"], "text/csv")
        assert.strictEqual(headers.traceparent, traceparent)
        assert.strictEqual(headers.tracestate, tracestate)
      }
    })
  )

  scenario("is JSON where it says nothing usable, and carries no trace that is none", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      yield* worker()
      const cases: ReadonlyArray<Record<string, string>> = [
        {},
        { "content-type": "", traceparent: "", tracestate },
        { "content-type": "text/☃", traceparent: "hello", tracestate },
        { "content-type": "a".repeat(256), traceparent: `${traceparent}-00`, tracestate },
        { "content-type": "text/a\tb", traceparent: traceparent.toUpperCase(), tracestate },
        { tracestate }
      ]
      for (const headers of cases) yield* publish("a", "{}", headers)
      yield* publish("good", "{}", { traceparent, tracestate: "ü" })
      yield* received(cases.length + 1)
      for (const { headers } of requests)
        assert.strictEqual(headers["content-type"], "application/json")
      assert.deepStrictEqual(
        requests.flatMap(({ headers }) => headers.traceparent ?? []),
        [traceparent]
      )
      assert.deepStrictEqual(
        requests.flatMap(({ headers }) => headers.tracestate ?? []),
        []
      )
    })
  )

  scenario("loses all other headers, so that none of them steers the broker on the way", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { requests, url } = yield* receiver({ answer: byAttempt(500, 500, 400) })
      yield* endpoint({ url })
      const facts = yield* history
      yield* worker({ maxWaiting: 0 })
      yield* publish("a", "{}", {
        "Nats-Msg-Id": "e1",
        "Nats-Expected-Stream": names.events,
        "Nats-Expected-Last-Sequence": "0",
        "Nats-Expected-Last-Subject-Sequence": "0",
        "nats-expected-last-msg-id": "e0",
        "Nats-Num-Pending": "7",
        "petrel-deadline": "1",
        "petrel-generation": "another",
        "petrel-revision": "99999",
        "petrel-progress": '{"attempts":4}',
        "petrel-origin": "X:1",
        "petrel-round": "9",
        "petrel-attempt": "77",
        "webhook-id": "forged",
        "webhook-event-type": "forged",
        authorization: "Bearer 1",
        cookie: "a=b",
        "x-mine": "1"
      })
      yield* facts.count("dead-lettered", 1)
      const allowed =
        /^(host|connection|content-(length|type)|user-agent|petrel-attempt|webhook-(id|event-type|timestamp|signature))$/
      for (const { headers } of requests) {
        assert.deepStrictEqual(
          Object.keys(headers).filter((name) => !allowed.test(name)),
          []
        )
        assert.strictEqual(headers["webhook-id"], "e1")
        assert.strictEqual(headers["webhook-event-type"], "a")
      }
      assert.deepStrictEqual(
        requests.map(({ headers }) => headers["petrel-attempt"]),
        ["1", "2", "3"]
      )
      const [letter] = yield* deadLetters
      // A direct get adds the headers that say where the message is, `Nats-Sequence` and others.
      const added = /^Nats-(Stream|Subject|Sequence|Time-Stamp|Num-Pending|Last-Sequence)$/
      const carried = [...(letter?.headers?.keys() ?? [])].filter((name) => !added.test(name))
      assert.deepStrictEqual(
        carried.filter((name) => !name.startsWith("petrel-")),
        ["Nats-Msg-Id"]
      )
      assert.strictEqual(letter?.headers?.get("petrel-round"), "0")
    })
  )

  scenario("cannot roll up, end or schedule anything: the broker refuses such headers", () =>
    Effect.gen(function* () {
      for (const headers of [
        { "Nats-Rollup": "all" },
        { "Nats-TTL": "1s" },
        { "Nats-Scheduler": "x", "Nats-Schedule-Next": "purge" },
        { "Nats-Schedule": "@at 2030-01-01T00:00:00Z", "Nats-Schedule-Target": "x" }
      ])
        yield* Effect.flip(publish("a", "{}", headers))
    })
  )

  scenario("is known by its Nats-Msg-Id, or by its sequence where HTTP could not carry that", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      yield* worker()
      const expected = new Map<string, string>()
      for (const id of ["acme-1", "a.b:c/d+e=f~", "i".repeat(255)]) {
        yield* publish("a", id, { "Nats-Msg-Id": id })
        expected.set(id, id)
      }
      for (const id of ["has a space", "bestellung-ü", "☃", "i".repeat(256)]) {
        const { seq } = yield* publish("a", id, { "Nats-Msg-Id": id })
        expected.set(id, eventId(undefined, seq, yield* eventAt(seq)))
      }
      const { seq } = yield* publish("a", "no id")
      expected.set("no id", eventId(undefined, seq, yield* eventAt(seq)))
      yield* received(expected.size)
      assert.deepStrictEqual(
        new Map(requests.map(({ body, headers }) => [body.toString(), headers["webhook-id"]])),
        expected
      )
    })
  )

  scenario("is one event when it is published twice under the same id", () =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver()
      yield* endpoint({ url, maxInFlight: 1 })
      const facts = yield* history
      yield* worker()
      const first = yield* publish("a", "1", { "Nats-Msg-Id": "acme-1" })
      const second = yield* publish("a", "1", { "Nats-Msg-Id": "acme-1" })
      assert.isTrue(second.duplicate)
      assert.strictEqual(second.seq, first.seq)
      yield* publish("a", "2", { "Nats-Msg-Id": "acme-2" })
      yield* facts.count("delivered", 2)
      assert.deepStrictEqual(
        requests.map(({ body }) => body.toString()),
        ["1", "2"]
      )
      assert.strictEqual(facts.plans().length, 2)
    })
  )
})

describe.concurrent("a subject that names no tenant or no type", () => {
  const tooLong = Array.from({ length: 4 }, () => "t".repeat(60)).join(".")
  const subjects: ReadonlyArray<readonly [rest: string, tenant: string]> = [
    ["acme", "acme"],
    ["acme.a$b", "acme"],
    ["acme.größe", "acme"],
    ["acme.a:b.c", "acme"],
    ["acme.a*b", "acme"],
    ["acme.*", "acme"],
    ["acme.*.b", "acme"],
    ["acme.>", "acme"],
    ["*.a", "_"],
    ["a>b.c", "_"],
    [`acme.${"t".repeat(65)}`, "acme"],
    [`acme.${tooLong}`, "acme"],
    [`acme.${"x.".repeat(1_000)}x`, "acme"],
    ["_.a", "_"],
    ["ünï.a", "_"],
    ["ac!me.a", "_"],
    [`${"t".repeat(65)}.a`, "_"],
    [`${"t".repeat(2_000)}.a`, "_"]
  ]

  scenario("is told of once on the failure subjects, and does not hold up what follows", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      const conditions = makeConditions()
      const alerts: Array<{ readonly subject: string; readonly fact: unknown }> = []
      const root = names.subjects.failures("*", "_", "unroutable")
      const subscription = connection.subscribe(root, {
        callback: (_, message) => {
          alerts.push({ subject: message.subject, fact: message.json() })
          conditions.changed()
        }
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => subscription.unsubscribe()))
      yield* worker()
      const sequences: Array<number> = []
      for (const [rest] of subjects) sequences.push((yield* publishTo(rest)).seq)
      yield* publish("good")
      yield* received(1)
      yield* conditions.until(() => alerts.length >= subjects.length)
      yield* publish("last")
      yield* received(2)
      const told = new Map(
        alerts.map(({ fact, subject }) => [(fact as { eventSeq: number }).eventSeq, subject])
      )
      assert.deepStrictEqual(
        subjects.map((_, index) => told.get(nth(sequences, index))),
        subjects.map(([, tenant]) => names.subjects.failures(tenant, "_", "unroutable"))
      )
      assert.strictEqual(alerts.length, subjects.length)
      assert.strictEqual(requests.length, 2)
    })
  )
})

describe("one event for a thousand endpoints", () => {
  scenario("does not hold up another event", () =>
    Effect.gen(function* () {
      const { received, url } = yield* receiver()
      const ids = Array.from({ length: 1_000 }, (_, index) => `e${index}`)
      yield* Effect.forEach(ids, (id) => endpoint({ id, url: `${url}/wide`, types: ["wide"] }), {
        concurrency: 16
      })
      yield* endpoint({ tenant: "other", url: `${url}/other` })
      const facts = yield* history
      yield* worker()
      yield* publish("wide")
      yield* publishTo("other.narrow")
      yield* received(1_001)
      yield* facts.count("delivered", 1_001)
      // By when they were sent: the receiver shares this process, and answers in any order.
      const sentAt = ({ at, durationMs = 0 }: Fact) => at - durationMs
      const inOrder = facts.of("delivered").toSorted((a, b) => sentAt(a) - sentAt(b))
      assert.isBelow(
        inOrder.findIndex(({ tenant }) => tenant === "other"),
        900
      )
      assert.strictEqual(new Set(facts.of("delivered").map(({ delivery }) => delivery)).size, 1_001)
    })
  )
})
