import { execFile } from "node:child_process"
import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { writePackage } from "../../build/package.ts"
import { revisionOf } from "../../build/revision.ts"
import { installations, parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { startNode } from "../cli/running.ts"
import { endpoint, eventually, history, nth, publish } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"

const exec = promisify(execFile)
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

/** Runs npm without a network. Returns what it printed. */
const npm = (cwd: string, ...args: ReadonlyArray<string>) =>
  exec("npm", [...args, "--offline", "--no-audit", "--no-fund"], { cwd }).then(
    ({ stdout }) => stdout
  )

describe("the package that npm run build makes", () => {
  it("is packed and installed in a project and globally, from nothing else", async () => {
    const [packing, project, prefix] = ["packed", "project", "global"].map((name) =>
      join(folder, name)
    ) as [string, string, string]
    for (const made of [packing, project, prefix]) await mkdir(made)
    await npm(join(folder, "petrel"), "pack", "--pack-destination", packing)
    const [file = ""] = await readdir(packing)
    const tarball = join(packing, file)
    assert.isBelow((await stat(tarball)).size, 6 * 1024 * 1024)
    await writeFile(join(project, "package.json"), "{}")
    await npm(project, "install", tarball)
    await npm(project, "install", "--global", "--prefix", prefix, tarball)
    assert.deepStrictEqual(
      (await readdir(join(project, "node_modules"))).filter((name) => !name.startsWith(".")),
      ["petrel"]
    )
    const { version } = JSON.parse(await readFile(join(folder, "petrel/package.json"), "utf8"))
    const revision = revisionOf(import.meta.dirname)
    const expected = `petrel ${version}${revision === undefined ? "" : ` (${revision})`}\n`
    for (const path of [join(project, "node_modules/.bin/petrel"), join(prefix, "bin/petrel")]) {
      const { stderr, stdout } = await exec(process.execPath, [path, "--version"], { cwd: project })
      assert.deepStrictEqual([stdout, stderr], [expected, ""])
    }
  })

  it("can be published, with the pages that its README leads to and a manual", async () => {
    const packed = join(folder, "petrel")
    assert.match(await npm(packed, "publish", "--dry-run"), /^\+ petrel@\d+\.\d+\.\d+$/m)
    const readme = await readFile(join(packed, "README.md"), "utf8")
    const links = Array.from(readme.matchAll(/\]\((?!https:)([^)#]+)/g), ([, link = ""]) => link)
    assert.isAbove(links.length, 20)
    for (const link of links) await access(join(packed, link))
    const manual = await readFile(join(packed, "man/petrel.1"), "utf8")
    assert.match(manual, /^petrel \\- deliver webhooks/m)
    assert.match(manual, /^\.SS petrel endpoint retry\\-now$/m)
  })

  it("passes on the licenses of what is bundled", async () => {
    const text = await readFile(join(folder, "petrel/THIRD-PARTY-LICENSES"), "utf8")
    for (const name of ["effect", "undici", "@nats-io/nats-core", "pino"])
      assert.match(text, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(.+\\)$`, "m"))
  })

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
