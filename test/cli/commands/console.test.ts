import { once } from "node:events"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readyText } from "../../../src/cli/commands/console/console.ts"
import { endpoint, eventually, nth, publish, worker } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"
import { program } from "../command-line.ts"
import { run } from "../in-process.ts"
import { start, startNode } from "../running.ts"

const { scenario } = onServer()

describe("petrel console", () => {
  it("says where it listens, and by what name people know it", () => {
    const listens = "http://127.0.0.1:4280"
    assert.strictEqual(
      readyText({ listens, address: listens }),
      "the console answers at http://127.0.0.1:4280"
    )
    assert.strictEqual(
      readyText({ listens, address: "https://petrel.example" }),
      "the console answers at http://127.0.0.1:4280, for requests to https://petrel.example"
    )
  })

  it.live("says that the folder is gone in which it was started, where --data is in it", () =>
    Effect.gen(function* () {
      const gone = 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$@"'
      const { ended, err } = yield* startNode([program, "console"], undefined, {}, [
        "sh",
        "-c",
        gone,
        "sh"
      ])
      assert.strictEqual(yield* ended, 2)
      assert.deepStrictEqual(err, [
        'petrel: --data ".petrel/console" must begin with /, as the folder in which this was started is gone; see `petrel console --help`'
      ])
    }).pipe(Effect.scoped)
  )

  scenario(
    "serves the API until it is stopped, for tokens that were made with petrel token",
    (place, server) =>
      Effect.gen(function* () {
        const where = ["--nats", server.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const data = yield* Effect.acquireRelease(
          Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-console-"))),
          (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
        )
        const command = yield* start("console", "--listen", "127.0.0.1:0", "--data", data, ...where)
        yield* command.until((out) => out.length > 0)
        const address = /http:\/\/127\.0\.0\.1:\d+$/.exec(nth(command.out, 0))?.[0] ?? ""
        if (process.platform === "linux") {
          // All are read when a process starts, and never again.
          const startedWith = (what: string) =>
            Effect.promise(() => readFile(`/proc/${command.pid}/${what}`, "utf8"))
          assert.match(
            yield* startedWith("cmdline"),
            /--max-semi-space-size=4\0--v8-pool-size=[1-4]\0/
          )
          assert.include(yield* startedWith("environ"), "MALLOC_MMAP_THRESHOLD_=131072")
        }
        const made = yield* run(
          "token",
          "create",
          "acme",
          "--scope",
          "endpoints:read,deliveries:read",
          "--name",
          "ours",
          "--expires",
          "1h",
          "--json",
          ...where
        )
        assert.strictEqual(made.code, 0, made.err.join("\n"))
        assert.match(made.err.join("\n"), /shown this once/)
        const { id, token } = JSON.parse(nth(made.out, 0))
        const ask = Effect.promise(() =>
          fetch(`${address}/v1/tenants/acme/endpoints`, {
            headers: { authorization: `Bearer ${token}` }
          }).then(({ status }) => status)
        )
        assert.strictEqual(yield* ask, 200)
        yield* endpoint({ id: "e" })
        yield* worker()
        yield* publish("a", "{}", { "Nats-Msg-Id": "acme.x" })
        const log = Effect.promise(() =>
          fetch(`${address}/v1/tenants/acme/deliveries?event=acme.x`, {
            headers: { authorization: `Bearer ${token}` }
          }).then((response) => response.text())
        )
        const found = yield* eventually(log, (text) => text.includes('"acme.x.e"'))
        assert.include(found, '"lag"')
        const event = Effect.promise(() =>
          fetch(`${address}/v1/tenants/acme/events/acme.x`, {
            headers: { authorization: `Bearer ${token}` }
          }).then((response) => response.text())
        )
        assert.include(yield* event, '"delivery":"acme.x.e"')
        const listed = yield* run("token", "list", ...where)
        assert.include(listed.out.join("\n"), `${id}  acme    endpoints:read,deliveries:read  ours`)
        assert.notInclude(listed.out.join("\n"), token)
        const all = yield* Effect.forEach([["acme"], ["--operator"]], (whose) =>
          run("token", "create", ...whose, "--scope", "all", "--json", ...where)
        )
        const scopes = all.map(({ out }): ReadonlyArray<string> => JSON.parse(nth(out, 0)).scopes)
        assert.deepStrictEqual(
          scopes.map((some) => some.includes("operator")),
          [false, true]
        )
        const shown = yield* run("token", "show", token, ...where)
        assert.include(shown.out.join("\n"), id)
        const revoked = yield* run("token", "revoke", token, ...where)
        assert.strictEqual(revoked.code, 0)
        assert.notInclude(revoked.out.join("\n"), token)
        yield* Effect.repeat(ask, { until: (status) => status === 401 })
        const again = yield* run("token", "revoke", id, ...where)
        assert.match(again.err.join("\n"), new RegExp(`there is no token ${id}`))
        yield* command.signal("SIGTERM")
        assert.strictEqual(yield* command.ended, 0)
      })
  )

  scenario(
    "says in a sentence what keeps it from listening, and what a token lacks",
    (place, server) =>
      Effect.gen(function* () {
        const where = ["--nats", server.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const taken = createServer().listen(0, "127.0.0.1")
        yield* Effect.promise(() => once(taken, "listening"))
        const address = taken.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const refused: ReadonlyArray<
          readonly [args: ReadonlyArray<string>, says: RegExp, ends?: number]
        > = [
          [
            ["console", "--listen", `127.0.0.1:${port}`],
            /something listens on 127\.0\.0\.1:\d+ already/,
            1
          ],
          [
            ["console", "--listen", "0.0.0.0:0"],
            /tokens would travel to 0\.0\.0\.0:0 for everybody to read/
          ],
          [["console", "--listen", "4280"], /--listen "4280" must be an address and a port/],
          [["console", "--behind-proxy"], /--behind-proxy needs --public-url/],
          [["console", "--tls-cert", "x.pem"], /--tls-cert and --tls-key go together/],
          [["console", "--public-url", "petrel.example"], /must be a URL without a path/],
          [
            ["console", "--roles", "all"],
            /--roles "all" must be api, ui, projection, audit or several/
          ],
          [["console", "--keep", "1s"], /--keep "1s" must be at least a minute/],
          [["console", "--max-bytes", "1k"], /--max-bytes "1k" must be at least/],
          [["token", "create", "acme"], /say what it may do with --scope/],
          [["token", "create", "acme", "--operator"], /cannot be combined/],
          [["token", "create", "--scope", "all"], /say whose token/],
          [
            ["token", "create", "acme", "--scope", "endpoints"],
            /--scope.*must be one of endpoints:read/
          ],
          [
            ["token", "create", "acme", "--scope", "operator"],
            /--scope has operator, which only a token of all tenants/
          ],
          [["token", "revoke", "nothing"], /there is no token nothing/, 1]
        ]
        for (const [args, says, ends = 2] of refused) {
          const { code, err } = yield* run(...args, ...where)
          assert.strictEqual(code, ends, args.join(" "))
          assert.match(err.join("\n"), says, args.join(" "))
        }
        taken.close()
        const nobodys = ["--nats", server.url, "--prefix", "NOBODYS_"]
        const { err } = yield* run("console", "--listen", "127.0.0.1:0", ...nobodys)
        assert.match(err.join("\n"), /no installation named NOBODYS_.*run `petrel init`/)
      })
  )
})
