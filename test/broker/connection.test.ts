import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { launch, startServer } from "../kit/nats-server.ts"

const connected = Effect.gen(function* () {
  const { connection } = yield* natsClients
  return connection.info?.port
})

const problem = (url: string) =>
  connected.pipe(
    Effect.provide(connectTo({ url })),
    Effect.flip,
    Effect.map((error) => error.message)
  )

const server = (config: string) =>
  Effect.acquireRelease(
    Effect.promise(() => startServer({ config })),
    (one) => Effect.promise(() => one.stop())
  )

describe("a connection to the broker", () => {
  it.live("logs in with the user and password of its URL, and never shows them", () =>
    Effect.gen(function* () {
      const { port } = yield* server('authorization: { user: "pe trel", password: "p@ss/word" }')
      const host = `127.0.0.1:${port}`
      const found = yield* connected.pipe(
        Effect.provide(connectTo({ url: `nats://pe%20trel:p%40ss%2Fword@${host}` }))
      )
      assert.strictEqual(found, port)
      const sentence = yield* problem(`nats://petrel:wrong@${host}`)
      assert.include(sentence, `the broker at nats://${host} refuses this user or password`)
      assert.notInclude(sentence, "wrong")
    }).pipe(Effect.scoped)
  )

  it.live("says where nobody answers and what to do", () =>
    Effect.gen(function* () {
      const sentence = yield* problem("nats://127.0.0.1:9")
      assert.include(sentence, "no NATS server answers at nats://127.0.0.1:9")
      assert.include(sentence, "petrel dev")
    })
  )

  it.live("tells something that does not answer from nothing that listens", () =>
    Effect.gen(function* () {
      const silent = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const one = createServer((socket) => socket.on("error", () => undefined))
          await once(one.listen(0, "127.0.0.1"), "listening")
          return one
        }),
        (one) => Effect.sync(() => one.close())
      )
      const { port } = silent.address() as AddressInfo
      const sentence = yield* problem(`nats://127.0.0.1:${port}`)
      assert.include(sentence, `no NATS server answers at nats://127.0.0.1:${port} (timeout)`)
      assert.include(sentence, "whether it hangs")
      assert.notInclude(sentence, "petrel dev")
    }).pipe(Effect.scoped)
  )

  it.live("says that a broker has no JetStream", () =>
    Effect.gen(function* () {
      const { path } = yield* findNatsServer()
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-"))),
        (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
      )
      const config = join(directory, "nats.conf")
      yield* Effect.promise(() => writeFile(config, 'listen: "127.0.0.1:-1"\n'))
      const { port } = yield* Effect.acquireRelease(
        Effect.promise(() => launch(path, config)),
        (one) => Effect.promise(one.end)
      )
      assert.include(yield* problem(`nats://127.0.0.1:${port}`), "has no JetStream")
    }).pipe(Effect.scoped)
  )
})
