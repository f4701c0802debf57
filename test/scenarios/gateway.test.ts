import { createHmac, generateKeyPairSync, sign } from "node:crypto"
import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { readGatewayReports } from "../../src/cluster/gateway-reports.ts"
import { defaultBounds } from "../../src/intake/gateway/admission.ts"
import {
  discard,
  listQuarantined,
  release,
  showQuarantined
} from "../../src/operations/sources/manage-quarantine.ts"
import {
  removeSource,
  rotateSource,
  setSource
} from "../../src/operations/sources/manage-sources.ts"
import { run } from "../cli/in-process.ts"
import { endpoint, eventually, history, installation, nth, worker } from "../kit/engine.ts"
import {
  githubWebhook,
  heldBroker,
  postTo,
  source,
  startGateway,
  stripeEvent,
  stripeSecret,
  stripeSource,
  stripeWebhook
} from "../kit/gateway.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage, quiet } from "../kit/scenario.ts"
import { keySamples } from "../providers/key-samples.ts"

const { scenario } = onServer()

const path = "/in/acme/stripe"

const stored = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { state } = yield* ask("count", () =>
    jsm.streams.info(names.intake, { subjects_filter: ">" })
  )
  const quarantined = Object.entries(state.subjects ?? {})
    .filter(([subject]) => subject.includes(".quarantine."))
    .reduce((sum, [, count]) => sum + count, 0)
  return { events: state.messages - quarantined, quarantined }
})

