import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { type AddressInfo, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, nth } from "../../kit/engine.ts"
import { rawClient } from "../../kit/raw-client.ts"
import { installations, program } from "../command-line.ts"
import { startNode } from "../running.ts"

const place = installations()

const freePort = Effect.promise(async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  return port
})

const statusOf = (url: string) =>
  Effect.promise(() =>
    fetch(url, { headers: { connection: "close" } }).then(
      ({ status }) => status,
      () => 0
    )
  )

const temporary = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-doors-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

for (const { args, name, path, status } of [
  {
    ...{ name: "petrel ingest", path: "/in/acme/none", status: 404 },
    args: () => Effect.succeed(["ingest"])
  },
  {
    ...{ name: "petrel console", path: "/healthz", status: 200 },
    args: () => Effect.map(temporary, (data) => ["console", "--data", data])
  }
])
  describe.skipIf(process.platform !== "linux")(name, () => {
    it.live("takes no more connections than it may have files open, and refuses nobody", () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          const server = yield* startNode(
            [program, ...(yield* args()), "--listen", "127.0.0.1:0", ...flags],
            undefined,
            {},
            ["sh", "-c", 'ulimit -n 128 && exec "$@"', "sh"]
          )
          yield* server.until((out) => out.length > 0)
          const url = /http:\/\/127\.0\.0\.1:\d+/.exec(nth(server.out, 0))?.[0] ?? ""
          const idle = Array.from({ length: 200 }, () => rawClient(url))
          yield* Effect.all(idle, { concurrency: 50 })
          const statuses: Array<number> = []
          for (let n = 0; n < 20; n++) statuses.push(yield* statusOf(`${url}${path}`))
          assert.deepStrictEqual([...new Set(statuses)], [status])
          const said =
            /this process may have 128 files open: at most \d+ connections are taken, not \d+; that many need `ulimit -n \d+` \(systemd: LimitNOFILE\)/
          yield* server.until((_, err) => err.some((line) => said.test(line)))
        })
      )
    })

    it.live("serves where nobody can be told that it does", () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          const port = yield* freePort
          const listen = `127.0.0.1:${port}`
          const server = yield* startNode(
            [program, ...(yield* args()), "--listen", listen, ...flags],
            undefined,
            {},
            ["sh", "-c", 'exec "$@" >/dev/full', "sh"]
          )
          yield* eventually(statusOf(`http://${listen}${path}`), (answered) => answered === status)
          // Time to end, as it would where it could not write: nothing shows that it goes on.
          yield* Effect.sleep("500 millis")
          assert.strictEqual(yield* statusOf(`http://${listen}${path}`), status)
          yield* server.signal("SIGTERM")
          assert.strictEqual(yield* server.ended, 0)
        })
      )
    })
  })
