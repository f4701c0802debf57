import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { connect } from "@nats-io/transport-node"
import type { Scope } from "effect"
import { Effect, Exit } from "effect"
import { afterEach, beforeEach, vi } from "vitest"
import type { EmbeddedBroker } from "../../src/broker/embedded/embedded.ts"
import { startEmbedded } from "../../src/broker/embedded/embedded.ts"

let directory = ""
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "petrel-test-embedded-"))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const start = (options: Partial<Parameters<typeof startEmbedded>[0]> = {}) =>
  startEmbedded({ port: 0, dataDir: join(directory, "data"), onProgress: () => {}, ...options })

const failure = async <A, E extends { readonly message: string }>(
  effect: Effect.Effect<A, E, Scope.Scope>
) => (await Effect.runPromise(Effect.flip(Effect.scoped(effect)))).message

const connected = <A>(url: string, use: (nc: NatsConnection) => Promise<A>) =>
  Effect.promise(async () => {
    const nc = await connect({ servers: url, reconnect: false })
    try {
      return await use(nc)
    } finally {
      await nc.close()
    }
  })

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
const gone = (pid: number) => vi.waitUntil(() => !isAlive(pid), { timeout: 10_000, interval: 10 })

describe("the embedded broker", () => {
  it.live("takes a free port and has JetStream on disk, with messages of up to 1 MiB", () =>
    Effect.gen(function* () {
      const broker = yield* start()
      const info = yield* connected(broker.url, async (nc) => {
        const jsm = await jetstreamManager(nc)
        const stream = await jsm.streams.add({ name: "S", subjects: ["s"] })
        await jetstream(nc).publish("s", "hello")
        return { storage: stream.config.storage, server: nc.info }
      })
      assert.strictEqual(info.storage, StorageType.File)
      assert.strictEqual(info.server?.max_payload, 1024 * 1024)
      assert.notStrictEqual(info.server?.port, 4222)
    }).pipe(Effect.scoped)
  )

  it.live("is gone when its scope has closed, and its messages are there again after it", () =>
    Effect.gen(function* () {
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const broker = yield* start()
          yield* connected(broker.url, async (nc) => {
            await (await jetstreamManager(nc)).streams.add({ name: "S", subjects: ["s"] })
            await jetstream(nc).publish("s", "kept")
          })
          return broker
        })
      )
      assert.isFalse(isAlive(first.pid))
      assert.isNumber(yield* first.exited)
      const second = yield* start()
      const kept = yield* connected(second.url, async (nc) =>
        (await (await jetstreamManager(nc)).streams.getMessage("S", { seq: 1 }))?.string()
      )
      assert.strictEqual(kept, "kept")
    }).pipe(Effect.scoped)
  )

  it.live("takes the port and the largest message that it is told", () =>
    Effect.gen(function* () {
      const probe = createServer().listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(probe, "listening"))
      const address = probe.address()
      assert(typeof address === "object" && address !== null)
      probe.close()
      yield* Effect.promise(() => once(probe, "close"))
      const broker = yield* start({ port: address.port, maxPayload: 4096 })
      assert.strictEqual(broker.url, `nats://127.0.0.1:${address.port}`)
      const max = yield* connected(broker.url, async (nc) => nc.info?.max_payload)
      assert.strictEqual(max, 4096)
    }).pipe(Effect.scoped)
  )

  it("says in one sentence that a port is taken", async () => {
    const other = createServer().listen(0, "127.0.0.1")
    await once(other, "listening")
    const address = other.address()
    assert(typeof address === "object" && address !== null)
    try {
      const message = await failure(start({ port: address.port }))
      assert.match(message, new RegExp(`^port ${address.port} on 127.0.0.1 is taken: [^\n]+$`))
    } finally {
      other.close()
    }
  })

  it("says what nats-server said when it does not start", async () => {
    const message = await failure(start({ host: "host name with spaces" }))
    assert.match(message, /^nats-server stopped while starting \(.*spaces.*\): see \S+\.log$/)
  })

  it("says that the data directory cannot be used", async () => {
    const file = join(directory, "file")
    await writeFile(file, "")
    assert.include(
      await failure(start({ dataDir: file })),
      "the broker's data directory cannot be used"
    )
  })

  it("says that a binary cannot be run", async () => {
    const message = await failure(start({ binary: join(directory, "missing") }))
    assert.include(message, "nats-server stopped while starting")
    assert.include(message, "not found")
  })

  it.live("refuses a data directory that another broker uses, and leaves that one alone", () =>
    Effect.gen(function* () {
      const first = yield* start()
      const error = yield* Effect.flip(Effect.scoped(start()))
      assert.include(error.message, `is in use by another Petrel's broker (process ${first.pid})`)
      yield* connected(first.url, (nc) => nc.flush())
    }).pipe(Effect.scoped)
  )

  it.live("is not kept from starting by the pid of some other program", () =>
    Effect.gen(function* () {
      yield* Effect.scoped(start())
      yield* Effect.promise(() =>
        writeFile(join(directory, "data/nats-server.pid"), String(process.pid))
      )
      yield* connected((yield* start()).url, (nc) => nc.flush())
    }).pipe(Effect.scoped)
  )

  it.live("tells its end when somebody else brings it about", () =>
    Effect.gen(function* () {
      const broker = yield* start()
      process.kill(broker.pid, "SIGKILL")
      assert.strictEqual(yield* broker.exited, 128 + 9)
    }).pipe(Effect.scoped)
  )

  it.live("is killed where it does not stop in good order", () =>
    Effect.gen(function* () {
      const broker = yield* Effect.scoped(
        Effect.tap(start(), (broker) => Effect.sync(() => process.kill(broker.pid, "SIGSTOP")))
      )
      yield* Effect.promise(() => gone(broker.pid))
      assert.strictEqual(yield* broker.exited, 128 + 9)
    })
  )

  it.live("is stopped where its start takes longer than it may", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Effect.scoped(start({ startTimeout: "1 millis" })))
      assert.isTrue(Exit.isFailure(exit))
      yield* connected((yield* start()).url, (nc) => nc.flush())
    }).pipe(Effect.scoped)
  )

  it.live("writes what it has to say into a log in the data directory", () =>
    Effect.gen(function* () {
      const broker = yield* start()
      const log = yield* Effect.promise(() =>
        readFile(join(directory, "data/nats-server.log"), "utf8")
      )
      assert.include(log, `[${broker.pid}]`)
      assert.include(log, "Server is ready")
    }).pipe(Effect.scoped)
  )
})