describe.concurrent("a gateway", () => {
  scenario("takes what Stripe's own library signs, once, and it is delivered", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url, types: ["stripe.invoice.>"] })
      yield* worker()
      yield* stripeSource()
      const { counted, post } = yield* startGateway()
      const webhook = stripeWebhook(stripeEvent("evt_1"))
      assert.strictEqual((yield* post(path, webhook)).status, 200)
      assert.strictEqual((yield* post(path, webhook)).status, 200)
      yield* hook.received(1)
      const request = nth(hook.requests, 0)
      assert.strictEqual(request.body.toString(), webhook.body)
      assert.deepInclude(request.headers, {
        "webhook-id": "acme.stripe.evt_1",
        "content-type": "application/json"
      })
      assert.deepStrictEqual(yield* stored, { events: 1, quarantined: 0 })
      assert.strictEqual(counted("acme/stripe", "taken"), 1)
      assert.strictEqual(counted("acme/stripe", "repeated"), 1)
    })
  )

  scenario("refuses what is not signed by the source, and says so after ten", () =>
    Effect.gen(function* () {
      const facts = yield* history
      yield* stripeSource()
      const { post } = yield* startGateway()
      const forged = stripeWebhook(stripeEvent("evt_1"), "whsec_another")
      for (let n = 0; n < 12; n++) assert.strictEqual((yield* post(path, forged)).status, 401)
      const { body, headers } = stripeWebhook(stripeEvent("evt_1"))
      const altered = { headers, body: body.replace("paid", "void") }
      assert.strictEqual((yield* post(path, altered)).status, 401)
      assert.strictEqual((yield* post("/in/acme/other", forged)).status, 404)
      assert.strictEqual((yield* post("/in/globex/stripe", forged)).status, 404)
      assert.strictEqual((yield* post("/elsewhere", forged)).status, 404)
      assert.strictEqual((yield* post(path, { method: "GET" })).status, 405)
      assert.deepStrictEqual(yield* stored, { events: 0, quarantined: 0 })
      yield* facts.count("source-refusing", 1)
      const [told] = facts.of("source-refusing")
      assert.match(String(told?.reason), /10 requests in a row .* signature-mismatch/)
      assert.lengthOf(facts.of("source-refusing"), 1)
    })
  )

  scenario("says that a clock is wrong where the sender's is 10 minutes off", () =>
    Effect.gen(function* () {
      const facts = yield* history
      yield* stripeSource()
      const { counted, post } = yield* startGateway()
      const off = (minutes: number, n: number) =>
        post(
          path,
          stripeWebhook(stripeEvent(`evt_${n}`), stripeSecret, Date.now() / 1_000 + minutes * 60)
        )
      const late = yield* off(-10, 1)
      assert.strictEqual(late.status, 401)
      assert.match(
        late.body,
        /signed 10 min( \d+ s)? ago, but only 5 min are allowed: .* or a clock is wrong/
      )
      for (let n = 2; n < 11; n++) assert.strictEqual((yield* off(10, n)).status, 401)
      assert.strictEqual(counted("acme/stripe", "unauthorized"), 10)
      yield* facts.count("source-refusing", 1)
      assert.match(
        String(facts.of("source-refusing")[0]?.reason),
        /10 requests in a row .* timestamp-too-new: It was signed 10 min in the future, .* a clock is wrong$/
      )
      assert.strictEqual((yield* off(4, 11)).status, 200)
      assert.deepStrictEqual(yield* stored, { events: 1, quarantined: 0 })
    })
  )

  scenario("says so where a provider's certificate cannot be fetched", (place) =>
    Effect.gen(function* () {
      const facts = yield* history
      const paypal = keySamples.find(({ name }) => name === "paypal")
      if (paypal === undefined) return assert.fail("there is a sample")
      const key = nth(paypal.keys, 0)
      yield* source("paypal", { provider: "paypal", secrets: [], webhookId: key.verifying })
      const { counted, post } = yield* startGateway({ reportMs: 100 })
      // The gateway asks nobody: the requests of this test go by node:http.
      vi.stubGlobal("fetch", () => Promise.reject(new Error("no such host")))
      yield* Effect.addFinalizer(() => Effect.sync(() => vi.unstubAllGlobals()))
      const { body, headers } = yield* Effect.promise(async () =>
        paypal.sign({ at: Date.now(), body: paypal.body, key })
      )
      const signed = { body, headers: headers as Record<string, string> }
      for (let n = 0; n < 10; n++) {
        const { body: said, status } = yield* post("/in/acme/paypal", signed)
        assert.deepStrictEqual(
          [status, said],
          [503, "the provider's certificate could not be fetched"]
        )
      }
      assert.strictEqual(counted("acme/paypal", "not-verifiable"), 10)
      yield* facts.count("source-refusing", 1)
      const reason = `10 requests in a row were not verified, the last one for certificate-unknown: the provider's certificate could not be fetched: no such host`
      assert.strictEqual(facts.of("source-refusing")[0]?.reason, reason)
      const reported = Effect.map(readGatewayReports, ([one]) => one?.refusing[0]?.reason)
      yield* eventually(reported, (text) => text === reason)
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const { out } = yield* run("source", "show", "acme/paypal", ...flags)
      assert.match(
        out.join(),
        /refuses +every request on .*: 10 requests in a row .*: no such host$/
      )
    })
  )

  scenario("knows sources and secrets as they change", () =>
    Effect.gen(function* () {
      const { post } = yield* startGateway()
      const statusOf = (secret: string) =>
        Effect.map(
          post(path, stripeWebhook(stripeEvent(`evt_${secret}`), secret)),
          ({ status }) => status
        )
      assert.strictEqual(yield* statusOf(stripeSecret), 404)
      yield* stripeSource()
      yield* eventually(statusOf(stripeSecret), (status) => status === 200)
      const name = { tenant: "acme", id: "stripe" }
      yield* rotateSource(name, { secret: "whsec_new", keepOld: Duration.hours(1) }, "test")
      yield* eventually(statusOf("whsec_new"), (status) => status === 200)
      assert.strictEqual(yield* statusOf(stripeSecret), 200)
      yield* rotateSource(name, { secret: "whsec_newer", keepOld: Duration.millis(300) }, "test")
      yield* eventually(statusOf("whsec_new"), (status) => status === 401)
      assert.strictEqual(yield* statusOf("whsec_newer"), 200)
      yield* removeSource(name, "test")
      yield* eventually(statusOf("whsec_newer"), (status) => status === 404)
    })
  )

  scenario("puts into quarantine what it cannot read, and an id with other bytes", () =>
    Effect.gen(function* () {
      const facts = yield* history
      yield* stripeSource()
      const { post } = yield* startGateway()
      const statuses = yield* Effect.forEach(
        [stripeEvent("evt_1"), stripeEvent("evt_1", { created: 1 }), { object: "unknown" }, []],
        (event) => Effect.map(post(path, stripeWebhook(event)), ({ status }) => status)
      )
      assert.deepStrictEqual(statuses, [200, 200, 200, 200])
      assert.deepStrictEqual(yield* stored, { events: 1, quarantined: 3 })
      const found = yield* listQuarantined("acme")
      assert.deepStrictEqual(
        found.map(({ event, reason, source }) => [source, reason, event]),
        [
          ["stripe", "id-collision", "evt_1"],
          ["stripe", "unreadable", undefined],
          ["stripe", "unreadable", undefined]
        ]
      )
      assert.deepStrictEqual(yield* listQuarantined("globex"), [])
      const [collided = 0, unreadable = 0, other = 0] = found.map(({ number }) => number)
      const shown = yield* showQuarantined("acme", unreadable)
      assert.strictEqual(Buffer.from(shown.body ?? "", "base64").toString(), `{"object":"unknown"}`)
      assert.notInclude(JSON.stringify(shown), "stripe-signature")
      const first = yield* release("acme", collided, undefined, "ana")
      assert.match(nth(first.events, 0).id, /^evt_1~[0-9a-f]{12}$/)
      const refused = yield* Effect.flip(release("acme", unreadable, undefined, "ana"))
      assert.match(refused.message, /give it a type/)
      assert.match(
        (yield* Effect.flip(showQuarantined("globex", unreadable))).message,
        /globex has no/
      )
      yield* release("acme", unreadable, "thing.unknown", "ana")
      yield* discard("acme", other, "ana")
      assert.deepStrictEqual(yield* stored, { events: 3, quarantined: 0 })
      yield* facts.count("quarantine-discarded", 1)
      assert.deepStrictEqual(
        facts.facts.map(({ by, kind, reason }) => [kind, reason, by]).slice(1),
        [
          ["quarantined", "id-collision", undefined],
          ["quarantined", "unreadable", undefined],
          ["quarantined", "unreadable", undefined],
          ["quarantine-released", "id-collision", "ana"],
          ["quarantine-released", "unreadable", "ana"],
          ["quarantine-discarded", "unreadable", "ana"]
        ]
      )
    })
  )

  scenario(
    "tells a source whose quarantine is full to come again, and takes its other requests",
    () =>
      Effect.gen(function* () {
        yield* stripeSource()
        const { post } = yield* startGateway()
        const statuses = yield* Effect.forEach(
          Array.from({ length: 101 }, (_, n) => n),
          (n) => Effect.map(post(path, stripeWebhook({ unknown: n })), ({ status }) => status),
          { concurrency: 8 }
        )
        assert.lengthOf(
          statuses.filter((status) => status === 200),
          100
        )
        assert.lengthOf(
          statuses.filter((status) => status === 503),
          1
        )
        assert.strictEqual((yield* post(path, stripeWebhook(stripeEvent("evt_1")))).status, 200)
        yield* source("stripe", { provider: "stripe", secrets: [stripeSecret] }, "globex")
        const there = yield* eventually(
          post("/in/globex/stripe", stripeWebhook({ unknown: 1 })),
          ({ status }) => status !== 404
        )
        assert.strictEqual(there.status, 200)
      })
  )

  scenario("answers handshakes, and takes the hash of a body without an id", () =>
    Effect.gen(function* () {
      yield* source("slack", { provider: "slack", secrets: ["slack-secret"] })
      yield* source("meta", { provider: "meta", secrets: ["app-secret"], verifyToken: "mine" })
      yield* source("legacy", {
        provider: "hmac",
        secrets: ["s"],
        scheme: { header: "x-acme-signature" }
      })
      const { post } = yield* startGateway()
      const challenge = yield* post(
        "/in/acme/meta?hub.mode=subscribe&hub.verify_token=mine&hub.challenge=42",
        { method: "GET" }
      )
      assert.deepStrictEqual([challenge.status, challenge.body], [200, "42"])
      const wrong = yield* post(
        "/in/acme/meta?hub.mode=subscribe&hub.verify_token=no&hub.challenge=1",
        {
          method: "GET"
        }
      )
      assert.strictEqual(wrong.status, 405)
      assert.match(wrong.body, /carry the source's verify token/)

      yield* source("zoom", { provider: "zoom", secrets: ["zoom-secret"] })
      yield* source("x", { provider: "x", secrets: ["x-secret"] })
      const now = String(Math.floor(Date.now() / 1_000))
      const hmac = (secret: string, text: string, as: "hex" | "base64" = "hex") =>
        createHmac("sha256", secret).update(text).digest(as)
      const signed = (name: string, secret: string, message: object) => {
        const body = JSON.stringify(message)
        return {
          body,
          headers: {
            "content-type": "application/json",
            [`x-${name}-request-timestamp`]: now,
            [name === "zm" ? "x-zm-signature" : "x-slack-signature"]:
              `v0=${hmac(secret, `v0:${now}:${body}`)}`
          }
        }
      }
      const hello = { type: "url_verification", challenge: "c-1" }
      const slack = yield* post("/in/acme/slack", signed("slack", "slack-secret", hello))
      assert.strictEqual(slack.status, 200)
      assert.include(slack.body, "c-1")
      const strange = yield* post("/in/acme/slack", signed("slack", "another", hello))
      assert.strictEqual(strange.status, 401)
      const token = { event: "endpoint.url_validation", payload: { plainToken: "p-1" } }
      const zoom = yield* eventually(
        post("/in/acme/zoom", signed("zm", "zoom-secret", token)),
        ({ status }) => status !== 404
      )
      assert.deepStrictEqual(JSON.parse(zoom.body), {
        plainToken: "p-1",
        encryptedToken: hmac("zoom-secret", "p-1")
      })
      const crc = yield* post("/in/acme/x?crc_token=t-1", { method: "GET" })
      assert.deepStrictEqual(JSON.parse(crc.body), {
        response_token: `sha256=${hmac("x-secret", "t-1", "base64")}`
      })
      const body = `{"n":1}`
      const headers = { "x-acme-signature": hmac("s", body) }
      for (let n = 0; n < 3; n++)
        assert.strictEqual((yield* post("/in/acme/legacy", { body, headers })).status, 200)
      assert.deepStrictEqual(yield* stored, { events: 1, quarantined: 0 })
    })
  )

  scenario("answers Discord without a body, as it wants", () =>
    Effect.gen(function* () {
      const keys = generateKeyPairSync("ed25519")
      const key = keys.publicKey
        .export({ type: "spki", format: "der" })
        .subarray(-32)
        .toString("hex")
      yield* source("discord", { provider: "discord", secrets: [key] })
      const { post } = yield* startGateway()
      const send = (body: string) => {
        const time = String(Math.floor(Date.now() / 1_000))
        const signature = sign(null, Buffer.from(time + body), keys.privateKey).toString("hex")
        const headers = { "x-signature-ed25519": signature, "x-signature-timestamp": time }
        return post("/in/acme/discord", { body, headers })
      }
      const event = { type: "ENTITLEMENT_CREATE", timestamp: "2026-11-26T12:00:00Z", data: {} }
      const answers = yield* Effect.forEach(
        [
          { version: 1, type: 0 },
          { version: 1, type: 1, event },
          { version: 1, type: 1, event: 7 }
        ],
        (body) => send(JSON.stringify(body))
      )
      assert.deepStrictEqual(
        answers.map(({ body, status }) => [status, body]),
        [
          [204, ""],
          [204, ""],
          [204, ""]
        ]
      )
      assert.deepStrictEqual(yield* stored, { events: 1, quarantined: 1 })
    })
  )

  scenario("makes each item of a batch one event, with what a repeat brings anew", () =>
    Effect.gen(function* () {
      const keys = generateKeyPairSync("ec", { namedCurve: "P-256" })
      const key = keys.publicKey.export({ type: "spki", format: "der" }).toString("base64")
      yield* source("mail", { provider: "sendgrid", secrets: [key] })
      const { counted, post } = yield* startGateway()
      const send = (ids: ReadonlyArray<string>) => {
        const body = JSON.stringify(
          ids.map((id) => ({ sg_event_id: id, event: "delivered", timestamp: 1_764_000_000 }))
        )
        const time = String(Math.floor(Date.now() / 1_000))
        const signature = sign("sha256", Buffer.from(time + body), keys.privateKey)
        return post("/in/acme/mail", {
          body,
          headers: {
            "content-type": "application/json",
            "x-twilio-email-event-webhook-signature": signature.toString("base64"),
            "x-twilio-email-event-webhook-timestamp": time
          }
        })
      }
      assert.strictEqual((yield* send(["a", "b", "c"])).status, 200)
      assert.strictEqual((yield* send(["b", "c", "d"])).status, 200)
      assert.strictEqual((yield* send(["a", "b"])).status, 200)
      assert.deepStrictEqual(yield* stored, { events: 4, quarantined: 0 })
      assert.strictEqual(counted("acme/mail", "taken"), 2)
      assert.strictEqual(counted("acme/mail", "repeated"), 1)
    })
  )

  scenario("refuses bodies that no event may have, and clients that do not finish", () =>
    Effect.gen(function* () {
      const facts = yield* history
      yield* stripeSource()
      const { counted, port, post } = yield* startGateway({ requestWithinMs: 500 })
      const large = stripeWebhook(stripeEvent("evt_1", { large: "x".repeat(1_000_000) }))
      assert.strictEqual((yield* post(path, large)).status, 413)
      const chunked = { ...large.headers, "transfer-encoding": "chunked" }
      assert.strictEqual((yield* post(path, { ...large, headers: chunked })).status, 413)
      const fits = stripeWebhook(stripeEvent("evt_2", { large: "x".repeat(900_000) }))
      assert.strictEqual((yield* post(path, fits)).status, 200)
      yield* facts.count("source-refusing", 1)
      const slow = yield* Effect.callback<string>((resume) => {
        const socket = connect(port, "127.0.0.1", () =>
          socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nab`)
        )
        let text = ""
        socket.on("data", (data) => {
          text += data.toString()
        })
        socket.on("close", () => resume(Effect.succeed(text)))
      })
      assert.match(slow, /^HTTP\/1.1 408|^$/)
      const gone = connect(port, "127.0.0.1", () => {
        gone.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nab`)
        gone.end()
      })
      yield* eventually(
        Effect.sync(() => counted("acme/stripe", "broken-off")),
        (count) => count >= 2
      )
      assert.strictEqual((yield* post(path, stripeWebhook(stripeEvent("evt_3")))).status, 200)
    })
  )

  scenario("holds a source back by its rate, and leaves others alone", () =>
    Effect.gen(function* () {
      const github = "github-secret"
      yield* stripeSource()
      yield* source("hub", { provider: "github", secrets: [github] })
      yield* setSource(
        { tenant: "acme", id: "stripe" },
        { rate: { perSecond: 1 / 60, burst: 2 } },
        "t"
      )
      const { post } = yield* startGateway()
      const answers = yield* Effect.forEach(["1", "2", "3"], (id) =>
        post(path, stripeWebhook(stripeEvent(`evt_${id}`)))
      )
      // Stripe is known to come again after 429.
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [200, 200, 429]
      )
      assert.isAtLeast(Number(nth(answers, 2).headers["retry-after"]), 1)
      const push = (id: string) => post("/in/acme/hub", githubWebhook(id, `{"ref":"main"}`, github))
      assert.strictEqual((yield* push("d-1")).status, 200)
      // Of GitHub that is not known.
      const slow = { rate: { perSecond: 1 / 60, burst: 1 } }
      yield* setSource({ tenant: "acme", id: "hub" }, slow, "t")
      let n = 2
      const refused = yield* eventually(
        Effect.suspend(() => push(`d-${n++}`)),
        ({ status }) => status !== 200
      )
      assert.strictEqual(refused.status, 503)
      assert.isAtLeast(Number(refused.headers["retry-after"]), 1)
    })
  )

  scenario("in a storm of one source answers the others", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      yield* stripeSource("calm")
      const held = yield* heldBroker(({ subject }) => subject.includes(".stripe."))
      const bounds = { ...defaultBounds, requests: 8 }
      const { post } = yield* Effect.provideService(startGateway({ bounds }), Broker, held.broker)
      const storm = yield* Effect.forkChild(
        Effect.forEach(
          ["1", "2"],
          (id) => post(path, stripeWebhook(stripeEvent(`evt_storm_${id}`))),
          { concurrency: 2 }
        )
      )
      yield* eventually(held.count, (count) => count === 2)
      const refused = yield* post(path, stripeWebhook(stripeEvent("evt_1")))
      assert.deepStrictEqual([refused.status, refused.headers["retry-after"]], [503, "1"])
      assert.strictEqual(String(refused.body), "too much comes at once: send it again")
      const calm = yield* post("/in/acme/calm", stripeWebhook(stripeEvent("evt_2")))
      assert.strictEqual(calm.status, 200)
      // What the broker has not acknowledged is not answered.
      assert.isUndefined(storm.pollUnsafe())
      yield* held.release
      assert.deepStrictEqual(
        (yield* Fiber.join(storm)).map(({ status }) => status),
        [200, 200]
      )
      const after = yield* post(path, stripeWebhook(stripeEvent("evt_1")))
      assert.strictEqual(after.status, 200)
    })
  )
})

