import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { writeValue } from "../../src/broker/values.ts"
import { defaultBounds } from "../../src/intake/gateway/admission.ts"
import { listQuarantined, release } from "../../src/operations/sources/manage-quarantine.ts"
import { setSource } from "../../src/operations/sources/manage-sources.ts"
import { eventually, nth } from "../kit/engine.ts"
import {
  heldBroker,
  postTo,
  source,
  startGateway,
  stripeEvent,
  stripeSecret,
  stripeSource,
  stripeWebhook
} from "../kit/gateway.ts"
import { head, rawClient } from "../kit/raw-client.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const path = "/in/acme/stripe"
const forged = stripeWebhook(stripeEvent("evt_forged"), "whsec_another")

describe.concurrent("who knows the URL of a source, and no secret of it,", () => {
  scenario("holds no place by bodies that do not come", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const bounds = { ...defaultBounds, requests: 8, bytes: 256 * 1024 }
      const { port, post } = yield* startGateway({ bounds })
      const url = `http://127.0.0.1:${port}`
      const slow = Effect.map(rawClient(url), ({ send }) =>
        send(`${head("POST", path, { "content-length": 900_000 })}ab`)
      )
      yield* Effect.all(
        Array.from({ length: 32 }, () => slow),
        { concurrency: 8 }
      )
      for (const id of ["1", "2", "3"])
        assert.strictEqual((yield* post(path, stripeWebhook(stripeEvent(id)))).status, 200)
    })
  )

  scenario("loses the room of a body that comes too slowly, once another wants it", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const bounds = { ...defaultBounds, bytes: 256 * 1024 }
      const { port, post } = yield* startGateway({ bounds })
      const slow = yield* rawClient(`http://127.0.0.1:${port}`)
      slow.send(head("POST", path, { "content-length": 900_000 }))
      slow.send("x".repeat(50_000))
      const large = stripeWebhook(stripeEvent("evt_1", { large: "x".repeat(40_000) }))
      const answers = yield* eventually(post(path, large), ({ status }) => status === 200)
      assert.strictEqual(answers.status, 200)
      yield* eventually(Effect.sync(slow.heard), (heard) => heard.includes(" 503 "))
    })
  )

  scenario("takes nothing of its rate", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      yield* setSource(
        { tenant: "acme", id: "stripe" },
        { rate: { perSecond: 1 / 60, burst: 1 } },
        "t"
      )
      const { post } = yield* startGateway()
      for (let n = 0; n < 5; n++) assert.strictEqual((yield* post(path, forged)).status, 401)
      assert.strictEqual((yield* post(path, stripeWebhook(stripeEvent("evt_1")))).status, 200)
      assert.strictEqual((yield* post(path, stripeWebhook(stripeEvent("evt_2")))).status, 429)
    })
  )

  scenario("does not keep a gateway from finding out that the broker is back", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const held = yield* heldBroker(({ subject }) => subject.includes(".stripe."))
      const bounds = { ...defaultBounds, silentMs: 300 }
      const { post, problems } = yield* Effect.provideService(
        startGateway({ bounds }),
        Broker,
        held.broker
      )
      assert.strictEqual((yield* post(path, stripeWebhook(stripeEvent("evt_1")))).status, 503)
      assert.lengthOf(problems(), 1)
      yield* held.release
      // They come faster than the broker is tried.
      const flood = yield* Effect.forkChild(
        Effect.forEach(
          ["a", "b", "c", "d"],
          () => Effect.forever(Effect.ignore(post(path, forged))),
          { concurrency: "unbounded" }
        )
      )
      for (const id of ["1", "2", "3"])
        yield* eventually(
          post(path, stripeWebhook(stripeEvent(`evt_${id}`))),
          ({ status }) => status === 200
        )
      yield* Fiber.interrupt(flood)
      assert.deepStrictEqual(problems(), [])
    })
  )

  scenario("loses its own connections where it opens too many", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { port, post } = yield* startGateway({ maxConnections: 16 })
      const url = `http://127.0.0.1:${port}`
      const other = yield* rawClient(url, "127.0.0.2")
      const many = yield* Effect.all(
        Array.from({ length: 24 }, () => rawClient(url)),
        { concurrency: 8 }
      )
      assert.strictEqual((yield* post(path, stripeWebhook(stripeEvent("evt_1")))).status, 200)
      yield* eventually(
        Effect.sync(() => many.filter((one) => !one.isOpen()).length),
        (closed) => closed >= 17
      )
      assert.isTrue(other.isOpen())
    })
  )
})

