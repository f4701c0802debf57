import { request } from "node:http"
import { connect, createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { gauge } from "../../src/metrics/family.ts"
import { listenText } from "../../src/metrics/listen.ts"
import type { MetricsServerOptions } from "../../src/metrics/metrics-server.ts"
import { isOwnHost, serveMetrics } from "../../src/metrics/metrics-server.ts"

const options = (changes: Partial<MetricsServerOptions> = {}): MetricsServerOptions => ({
  ...{ host: "127.0.0.1", port: 0, problems: () => [] },
  families: () => [gauge("a", "A.", 1)],
  ...changes
})

const ask = (path: string, changes: Partial<MetricsServerOptions> = {}, init: RequestInit = {}) =>
  Effect.gen(function* () {
    const at = yield* serveMetrics(options(changes))
    const response = yield* Effect.promise(() => fetch(`http://${listenText(at)}${path}`, init))
    const { headers, status } = response
    return { headers, status, text: yield* Effect.promise(() => response.text()) }
  })

describe("serveMetrics", () => {
  it.live("serves Prometheus text", () =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* ask("/metrics?x=1")
      assert.strictEqual(status, 200)
      assert.strictEqual(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
      assert.strictEqual(text, "# HELP a A.\n# TYPE a gauge\na 1\n")
    })
  )

  it.live("is alive also while it is not ready, and says why it is not", () =>
    Effect.gen(function* () {
      const problems = () => ["one", "two"]
      assert.strictEqual((yield* ask("/healthz", { problems })).status, 200)
      assert.deepInclude(yield* ask("/readyz", { problems }), { status: 503, text: "one\ntwo\n" })
      assert.deepInclude(yield* ask("/readyz"), { status: 200, text: "ready\n" })
    })
  )

  it.live("shows its numbers to nobody who asks for another host", () =>
    Effect.gen(function* () {
      const { port } = yield* serveMetrics(options())
      const askFor = (path: string, host: string) =>
        Effect.promise(
          () =>
            new Promise<number | undefined>((resolve, reject) => {
              request({ port, path, headers: { host } }, (response) => {
                response.resume()
                resolve(response.statusCode)
              })
                .on("error", reject)
                .end()
            })
        )
      assert.strictEqual(yield* askFor("/metrics", "evil.example"), 421)
      assert.strictEqual(yield* askFor("/metrics", `127.0.0.1:${port}`), 200)
      assert.strictEqual(yield* askFor("/healthz", "any.example"), 200)
    })
  )

  it("is asked by addresses and names of its own", () => {
    const own = ["127.0.0.1", "10.0.0.7:9464", "[::1]:9464", "localhost:1", "worker-1:9464"]
    assert.deepStrictEqual(
      own.filter((host) => !isOwnHost(host, "::")),
      []
    )
    assert.isTrue(isOwnHost("W.Internal.Example:9464", "w.internal.example"))
    for (const host of [
      "",
      "evil.example",
      "127.0.0.1.evil.example:9464",
      "localhost.evil.example"
    ])
      assert.isFalse(isOwnHost(host, "::"), host)
  })

  it.live("answers nothing else", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ask("/")).status, 404)
      assert.strictEqual((yield* ask("/metrics", {}, { method: "POST" })).status, 405)
      assert.deepInclude(yield* ask("/metrics", {}, { method: "HEAD" }), { status: 200, text: "" })
    })
  )

  it.live("says in a sentence that an address is in use or not of this machine", () =>
    Effect.gen(function* () {
      const other = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const server = createServer()
          server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
      )
      const address = other.address()
      const port = typeof address === "object" ? (address?.port ?? 0) : 0
      const inUse = yield* Effect.flip(serveMetrics(options({ port })))
      assert.strictEqual(
        inUse.message,
        `127.0.0.1:${port} is in use: stop what listens there, or choose another port`
      )
      const elsewhere = yield* Effect.flip(serveMetrics(options({ host: "192.0.2.1" })))
      assert.include(elsewhere.message, "192.0.2.1:0 is not an address of this machine")
    })
  )

  it.live("stops although a client keeps its connection, and leaves the port free", () =>
    Effect.gen(function* () {
      const at = yield* Effect.scoped(
        Effect.gen(function* () {
          const at = yield* serveMetrics(options())
          yield* Effect.acquireRelease(
            Effect.callback<ReturnType<typeof connect>>((resume) => {
              const socket = connect(at, () => resume(Effect.succeed(socket)))
              socket.on("error", () => undefined)
            }),
            () => Effect.void
          )
          return at
        })
      )
      assert.strictEqual((yield* serveMetrics(options(at))).port, at.port)
    })
  )
})
