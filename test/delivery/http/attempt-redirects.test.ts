import { createHash } from "node:crypto"
import { setDefaultCACertificates } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { receiver, selfSigned, tcpServer } from "../../kit/receiver.ts"
import { attempt, client, errorOf, post } from "./attempting.ts"

describe("a redirect", () => {
  const digest = (body: Buffer) => createHash("sha256").update(body).digest("hex")

  it.live.each([301, 302, 307, 308])("with %i is followed with the same POST", (status) =>
    Effect.gen(function* () {
      const body = Buffer.from([0, 1, 2, 255])
      const to = yield* receiver({
        answer: ({ path }) =>
          path === "/old" ? { status, headers: { location: "/new?x=1" } } : { body: "here" }
      })
      const result = yield* attempt(yield* client(), post(`${to.url}/old`, { body }))
      assert.deepStrictEqual([result.status, result.response?.body], [200, "here"])
      const [first, second] = to.requests
      assert.deepStrictEqual([second?.method, second?.path], ["POST", "/new?x=1"])
      assert.strictEqual(digest(second?.body ?? Buffer.of()), digest(body))
      assert.deepStrictEqual(second?.headers, first?.headers)
      assert.strictEqual(to.connections(), 1)
      // The query of a location often carries tokens.
      assert.deepStrictEqual(result.redirects, [{ status, to: `${to.url}/new` }])
    })
  )

  it.live.each([300, 303, 304])("with %i is an answer like any other", (status) =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status, headers: { location: "/new" } } })
      const result = yield* attempt(yield* client(), post(to.url))
      assert.deepStrictEqual([result.status, result.error], [status, undefined])
      assert.strictEqual(to.requests.length, 1)
    })
  )

  it.live("is an answer like any other where none may be followed", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 307, headers: { location: "/new" } } })
      const result = yield* attempt(yield* client(), post(to.url, { redirects: 0 }))
      assert.deepStrictEqual([result.status, result.error], [307, undefined])
      assert.isUndefined(result.redirects)
      assert.strictEqual(to.requests.length, 1)
    })
  )

  it.live("to another origin is refused unless that is named", () =>
    Effect.gen(function* () {
      const other = yield* receiver()
      const to = yield* receiver({
        answer: { status: 307, headers: { location: `${other.url}/login?from=hook` } }
      })
      const http = yield* client()
      const refused = yield* attempt(http, post(to.url))
      assert.deepStrictEqual(errorOf(refused), {
        class: "redirect",
        message: `a redirect to ${other.url}, another origin, which \`redirectsTo\` does not name (status 307)`
      })
      assert.lengthOf(other.requests, 0)
      const redirectsTo = [new URL(other.url).origin]
      const followed = yield* attempt(http, post(to.url, { redirectsTo }))
      assert.strictEqual(followed.status, 200)
      assert.deepStrictEqual(followed.redirects, [{ status: 307, to: `${other.url}/login` }])
    })
  )

  it.live("in a circle ends after as many as are allowed", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 308, headers: { location: "/" } } })
      const result = yield* attempt(yield* client(), post(to.url, { redirects: 3 }))
      assert.strictEqual(result.status, 308)
      assert.deepStrictEqual(errorOf(result), {
        class: "redirect",
        message: "more than 3 redirects (status 308)"
      })
      assert.strictEqual(to.requests.length, 4)
    })
  )

  it.live("to another origin drops the endpoint's own headers, for good", () =>
    Effect.gen(function* () {
      const home = yield* receiver()
      const other = yield* receiver({
        answer: () => ({ status: 307, headers: { location: `${home.url}/back` } })
      })
      home.answer(({ path }) =>
        path === "/" ? { status: 307, headers: { location: `${other.url}/away` } } : {}
      )
      const redirectsTo = [new URL(other.url).origin]
      const result = yield* attempt(yield* client(), post(home.url, { redirectsTo }))
      assert.strictEqual(result.status, 200)
      const [away] = other.requests
      const [first, back] = home.requests
      assert.property(first?.headers, "authorization")
      for (const request of [away, back]) {
        assert.notProperty(request?.headers, "authorization")
        assert.include(request?.headers, { "webhook-id": "evt_1", "webhook-signature": "v1,x" })
      }
      assert.strictEqual(away?.headers.host, other.host)
    })
  )

  it.live("leads nowhere that is not allowed", () =>
    Effect.gen(function* () {
      const hidden = yield* receiver({ host: "127.0.0.2" })
      const to = yield* receiver()
      const http = yield* client()
      for (const location of [hidden.url, `http://[::1]:${hidden.port}/`, "http://0x7f000002/"]) {
        to.answer({ status: 307, headers: { location } })
        const redirectsTo = [new URL(location).origin]
        const result = yield* attempt(http, post(to.url, { redirectsTo }))
        assert.strictEqual(errorOf(result).class, "address", location)
        assert.isUndefined(result.status)
      }
      assert.strictEqual(hidden.connections(), 0)
    })
  )

  it.live("from https to http is refused, from https to https is not", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("IP:127.0.0.1")
      setDefaultCACertificates([certificate.cert])
      const plain = yield* receiver()
      const secure = yield* receiver({ certificate })
      const http = yield* client()
      secure.answer({ status: 307, headers: { location: `${plain.url}/hook?secret=1` } })
      assert.deepStrictEqual(errorOf(yield* attempt(http, post(secure.url))), {
        class: "redirect",
        message: `a redirect to ${plain.url}, from https to http (status 307)`
      })
      assert.strictEqual(plain.requests.length, 0)
      secure.answer(({ path }) =>
        path === "/" ? { status: 307, headers: { location: "/2" } } : {}
      )
      assert.strictEqual((yield* attempt(http, post(secure.url))).status, 200)
    })
  )

  it.live.each([
    [undefined, "a redirect without a location (status 307)"],
    ["http://[", "a redirect whose location is not a URL (status 307)"],
    ["ftp://files.example.test/", "a redirect to ftp: instead of http or https (status 307)"],
    ["file:///etc/passwd", "a redirect to file: instead of http or https (status 307)"],
    [
      "http://user:pass@127.0.0.1:1/x",
      "a redirect to http://127.0.0.1:1 with credentials (status 307)"
    ]
  ])("to %s is refused", ([location, message]) =>
    Effect.gen(function* () {
      const to = yield* receiver({
        answer: { status: 307, headers: location === undefined ? {} : { location } }
      })
      const result = yield* attempt(yield* client(), post(to.url))
      assert.deepStrictEqual(errorOf(result), { class: "redirect", message })
      assert.strictEqual(result.status, 307)
    })
  )

  it.live("with a body without end is followed all the same", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const endless = yield* tcpServer((socket) =>
        socket.once("data", () => {
          socket.write(`HTTP/1.1 307 Go\r\nlocation: ${to.url}\r\n\r\n`)
          const more = () => {
            if (!socket.destroyed) socket.write(Buffer.alloc(16_384), () => setImmediate(more))
          }
          more()
        })
      )
      const result = yield* attempt(
        yield* client(),
        post(`http://${endless.host}`, { redirectsTo: [new URL(to.url).origin] })
      )
      assert.strictEqual(result.status, 200)
      yield* endless.quiet
    })
  )
})
