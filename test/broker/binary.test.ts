import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, beforeEach } from "vitest"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { platformName, releaseArchive } from "../../src/broker/embedded/release.ts"
import type { Source } from "../../src/broker/embedded/source.ts"
import { ObtainFailed } from "../../src/broker/embedded/source.ts"

const exec = promisify(execFile)

let directory = ""
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "petrel-test-binary-"))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const program = async (path: string, script: string) => {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
  return path
}
const fakeServer = (path: string, version: string) =>
  program(path, `echo "nats-server: v${version}"`)

const fakeSource = (name: string, version: string, asked: Array<string> = []): Source => ({
  name,
  obtain: (into) =>
    Effect.promise(() => {
      asked.push(name)
      return fakeServer(join(into, "fetched"), version)
    })
})
const failingSource = (name: string, why: string): Source => ({
  name,
  obtain: () => Effect.fail(new ObtainFailed({ message: why }))
})

const find = async (options: {
  readonly env?: Record<string, string>
  readonly sources?: ReadonlyArray<Source>
}) => {
  const lines: Array<string> = []
  const exit = await Effect.runPromise(
    findNatsServer({
      env: { XDG_CACHE_HOME: join(directory, "cache"), ...options.env },
      sources: options.sources ?? [],
      onProgress: (line) => lines.push(line)
    }).pipe(Effect.result)
  )
  return exit._tag === "Success"
    ? { found: exit.success, error: "", lines }
    : { found: undefined, error: exit.failure.message, lines }
}

const cached = () => join(directory, "cache/petrel/nats-server")

describe("finding a nats-server", () => {
  it("takes the one NATS_SERVER names before any other", async () => {
    const mine = await fakeServer(join(directory, "mine"), "2.12.0")
    await fakeServer(join(directory, "bin/nats-server"), "2.15.1")
    const { found } = await find({ env: { NATS_SERVER: mine, PATH: join(directory, "bin") } })
    assert.deepStrictEqual(found, { path: mine, version: "2.12.0", from: "NATS_SERVER" })
  })

  it("refuses a NATS_SERVER that does not exist, although PATH has a good one", async () => {
    await fakeServer(join(directory, "bin/nats-server"), "2.15.1")
    const missing = join(directory, "missing")
    const { error } = await find({ env: { NATS_SERVER: missing, PATH: join(directory, "bin") } })
    assert.include(error, missing)
    assert.include(error, "there is no such program")
    assert.include(error, "set NATS_SERVER")
  })

  it("refuses a NATS_SERVER that is too old", async () => {
    const old = await fakeServer(join(directory, "old"), "2.11.9")
    const { error } = await find({ env: { NATS_SERVER: old } })
    assert.include(error, "2.11.9")
    assert.include(error, "older than 2.12")
  })

  it("refuses a NATS_SERVER that is something else", async () => {
    const other = await program(join(directory, "other"), "echo hello")
    assert.include((await find({ env: { NATS_SERVER: other } })).error, "names no version")
  })

  it("takes a release candidate of 2.12 for older than 2.12", async () => {
    const candidate = await fakeServer(join(directory, "rc"), "2.12.0-RC.1")
    assert.include((await find({ env: { NATS_SERVER: candidate } })).error, "older than 2.12")
  })

  it("passes over what is too old in PATH, says so, and takes the next", async () => {
    const old = await fakeServer(join(directory, "a/nats-server"), "2.9.10")
    const good = await fakeServer(join(directory, "b/nats-server"), "2.14.0")
    const { found, lines } = await find({ env: { PATH: `${dirname(old)}:${dirname(good)}` } })
    assert.deepStrictEqual(found, { path: good, version: "2.14.0", from: "PATH" })
    assert.lengthOf(lines, 1)
    assert.include(lines[0], "2.9.10")
  })

  it("takes PATH before the cache, and the cache before obtaining", async () => {
    const bin = await fakeServer(join(directory, "bin/nats-server"), "2.13.0")
    await fakeServer(cached(), "2.15.1")
    const asked: Array<string> = []
    const sources = [fakeSource("somewhere", "2.15.1", asked)]
    const first = await find({ env: { PATH: dirname(bin) }, sources })
    assert.strictEqual(first.found?.from, "PATH")
    const second = await find({ sources })
    assert.deepStrictEqual(second.found, { path: cached(), version: "2.15.1", from: "cache" })
    assert.isEmpty(asked)
  })

  it("keeps its cache under HOME where XDG_CACHE_HOME is not set", async () => {
    const { found } = await find({
      env: { XDG_CACHE_HOME: "", HOME: directory },
      sources: [fakeSource("somewhere", "2.15.1")]
    })
    const place = process.platform === "darwin" ? "Library/Caches" : ".cache"
    assert.strictEqual(found?.path, join(directory, place, "petrel/nats-server"))
  })
})

