import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { listen, readListenAddress } from "../../src/metrics/listen.ts"

describe("readListenAddress", () => {
  it.each([
    ["127.0.0.1:9464", { host: "127.0.0.1", port: 9464 }],
    ["[::1]:0", { host: "::1", port: 0 }],
    [":9464", { host: "::", port: 9464 }],
    ["localhost:80", { host: "localhost", port: 80 }],
    ["9464", undefined],
    ["127.0.0.1", undefined],
    ["127.0.0.1:65536", undefined],
    ["::1:9464", undefined],
    ["http://127.0.0.1:9464", undefined],
    ["127.0.0.1:9464/metrics", undefined],
    ["", undefined]
  ])("reads %j as %j", (text, address) => {
    assert.deepStrictEqual(readListenAddress(text), address)
  })
})

describe("listen", () => {
  it.live("returns the port that was free, and refuses one that is taken", () =>
    Effect.gen(function* () {
      const here = Effect.acquireRelease(
        Effect.sync(() => createServer()),
        (server) => Effect.sync(() => server.close())
      )
      const port = yield* listen(yield* here, { host: "127.0.0.1", port: 0 })
      assert.isAbove(port, 0)
      const { code } = yield* Effect.flip(listen(yield* here, { host: "127.0.0.1", port }))
      assert.strictEqual(code, "EADDRINUSE")
    })
  )
})
