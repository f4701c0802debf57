import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { writePackage } from "../../build/package.ts"
import { startNode } from "../cli/running.ts"

export const exec = promisify(execFile)

/** Runs npm without a network. Returns what it printed. */
export const npm = (cwd: string, ...args: ReadonlyArray<string>) =>
  exec("npm", [...args, "--offline", "--no-audit", "--no-fund"], { cwd }).then(
    ({ stdout }) => stdout
  )

/**
 * A folder for the tests of the file that calls this, without the repository above it: the package
 * in `petrel`, its tarball in `packed`, installed in `project` and globally in `global`, and `empty`
 * to work in.
 */
export const packaged = () => {
  let folder = ""
  const path = (...names: ReadonlyArray<string>) => join(folder, ...names)
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "petrel-test-package-"))
    await writePackage(path("petrel"))
    for (const name of ["empty", "packed", "project", "global"]) await mkdir(path(name))
    await npm(path("petrel"), "pack", "--pack-destination", path("packed"))
    const [file = ""] = await readdir(path("packed"))
    await writeFile(path("project/package.json"), '{"type":"module"}')
    await npm(path("project"), "install", path("packed", file))
    await npm(
      path("project"),
      "install",
      "--global",
      "--prefix",
      path("global"),
      path("packed", file)
    )
  }, 300_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Starts the installed command in the empty folder. */
  const start = (args: ReadonlyArray<string>, options: ReadonlyArray<string> = []) =>
    startNode(
      [...options, path("project/node_modules/petrel/cli/petrel.js"), ...args],
      path("empty"),
      // What is installed has a cache of its own.
      { NODE_COMPILE_CACHE: undefined }
    )
  let developed = 0
  /** Starts `petrel dev` with data of its own. Returns what a program has to know of it. */
  const startDev = Effect.gen(function* () {
    const data = `data-${developed++}`
    const dev = yield* start(["dev", "--nats-port", "0", "--data", data])
    yield* dev.until((out) => out.some((line) => / #3 {2}200 .* delivered: /.test(line)))
    const said = dev.out.join("\n")
    const [, nats = ""] = /takes events at (\S+)/.exec(said) ?? []
    const [, url = ""] = /HTTP API is at (\S+)/.exec(said) ?? []
    const token = yield* Effect.promise(() => readFile(path("empty", data, "api-token"), "utf8"))
    return { ...dev, nats, url, token: token.trim() }
  })

  return {
    path,
    start,
    startDev,
    run: Effect.fnUntraced(function* (
      args: ReadonlyArray<string>,
      options: ReadonlyArray<string> = []
    ) {
      const { ended, err, out } = yield* start(args, options)
      return { code: yield* ended, out, err }
    }, Effect.scoped)
  }
}
