import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { writePackage } from "../../build/package.ts"
import { installations, parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { startNode } from "../cli/running.ts"
import { endpoint, eventually, history, nth, publish } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"

const place = installations()

/** A folder without the repository above it: the package, and an empty folder to work in. */
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "petrel-test-package-"))
  await writePackage(join(folder, "petrel"))
  await mkdir(join(folder, "empty"))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const startPackaged = (args: ReadonlyArray<string>, options: ReadonlyArray<string> = []) =>
  startNode([...options, join(folder, "petrel/cli/petrel.js"), ...args], join(folder, "empty"))

const runPackaged = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  options: ReadonlyArray<string> = []
) {
  const { ended, err, out } = yield* startPackaged(args, options)
  return { code: yield* ended, out, err }
}, Effect.scoped)

describe("the package that npm run build makes", () => {
  it.live("prints the same help as the sources", () =>
    Effect.gen(function* () {
      const [packaged, written] = [yield* runPackaged(["--help"]), yield* run("--help")]
      assert.deepStrictEqual([packaged.code, packaged.err], [0, []])
      assert.deepStrictEqual(packaged.out, written.out)
    })
  )

  it.live("says in one sentence which Node it needs", () =>
    Effect.gen(function* () {
      const versions = `{ value: { ...process.versions, node: "20.20.2" } }`
      const pretend = `data:text/javascript,Object.defineProperty(process, "versions", ${versions})`
      const { code, err, out } = yield* runPackaged(["--help"], ["--import", pretend])
      assert.deepStrictEqual([code, out], [1, []])
      assert.deepStrictEqual(err, [
        "petrel: Node 22.19 or newer is needed, and this is 20.20.2: install one from https://nodejs.org"
      ])
    })
  )

  it.live("runs petrel dev", () =>
    Effect.gen(function* () {
      const dev = yield* startPackaged(["dev", "--nats-port", "0", "--data", "data"])
      yield* dev.until((out) => out.some((line) => / #3 {2}200 .* delivered$/.test(line)))
      yield* dev.signal("SIGINT")
      assert.strictEqual(yield* dev.ended, 0)
    })
  )

  it.live("runs a worker, a console with its threads, and an audit", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { url } = yield* receiver()
        yield* endpoint({ url })
        const facts = yield* history
        const worker = yield* startPackaged([
          ...["worker", "--allow-network", "127.0.0.0/8"],
          ...flags
        ])
        const console = yield* startPackaged([
          ...["console", "--listen", "127.0.0.1:0", "--data", "log", "--audit-since", "1 hour"],
          ...flags
        ])
        yield* worker.until((out) => out.length > 1)
        yield* publish("paid", "{}")
        yield* facts.count("delivered", 1)
        // Its threads: the log's writer and queries, and the audit.
        yield* console.until((_, err) => err.some((line) => line.includes("the audit goes on")))
        const listed = yield* eventually(
          runPackaged(["events", "--json", ...flags]),
          ({ out }) => out.length > 0
        )
        assert.strictEqual(parse(nth(listed.out, 0)).type, "paid")
        const audited = yield* runPackaged(["audit", ...flags])
        assert.deepStrictEqual([audited.code, audited.err], [0, []])
        yield* console.signal("SIGTERM")
        yield* worker.signal("SIGTERM")
        assert.deepStrictEqual([yield* console.ended, yield* worker.ended], [0, 0])
        assert.notInclude(console.err.join("\n"), "has ended")
      })
    )
  })
})