describe.concurrent("a gateway", () => {
  scenario("takes a body in many pieces, and asks for one only if it is wanted", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { port } = yield* startGateway()
      const url = `http://127.0.0.1:${port}`
      const { body, headers } = stripeWebhook(stripeEvent("evt_1", { large: "x".repeat(9_000) }))
      const pieces = yield* rawClient(url)
      pieces.send(head("POST", path, { ...headers, "transfer-encoding": "chunked" }))
      for (let at = 0; at < body.length; at += 7) {
        const piece = body.slice(at, at + 7)
        pieces.send(`${piece.length.toString(16)}\r\n${piece}\r\n`)
      }
      pieces.send("0\r\n\r\n")
      yield* eventually(Effect.sync(pieces.heard), (heard) => heard.includes(" 200 "))
      const waits = { expect: "100-continue", "content-length": 2_000_000 }
      const large = yield* rawClient(url)
      large.send(head("POST", path, waits))
      yield* eventually(Effect.sync(large.heard), (heard) => heard.startsWith("HTTP/1.1 413 "))
      const right = yield* rawClient(url)
      const expected = { ...headers, ...waits, "content-length": body.length }
      right.send(head("POST", path, expected))
      yield* eventually(Effect.sync(right.heard), (heard) => heard.includes(" 100 "))
      right.send(body)
      yield* eventually(Effect.sync(right.heard), (heard) => heard.includes(" 200 "))
    })
  )

  scenario("says in a sentence why it takes nothing that is no request", () =>
    Effect.gen(function* () {
      const { port } = yield* startGateway()
      for (const [said, status, why] of [
        [head("POST", path, { x: "x".repeat(70_000) }), 431, "the headers are too large"],
        ["no HTTP\r\n\r\n", 400, "this is no HTTP request that can be read"]
      ] as const) {
        const client = yield* rawClient(`http://127.0.0.1:${port}`)
        client.send(said)
        yield* client.closed
        assert.match(client.heard(), new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\n\\r\\n${why}$`))
      }
    })
  )

  scenario("answers what is under way when it stops, and closes each connection after that", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const held = yield* heldBroker(({ subject }) => subject.includes(".stripe."))
      const [started, stop] = [yield* Deferred.make<number>(), yield* Deferred.make<void>()]
      const running = yield* Effect.gen(function* () {
        const { port } = yield* startGateway({ stopWithinMs: 60_000 })
        yield* Deferred.succeed(started, port)
        yield* Deferred.await(stop)
      }).pipe(Effect.provideService(Broker, held.broker), Effect.scoped, Effect.forkChild)
      const port = yield* Deferred.await(started)
      const { body, headers } = stripeWebhook(stripeEvent("evt_1"))
      const client = yield* rawClient(`http://127.0.0.1:${port}`)
      client.send(head("POST", path, { ...headers, "content-length": body.length }) + body)
      yield* eventually(held.count, (count) => count === 1)
      yield* Deferred.succeed(stop, undefined)
      const isRefused = Effect.map(Effect.result(postTo(port, path, {})), Result.isFailure)
      yield* eventually(isRefused, (is) => is)
      yield* held.release
      yield* client.closed
      assert.match(client.heard(), /^HTTP\/1.1 200 .*connection: close/s)
      yield* Fiber.join(running)
    })
  )

  scenario("knows an event again whose repeat tells of the sending", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { counted, post } = yield* startGateway()
      const send = (changes: object) => post(path, stripeWebhook(stripeEvent("evt_1", changes)))
      assert.strictEqual((yield* send({ pending_webhooks: 2 })).status, 200)
      assert.strictEqual((yield* send({ pending_webhooks: 1 })).status, 200)
      assert.strictEqual(counted("acme/stripe", "repeated"), 1)
      assert.deepStrictEqual(yield* listQuarantined("acme"), [])
      yield* send({ pending_webhooks: 1, livemode: true })
      assert.lengthOf(yield* listQuarantined("acme"), 1)
    })
  )

  scenario("puts aside what has endless names, with what fits of them", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { post } = yield* startGateway()
      const long = "\u0001é".repeat(100_000)
      const send = (event: object) => post(path, stripeWebhook(event))
      assert.strictEqual((yield* send(stripeEvent("evt_1", { type: long }))).status, 200)
      assert.strictEqual((yield* send(stripeEvent(long))).status, 200)
      assert.strictEqual((yield* send(stripeEvent(long, { livemode: true }))).status, 200)
      const found = yield* listQuarantined("acme")
      assert.deepStrictEqual(
        found.map(({ reason }) => reason),
        ["invalid", "id-collision"]
      )
      const { events } = yield* release("acme", nth(found, 1).number, undefined, "ana")
      assert.lengthOf(events, 1)
    })
  )

  scenario("tells providers to come again where another version wrote their source", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { post } = yield* startGateway()
      const of = { expected: 0, headers: [] }
      yield* writeValue(names.buckets.sources, "acme.stripe", `{"v":2}`, of)
      yield* source("other", { provider: "stripe", secrets: [stripeSecret] })
      const other = stripeWebhook(stripeEvent("evt_1"))
      yield* eventually(post("/in/acme/other", other), ({ status }) => status === 200)
      const answer = yield* post(path, other)
      assert.deepStrictEqual([answer.status, answer.headers["retry-after"]], [503, "2"])
    })
  )
})
