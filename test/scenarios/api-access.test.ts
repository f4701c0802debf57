import { request } from "node:http"
import { connect } from "node:net"
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Logger, References, Scope } from "effect"
import { disableEndpoint } from "../../src/operations/endpoints/change-state.ts"
import { revokeTestToken, startConsole } from "../kit/console.ts"
import { endpoint, eventually, history, publish, quickRetry, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const idOf = (token: string): string => token.split("_")[1] ?? ""
const acme = "/v1/tenants/acme/endpoints"

describe.concurrent("a token", () => {
  scenario("is refused within a second of its revocation, and ends what it follows", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole()
      const token = yield* make()
      const followed = yield* Effect.promise(() =>
        fetch(`${url}/v1/tenants/acme/live`, { headers: { authorization: `Bearer ${token}` } })
      )
      assert.strictEqual(followed.status, 200)
      const ended = Effect.promise(() => followed.text())
      const revokedAt = yield* Clock.currentTimeMillis
      yield* revokeTestToken(idOf(token))
      yield* eventually(ask(acme, { token }), ({ status }) => status === 401)
      assert.isBelow((yield* Clock.currentTimeMillis) - revokedAt, 1_000)
      assert.include(yield* ended, ": following")
    })
  )

  scenario("that expires is refused from then on", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const now = yield* Clock.currentTimeMillis
      const token = yield* make({ expiresAt: now + 700 })
      const answer = yield* eventually(ask(acme, { token }), ({ text }) => text.includes("expired"))
      assert.strictEqual(answer.status, 401)
      assert.strictEqual(answer.headers.get("www-authenticate"), 'Bearer realm="petrel"')
    })
  )

  scenario("makes only as many requests as its rate allows, and no other waits for it", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const [slow, other] = [yield* make({ rate: 2 }), yield* make()]
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () => ask(acme, { token: slow })),
        { concurrency: 8 }
      )
      const refused = answers.filter(({ status }) => status === 429)
      assert.isAtLeast(refused.length, 5)
      for (const { headers } of refused) assert.strictEqual(headers.get("retry-after"), "1")
      assert.strictEqual((yield* ask(acme, { token: other })).status, 200)
      yield* eventually(ask(acme, { token: slow }), ({ status }) => status === 200)
    })
  )

  scenario("sees what a receiver answered only where it may see what was sent", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const hook = yield* receiver({ answer: { status: 400, body: "you sent: a secret" } })
      yield* endpoint({ url: hook.url, retry: quickRetry({ maxAttempts: 1 }) })
      const facts = yield* history
      yield* worker()
      yield* publish("invoice.paid", "a secret", { "Nats-Msg-Id": "acme.x" })
      yield* facts.count("dead-lettered", 1)
      const path = "/v1/tenants/acme/deliveries/acme.x.hook"
      const without = yield* ask(path, { token: yield* make({ scopes: ["deliveries:read"] }) })
      assert.strictEqual(without.status, 200)
      assert.include(without.text, '"status":400')
      assert.notInclude(without.text, "a secret")
      const scopes = ["deliveries:read", "payloads:read"] as const
      assert.include((yield* ask(path, { token: yield* make({ scopes }) })).text, "a secret")
    })
  )

  scenario("makes tokens with its own scopes and tenant only", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ scopes: ["tokens:write", "endpoints:read"] })
      const create = (body: object, tenant = "acme") =>
        ask(`/v1/tenants/${tenant}/tokens`, { method: "POST", token, body })
      const made = yield* create({ scopes: ["endpoints:read"], name: "theirs" })
      assert.strictEqual(made.status, 201)
      const child = String(made.json.token)
      yield* eventually(ask(acme, { token: child }), ({ status }) => status === 200)
      assert.strictEqual((yield* create({ scopes: ["dead:write"] })).status, 403)
      assert.strictEqual((yield* create({ scopes: ["endpoints:read"] }, "globex")).status, 403)
      const listed = yield* ask("/v1/tenants/acme/tokens", { token })
      assert.include(listed.text, '"theirs"')
      assert.notInclude(listed.text, child)
      assert.notInclude(listed.text, "hash")
      const revoked = yield* ask(`/v1/tenants/acme/tokens/${idOf(child)}`, {
        method: "DELETE",
        token
      })
      assert.strictEqual(revoked.status, 200)
      yield* eventually(ask(acme, { token: child }), ({ status }) => status === 401)
    })
  )

  scenario("is in no log line, and its id is in each", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => {
        lines.push(JSON.stringify(message))
      })
      const log = Layer.merge(
        Logger.layer([logger]),
        Layer.succeed(References.MinimumLogLevel, "Info")
      )
      yield* Effect.gen(function* () {
        const { ask, token: make } = yield* startConsole()
        const token = yield* make()
        yield* ask(`${acme}/secret-holder`, {
          method: "PUT",
          token,
          body: { url: "https://example.com", headers: { authorization: "Bearer s3cret" } }
        })
        const headers = { "x-forwarded-for": "192.0.2.9" }
        yield* ask(`${acme}/secret-holder/secret`, { token, headers })
        const all = lines.join("\n")
        assert.include(all, idOf(token))
        assert.include(all, '"client":"127.0.0.1"')
        assert.notInclude(all, "192.0.2.9")
        for (const secret of [token, "s3cret", "whsec_"]) assert.notInclude(all, secret)
      }).pipe(Effect.provide(log))
    })
  )
})