describe("obtaining a nats-server", () => {
  it("asks the sources in turn and keeps what the first good one gives", async () => {
    const asked: Array<string> = []
    const { found, lines } = await find({
      sources: [
        { name: "not for this machine", obtain: () => Effect.succeed(undefined) },
        failingSource("offline", "no route to host"),
        fakeSource("stale", "2.10.0", asked),
        fakeSource("good", "2.15.1", asked),
        fakeSource("never asked", "2.15.1", asked)
      ]
    })
    assert.deepStrictEqual(found, { path: cached(), version: "2.15.1", from: "good" })
    assert.deepStrictEqual(asked, ["stale", "good"])
    assert.isTrue(lines.some((line) => line.includes("no route to host")))
    assert.deepStrictEqual(await readdir(dirname(cached())), ["nats-server"])
    assert.strictEqual((await find({})).found?.from, "cache")
  })

  it("replaces a broken one in the cache", async () => {
    await program(cached(), "exit 1")
    const { found } = await find({ sources: [fakeSource("good", "2.15.1")] })
    assert.strictEqual(found?.from, "good")
    assert.include((await exec(cached())).stdout, "v2.15.1")
  })

  it("says in one sentence why each source failed and what to do, and leaves nothing", async () => {
    const { error } = await find({
      sources: [failingSource("offline", "no route to host"), fakeSource("stale", "2.10.0")]
    })
    assert.include(error, "offline: no route to host")
    assert.include(error, "stale: ")
    assert.include(error, "older than 2.12")
    assert.include(error, "install nats-server 2.12 or newer")
    assert.notInclude(error, "\n")
    assert.deepStrictEqual(await readdir(dirname(cached())), [])
  })

  it("says what to do where no source is for this kind of machine", async () => {
    const { error } = await find({})
    assert.include(error, "there is no nats-server 2.12 or newer")
    assert.include(error, "set NATS_SERVER")
  })

  it("fails with a reason where the cache cannot be written", async () => {
    await writeFile(join(directory, "cache"), "a file")
    const { error } = await find({ sources: [fakeSource("good", "2.15.1")] })
    assert.include(error, "good: ")
    assert.include(error, "set NATS_SERVER")
  })

  it("lets several processes obtain at the same time", async () => {
    const module = new URL("../../src/broker/embedded/binary.ts", import.meta.url).href
    const script = await fakeServer(join(directory, "fetched"), "2.15.1")
    const code = `
      import { Effect } from "effect"
      import { findNatsServer } from ${JSON.stringify(module)}
      const source = { name: "shared", obtain: () => Effect.succeed(${JSON.stringify(script)}) }
      const found = await Effect.runPromise(findNatsServer({ sources: [source] }))
      console.log(found.path)`
    const env = { PATH: directory, XDG_CACHE_HOME: join(directory, "cache") }
    const runs = await Promise.all(
      [1, 2, 3].map(() =>
        exec(process.execPath, ["--input-type=module", "-e", code], { cwd: process.cwd(), env })
      )
    )
    for (const { stdout } of runs) assert.strictEqual(stdout.trim(), cached())
    assert.deepStrictEqual(await readdir(dirname(cached())), ["nats-server"])
  })
})

describe("the NATS project's release", () => {
  const platform = platformName(process.platform, process.arch)
  const stem = `nats-server-v2.15.9-${platform}`

  const serving = async <A>(
    answer: (path: string) => Buffer | undefined,
    use: (baseUrl: string) => Promise<A>
  ) => {
    const server = createServer((request, response) => {
      const body = answer(request.url ?? "")
      response.writeHead(body === undefined ? 404 : 200, { "content-length": body?.length ?? 0 })
      response.end(body)
    })
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    const address = server.address()
    assert(typeof address === "object" && address !== null)
    try {
      return await use(`http://127.0.0.1:${address.port}/download`)
    } finally {
      server.close()
    }
  }
  const archive = async () => {
    await fakeServer(join(directory, stem, "nats-server"), "2.15.9")
    await exec("tar", ["-czf", "archive.tar.gz", stem], { cwd: directory })
    return readFile(join(directory, "archive.tar.gz"))
  }
  const sumOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex")
  const findFrom = (baseUrl: string, sum: string) =>
    find({
      sources: [releaseArchive({ version: "2.15.9", baseUrl, sha256: { [platform]: sum } })]
    })

  it("is fetched, checked, unpacked and kept", async () => {
    const bytes = await archive()
    const paths: Array<string> = []
    const { found, lines } = await serving(
      (path) => {
        paths.push(path)
        return bytes
      },
      (baseUrl) => findFrom(baseUrl, sumOf(bytes))
    )
    assert.strictEqual(found?.version, "2.15.9")
    assert.deepStrictEqual(paths, [`/download/v2.15.9/${stem}.tar.gz`])
    assert.isTrue(lines.some((line) => line.includes("100% of")))
  })

  it("is refused where its sum is not the pinned one", async () => {
    const bytes = await archive()
    const { error } = await serving(
      () => Buffer.concat([bytes, Buffer.from("x")]),
      (baseUrl) => findFrom(baseUrl, sumOf(bytes))
    )
    assert.include(error, `instead of ${sumOf(bytes)}`)
  })

  it("is passed over with the status where the server does not have it", async () => {
    const { error } = await serving(
      () => undefined,
      (baseUrl) => findFrom(baseUrl, "00")
    )
    assert.include(error, "status 404")
  })

  it("is passed over with the cause where nothing answers", async () => {
    const closed = await serving(
      () => undefined,
      async (baseUrl) => baseUrl
    )
    assert.include((await findFrom(closed, "00")).error, "ECONNREFUSED")
  })

  it("has nothing for a platform without a pinned sum", async () => {
    const answer = await Effect.runPromise(
      releaseArchive(undefined, "plan9-mips").obtain(directory, () => {})
    )
    assert.isUndefined(answer)
  })

  it.each([
    ["linux", "x64", "linux-amd64"],
    ["linux", "arm64", "linux-arm64"],
    ["linux", "arm", "linux-arm7"],
    ["darwin", "arm64", "darwin-arm64"]
  ])("calls %s on %s %s", (os, arch, name) => {
    assert.strictEqual(platformName(os, arch), name)
  })
})
