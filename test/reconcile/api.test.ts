import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Agent } from "undici"
import { agent } from "../../src/delivery/http/connector.ts"
import { refusalOf } from "../../src/policy/address.ts"
import { makeApi, toldPauseMs } from "../../src/reconcile/api.ts"
import { type ApiReply, type AskedApi, providerApi } from "../kit/provider-api.ts"
import { receiver, selfSigned } from "../kit/receiver.ts"

/** An API that answers with each reply once, and then with the last for ever. */
const answering = Effect.fnUntraced(function* (
  replies: ReadonlyArray<ApiReply | ((asked: AskedApi) => ApiReply)>,
  perSecond = 1_000
) {
  let next = 0
  const server = yield* providerApi((asked) => {
    const reply = replies[Math.min(next++, replies.length - 1)] ?? {}
    return typeof reply === "function" ? reply(asked) : reply
  })
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent()),
    (made) => Effect.promise(() => made.destroy())
  )
  const heard: Array<string> = []
  const api = makeApi({
    ...{ title: "Stripe", url: `${server.url}/base/`, agent: client, perSecond, firstPauseMs: 2 },
    onWait: (text) =>
      Effect.sync(() => {
        heard.push(text)
      })
  })
  return {
    client,
    heard,
    server,
    ask: api.ask({ path: "/v1/events?limit=1" }, { authorization: "Bearer k" })
  }
})