describe("a gateway whose broker does not answer", () => {
  const quick = { bounds: { ...defaultBounds, silentMs: 500 }, reportMs: 100 }
  const problemOf = Effect.map(readGatewayReports, ([one]) => one?.problem)

  outage("says so within seconds, then at once, and goes on by itself", (_, server) =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { port, problems } = yield* startGateway(quick)
      const post = (id: string) => postTo(port, path, stripeWebhook(stripeEvent(id)))
      assert.strictEqual((yield* post("evt_1")).status, 200)
      assert.isUndefined(yield* problemOf)
      server.pause()
      const first = yield* post("evt_2")
      assert.deepStrictEqual([first.status, first.headers["retry-after"]], [503, "2"])
      assert.lengthOf(problems(), 1)
      const others = yield* Effect.forEach(["3", "4", "5"], (id) => post(`evt_${id}`), {
        concurrency: 3
      })
      assert.isTrue(others.every(({ status }) => status === 503))
      server.resume()
      const back = yield* eventually(post("evt_2"), ({ status }) => status === 200)
      assert.strictEqual(back.status, 200)
      assert.deepStrictEqual(problems(), [])
    })
  )

  outage("says so without a request as well, until the broker answers again", (_, server) =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { problems } = yield* startGateway(quick)
      const says = (text: string) =>
        eventually(Effect.sync(problems), ([problem = "ready"]) => problem.includes(text))
      yield* says("ready")
      server.pause()
      yield* says("does not answer")
      server.resume()
      yield* says("ready")
      yield* Effect.promise(() => server.kill9())
      yield* says("the broker is not connected")
      yield* Effect.promise(() => server.restart())
      yield* says("ready")
    })
  )

  /** A broker that denies its only user a subject to publish to, which a reload changes. */
  const denying = Effect.gen(function* () {
    const config = (denied: string) =>
      `authorization { users: [
        { user: me, password: pw, permissions: { publish: { deny: ["${denied}"] } } }
      ] }`
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startServer({ config: config("nothing") })),
      (one) => Effect.promise(() => one.stop())
    )
    return {
      place: installation({ ...server, url: server.url.replace("//", "//me:pw@") }),
      deny: (subject: string) => Effect.promise(() => server.reloadWith(config(subject)))
    }
  })

  it.live("says so while the broker does not show it the sources", () =>
    Effect.gen(function* () {
      const { deny, place } = yield* denying
      yield* place.run(
        Effect.gen(function* () {
          yield* stripeSource()
          const { problems } = yield* startGateway(quick)
          const isOutdated = Effect.map(readGatewayReports, ([one]) => one?.isOutdated === true)
          yield* eventually(readGatewayReports, (reports) => reports.length === 1)
          assert.isFalse(yield* isOutdated)
          const { names } = yield* Broker
          yield* deny(`$JS.API.STREAM.INFO.KV_${names.buckets.sources}`)
          yield* eventually(isOutdated, (is) => is, 1_000)
          // It takes what comes in from the sources that it knows.
          assert.deepStrictEqual(problems(), [])
          yield* deny("nothing")
          yield* eventually(isOutdated, (is) => !is, 1_000)
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  it.live("stores what it could not, and is ready again without another request", () =>
    Effect.gen(function* () {
      const { deny, place } = yield* denying
      yield* place.run(
        Effect.gen(function* () {
          yield* stripeSource()
          const { port, problems } = yield* startGateway(quick)
          const { names } = yield* Broker
          yield* deny(names.subjects.allIncoming)
          const refused = yield* postTo(port, path, stripeWebhook(stripeEvent("evt_1")))
          assert.strictEqual(refused.status, 503)
          yield* eventually(problemOf, (problem) => problem !== undefined)
          assert.lengthOf(problems(), 1)
          yield* deny("nothing")
          yield* eventually(problemOf, (problem) => problem === undefined)
          assert.deepStrictEqual(problems(), [])
          assert.deepStrictEqual(yield* stored, { events: 1, quarantined: 0 })
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
