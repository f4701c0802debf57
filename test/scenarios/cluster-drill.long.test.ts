import { spawn } from "node:child_process"
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { program } from "../cli/command-line.ts"
import { eventually } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** The blocks of commands of the drill, under their headings. */
const blocks = readFileSync(join(root, "deploy/cluster/README.md"), "utf8")
  .split(/^## /m)
  .flatMap((section) => {
    const [heading = ""] = section.split("\n")
    return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = ""]) => ({
      heading,
      commands
    }))
  })

/** A pause that is no election and no takeover any more, on a machine that others use, too. */
const maxPauseMs = 60_000

/** Ends what the blocks have left running in a folder, by the process ids in its files. */
const endAll = (folder: string) => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".pid")))
    try {
      process.kill(Number(readFileSync(join(folder, file), "utf8")), "SIGKILL")
    } catch {}
}

const folders = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "petrel-drill-"))
    // `npx petrel` of the page runs this checkout.
    const npx = join(folder, "npx")
    writeFileSync(npx, `#!/bin/sh\nshift\nexec "${process.execPath}" "${program}" "$@"\n`)
    chmodSync(npx, 0o755)
    return { folder, drill: join(folder, "drill") }
  }),
  ({ drill, folder }) =>
    Effect.sync(() => {
      try {
        endAll(drill)
      } catch {}
      rmSync(folder, { recursive: true, force: true })
    })
)

/** Runs a block, and returns its output and exit code. Ends it where the test ends before. */
const runBlock = (commands: string, env: NodeJS.ProcessEnv, log: string) =>
  Effect.callback<{ readonly code: number | null; readonly said: string }>((resume) => {
    writeFileSync(log, "")
    // Its output goes to a file: what it starts in the background would keep a pipe open.
    const script = `exec > "${log}" 2>&1\nset -eu\n${commands}`
    const child = spawn("sh", ["-c", script], { cwd: root, env, stdio: "ignore" })
    child.once("exit", (code) => resume(Effect.succeed({ code, said: readFileSync(log, "utf8") })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

describe("the drill of deploy/cluster", () => {
  it.live(
    "goes through as its page says, with every acknowledged event delivered and a clean audit",
    () =>
      Effect.gen(function* () {
        const { drill, folder } = yield* folders
        const hook = yield* receiver()
        const { path } = yield* findNatsServer()
        const env = {
          ...process.env,
          PATH: [folder, dirname(path), process.env.PATH].join(delimiter),
          GOMAXPROCS: "1",
          DRILL: drill,
          RECEIVER: hook.url
        }
        const acknowledged = new Set<string>()
        let isOver = false
        let longestMs = 0
        const publish = async () => {
          const [, ca = "", url = ""] =
            /NATS_CA='(.*)' NATS_URL='(.*)'/.exec(readFileSync(join(drill, "acme.env"), "utf8")) ??
            []
          const { hostname, password, username } = new URL(url.split(",")[0] ?? "")
          const servers = [11, 12, 13].map((n) => `${hostname.replace(/\d+$/, "")}${n}:4222`)
          const connection = await connect({
            servers,
            user: username,
            pass: password,
            tls: { caFile: ca },
            maxReconnectAttempts: -1,
            reconnectTimeWait: 100,
            // As docs/operate/cluster.md asks of publishers: a server may hang.
            pingInterval: 3_000,
            maxPingOut: 2,
            timeout: 3_000
          })
          const js = jetstream(connection)
          let lastAt = performance.now()
          for (let n = 1; !isOver; n++) {
            const id = `acme.${n}`
            while (!isOver)
              try {
                await js.publish("events.acme.drill", `${n}`, { msgID: id, timeout: 2_000 })
                acknowledged.add(id)
                break
              } catch {
                await new Promise((again) => setTimeout(again, 100))
              }
            longestMs = Math.max(longestMs, performance.now() - lastAt)
            lastAt = performance.now()
            await new Promise((next) => setTimeout(next, 20))
          }
          await connection.close()
        }
        let publishing: Promise<void> | undefined
        const figures: Array<string> = []
        for (const { commands, heading } of blocks) {
          if (heading === "The end") {
            isOver = true
            yield* Effect.promise(() => publishing ?? Promise.resolve())
            const reached = () =>
              new Set(hook.requests.map(({ headers }) => String(headers["webhook-id"])))
            yield* eventually(Effect.sync(reached), (ids) =>
              [...acknowledged].every((id) => ids.has(id))
            )
          }
          longestMs = 0
          const from = hook.requests.length
          const begun = performance.now()
          const startedAt = Date.now()
          const { code, said } = yield* runBlock(commands, env, join(folder, "block.log"))
          const seconds = Math.round((performance.now() - begun) / 1000)
          assert.strictEqual(code, 0, `${heading}, after ${seconds} s\n${commands}\n${said}`)
          if (!commands.includes("petrel audit")) figures.push(`${heading}: ${seconds} s`)
          else {
            assert.include(said, "Clean", said)
            const times = [startedAt, ...hook.requests.slice(from).map(({ at }) => at), Date.now()]
            const gap = Math.max(...times.map((at, index) => at - (times[index - 1] ?? at)))
            assert.isBelow(Math.max(gap, longestMs), maxPauseMs, heading)
            figures.push(
              `${heading}: ${seconds} s; longest without an acknowledgement ${(longestMs / 1000).toFixed(1)} s, without a delivery ${(gap / 1000).toFixed(1)} s`
            )
          }
          // With the workers, events begin to come.
          if (publishing === undefined && commands.includes("petrel worker")) {
            publishing = publish()
            yield* hook.received(20)
          }
        }
        assert.lengthOf(
          figures.filter((figure) => figure.includes("longest")),
          7
        )
        // A copy that the broker cannot read is made again from the others, in silence.
        for (const name of ["a", "b", "c"])
          assert.notMatch(
            readFileSync(join(drill, `${name}.log`), "utf8"),
            /Error recreating stream|stream write error/
          )
        assert.isAbove(acknowledged.size, 500)
        const ids = new Set(hook.requests.map(({ headers }) => String(headers["webhook-id"])))
        const again = hook.requests.length - ids.size
        console.log([...figures, `${ids.size} events, ${again} requests again`].join("\n"))
      }).pipe(Effect.scoped),
    540_000
  )
})