describe.concurrent("the console", () => {
  scenario("answers what is in flight when it stops, and ends what has no end", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e" })
      const scope = yield* Scope.make()
      const { ask, token: make, url } = yield* startConsole().pipe(Scope.provide(scope))
      const token = yield* make()
      const live = yield* Effect.promise(() =>
        fetch(`${url}/v1/tenants/acme/live`, { headers: { authorization: `Bearer ${token}` } })
      )
      const { hostname, port } = new URL(url)
      const answered = Effect.promise(
        () =>
          new Promise<number | undefined>((resolve, reject) => {
            const slow = request(
              {
                host: hostname,
                port,
                path: "/v1/tenants/acme/events",
                method: "POST",
                headers: {
                  authorization: `Bearer ${token}`,
                  "content-type": "application/json",
                  "content-length": 25,
                  expect: "100-continue"
                }
              },
              (response) => resolve(response.statusCode)
            ).on("error", reject)
            slow.flushHeaders()
            slow.on("continue", () => {
              slow.write('{"type":"a",')
              // The rest comes when the console has begun to stop.
              live.text().then(() => slow.end('"text":"bcd"}'), reject)
              Effect.runFork(Scope.close(scope, Exit.void))
            })
          })
      )
      const status = yield* answered
      assert.oneOf(status, [200, 201])
      const gone = yield* Effect.exit(ask("/healthz"))
      assert.isTrue(Exit.isFailure(gone))
    })
  )

  scenario("follows failures of the tenant alone", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e" })
      yield* endpoint({ tenant: "globex", id: "g" })
      const { token: make, url } = yield* startConsole()
      const token = yield* make()
      const response = yield* Effect.promise(() =>
        fetch(`${url}/v1/tenants/acme/live`, { headers: { authorization: `Bearer ${token}` } })
      )
      const reader = response.body?.getReader()
      let heard = ""
      const more = Effect.promise(async () => {
        const part = await reader?.read()
        heard += Buffer.from(part?.value ?? []).toString()
        return heard
      })
      // From its first id on, nothing is missed.
      yield* eventually(more, (text) => text.includes("id: "))
      yield* disableEndpoint({ tenant: "globex", id: "g" }, {}, "test")
      yield* disableEndpoint({ tenant: "acme", id: "e" }, {}, "test")
      yield* eventually(more, (text) => /event: failure\n.*\n\n/s.test(text))
      assert.match(heard, /event: failure\nid: \d+\ndata: \{.*"endpoint-disabled".*"acme"/)
      assert.notInclude(heard, "globex")
      yield* Effect.promise(async () => reader?.cancel())
    })
  )

  scenario("cuts off who does not send a request", () =>
    Effect.gen(function* () {
      const { url } = yield* startConsole({ headersWithin: 300 })
      const { port } = new URL(url)
      const heard = yield* Effect.promise(
        () =>
          new Promise<string>((resolve, reject) => {
            const socket = connect(Number(port), "127.0.0.1", () =>
              socket.write("GET / HTTP/1.1\r\n")
            )
            let text = ""
            socket.on("data", (chunk) => {
              text += chunk.toString()
            })
            socket.on("close", () => resolve(text)).on("error", reject)
          })
      )
      assert.match(heard, /^HTTP\/1\.1 408 /)
      assert.include(heard, "did not arrive in time")
    })
  )
})