/** A process that runs an embedded broker, as `petrel dev` does. It survives SIGINT and says so. */
const owner = async (dataDir: string) => {
  const module = new URL("../../src/broker/embedded/embedded.ts", import.meta.url).href
  const code = `
    import { Effect } from "effect"
    import { startEmbedded } from ${JSON.stringify(module)}
    process.on("SIGINT", () => console.log("interrupted"))
    const program = Effect.gen(function* () {
      const broker = yield* startEmbedded({ port: 0, dataDir: ${JSON.stringify(dataDir)} })
      console.log(JSON.stringify({ url: broker.url, pid: broker.pid }))
      yield* Effect.never
    })
    setInterval(() => {}, 60_000)
    await Effect.runPromise(Effect.scoped(program))`
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"]
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => String((await lines.next()).value)
  const broker: Pick<EmbeddedBroker, "url" | "pid"> = JSON.parse(await next())
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill("SIGKILL")
    await once(child, "exit")
  }
  return { broker, next, kill, pid: child.pid ?? 0 }
}

describe("a process with an embedded broker", () => {
  it("does not leave it behind when killed, and can be started again at once", async () => {
    const dataDir = join(directory, "data")
    const first = await owner(dataDir)
    await first.kill()
    const second = await owner(dataDir)
    assert.isFalse(isAlive(first.broker.pid))
    await second.kill()
    await gone(second.broker.pid)
  })

  it("gets the terminal's Ctrl-C alone: the broker works on", async () => {
    const running = await owner(join(directory, "data"))
    try {
      process.kill(-running.pid, "SIGINT")
      assert.strictEqual(await running.next(), "interrupted")
      await Effect.runPromise(connected(running.broker.url, (nc) => nc.flush()))
    } finally {
      await running.kill()
      await gone(running.broker.pid)
    }
  })
})