describe("an API", () => {
  it.live("is asked below its URL, with the credentials", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* answering([{ json: { ok: 1 } }])
      assert.deepStrictEqual((yield* ask).json, { ok: 1 })
      const [asked] = server.requests
      assert.deepInclude(asked, { method: "GET", path: "/base/v1/events" })
      assert.strictEqual(asked?.headers.authorization, "Bearer k")
    }).pipe(Effect.scoped)
  )

  it.live("is asked again after 5xx, 429 and a broken connection, and as late as it says", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* answering([
        { status: 503 },
        { breaksOff: true },
        { status: 429, headers: { "retry-after": "1" } },
        { json: 1 }
      ])
      const startedAt = performance.now()
      assert.strictEqual((yield* ask).json, 1)
      assert.lengthOf(server.requests, 4)
      assert.isAtLeast(performance.now() - startedAt, 990)
    }).pipe(Effect.scoped)
  )

  it.live("is asked again after a 403 that says when, as GitHub's second limit does", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* answering([
        { status: 403, headers: { "retry-after": "1" }, json: { message: "secondary rate limit" } },
        { status: 403, headers: { "x-ratelimit-remaining": "0" } },
        { json: 1 }
      ])
      const startedAt = performance.now()
      assert.strictEqual((yield* ask).json, 1)
      assert.lengthOf(server.requests, 3)
      assert.isAtLeast(performance.now() - startedAt, 990)
    }).pipe(Effect.scoped)
  )

  it.live("says in one line why TLS fails, and where to name an authority of one's own", () =>
    Effect.gen(function* () {
      const { server } = yield* answering([{ json: 1 }])
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent()),
        (made) => Effect.promise(() => made.destroy())
      )
      const saidBy = (url: string) => {
        const options = { title: "GitLab", url, agent: client, perSecond: 1_000, firstPauseMs: 1 }
        return Effect.map(
          Effect.flip(makeApi(options).ask({ path: "/" }, {})),
          (failed) => failed.message
        )
      }
      const plain = yield* saidBy(server.url.replace("http:", "https:"))
      assert.match(plain, /^GitLab cannot be reached: TLS: [\w ]+; it was asked 6 times$/)
      const own = yield* receiver({ certificate: selfSigned("IP:127.0.0.1") })
      const said = yield* saidBy(own.url)
      assert.match(
        said,
        /: self.signed certificate \(an authority .* NODE_EXTRA_CA_CERTS\)$/,
        "it was asked once: this does not pass by itself"
      )
      assert.notInclude(said, "--use-system-ca")
    }).pipe(Effect.scoped)
  )

  it.live("says what it waits for, and for how long, if that takes seconds", () =>
    Effect.gen(function* () {
      const busy = { status: 429, headers: { "retry-after": "3" }, json: { message: "slowly" } }
      const { ask, heard } = yield* answering([{ status: 503 }, busy, { json: 1 }])
      assert.strictEqual((yield* ask).json, 1)
      assert.deepStrictEqual(heard, [
        "Stripe answers 429: slowly; next try in 3 s, 4 tries left within 3 s"
      ])
    }).pipe(Effect.scoped)
  )

  it.live("counts how long it may be silent at each try that is left", () =>
    Effect.gen(function* () {
      const { client, server } = yield* answering([{ hangs: true }])
      const waits = yield* Deferred.make<string>()
      const api = makeApi({
        ...{ title: "Stripe", url: server.url, agent: client, perSecond: 1_000 },
        answerWithinMs: 1_500,
        onWait: (text) => Deferred.succeed(waits, text)
      })
      yield* Effect.forkScoped(Effect.exit(api.ask({ path: "/" }, {})))
      // Pauses of 31 s, and 5 tries of 1.5 s.
      assert.match(
        yield* Deferred.await(waits),
        /no answer within 1\.5 s; next try in 1 s, 5 tries left within (38|39) s$/
      )
    }).pipe(Effect.scoped)
  )

  it.live("fails where it stays ill, or says to come again in hours", () =>
    Effect.gen(function* () {
      const ill = yield* answering([{ status: 500, json: { error: { message: "oh\nno" } } }])
      const failed = yield* Effect.flip(ill.ask)
      assert.strictEqual(failed.message, "Stripe answers 500: oh no; it was asked 6 times")
      assert.lengthOf(ill.server.requests, 6)
      const later = yield* answering([{ status: 429, headers: { "retry-after": "7200" } }])
      assert.match(
        (yield* Effect.flip(later.ask)).message,
        /429, and says to come again in 120 min/
      )
      assert.lengthOf(later.server.requests, 1)
    }).pipe(Effect.scoped)
  )

  it.live("is not asked again where it refuses, and nothing follows a redirect", () =>
    Effect.gen(function* () {
      for (const [status, text] of [
        [401, /refuses the credentials/],
        [403, /refuses the credentials/],
        [404, /is the right webhook named/],
        [400, /refuses the request \(400: bad\)/],
        [302, /refuses the request \(302/]
      ] as const) {
        const headers = { location: "http://127.0.0.1:1/elsewhere" }
        const { ask, server } = yield* answering([{ status, headers, json: { message: "bad" } }])
        const failed = yield* Effect.flip(ask)
        assert.match(failed.message, text)
        assert.notInclude(failed.message, "Bearer")
        assert.strictEqual(failed.status, status)
        assert.lengthOf(server.requests, 1)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is repeated without the credentials that it repeats", () =>
    Effect.gen(function* () {
      const server = yield* providerApi(({ headers }) => {
        const given = String(headers.authorization).replace("Basic ", "")
        const plain = Buffer.from(given, "base64").toString()
        return { status: 401, json: { message: `no key ${given}, ${plain}` } }
      })
      const client = new Agent()
      const api = makeApi({ title: "X", url: server.url, agent: client, perSecond: 9 })
      const basic = `Basic ${Buffer.from("client-id:the-secret").toString("base64")}`
      for (const [request, authorization] of [
        [{ path: "/" }, { authorization: basic }],
        [{ path: "/", headers: { authorization: basic } }, {}]
      ] as const) {
        const failed = yield* Effect.flip(api.ask(request, authorization))
        assert.match(failed.message, /\(401: no key \*{8}, \*{8}\)$/)
      }
      yield* Effect.promise(() => client.destroy())
    }).pipe(Effect.scoped)
  )

  it.live("is asked no more often than it may be", () =>
    Effect.gen(function* () {
      const { ask } = yield* answering([{ json: 1 }], 20)
      const startedAt = performance.now()
      for (let n = 0; n < 7; n++) yield* ask
      assert.isAtLeast(performance.now() - startedAt, 290)
    }).pipe(Effect.scoped)
  )

  it.live("is not asked at a private address", () =>
    Effect.gen(function* () {
      const server = yield* providerApi(() => ({}))
      const nothing = { networks: [], ports: "any" } as const
      const client = yield* agent({
        refuses: (ip, port) => refusalOf(ip, port, nothing, new Set())
      })
      const { port } = new URL(server.url)
      for (const host of ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "0x7f.1"]) {
        const url = `http://${host}:${port}`
        const api = makeApi({ title: "X", url, agent: client, perSecond: 9, firstPauseMs: 1 })
        const failed = yield* Effect.flip(api.ask({ path: "/" }, {}))
        assert.match(failed.message, /not allowed; if this is intended, allow its network/, host)
      }
      assert.lengthOf(server.requests, 0)
    }).pipe(Effect.scoped)
  )
})

describe("the pause that an answer asks for", () => {
  it("is that of Retry-After, or until the limit is reset", () => {
    const now = Date.parse("2026-03-04T10:00:00Z")
    const pause = (headers: Record<string, string>) => toldPauseMs(headers, now)
    assert.strictEqual(pause({ "retry-after": "3" }), 3_000)
    assert.strictEqual(pause({ "retry-after": "Wed, 04 Mar 2026 10:00:07 GMT" }), 7_000)
    assert.strictEqual(pause({ "x-ratelimit-reset": String(now / 1_000 + 30) }), 30_000)
    assert.strictEqual(pause({ "ratelimit-reset": "12" }), 12_000)
    assert.strictEqual(pause({ "x-ratelimit-reset": "soon" }), undefined)
    assert.strictEqual(pause({}), undefined)
  })
})
