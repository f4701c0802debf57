import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { natsClients } from "../../../src/broker/clients.ts"
import { readStatus } from "../../../src/operations/status/status-report.ts"
import { eventually, installation, nth } from "../../kit/engine.ts"
import type { TestCluster } from "../../kit/nats-server.ts"
import { startCluster } from "../../kit/nats-server.ts"
import { run } from "../in-process.ts"

const maxStore = 1024 ** 3

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster(3, { maxStore })
})
afterAll(() => cluster.stop())

const place = () => {
  const there = installation(cluster)
  const { eventRoot, prefix, url } = there
  return { ...there, flags: ["--nats", url, "--prefix", prefix, "--events", eventRoot] }
}

/** The streams of an installation: copies, bytes reserved and age of each. */
const streamsOf = (prefix: string) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    return yield* ask("list", async () => {
      const found: Array<readonly [string, number, number, number]> = []
      for await (const { config } of jsm.streams.list())
        if (config.name.startsWith(prefix))
          found.push([config.name, config.num_replicas, config.max_bytes, config.max_age])
      return found.sort()
    })
  })

describe("petrel init on a cluster", () => {
  it.live(
    "makes nothing that its servers have not all the space or copies for, then all of it",
    () => {
      const { flags, prefix, within } = place()
      return within(
        Effect.gen(function* () {
          const init = (...args: ReadonlyArray<string>) =>
            run("init", "--partitions", "1", ...args, ...flags)
          const bytes = [
            "--event-bytes",
            "600MiB",
            "--history-bytes",
            "300MiB",
            "--dead-bytes",
            "200MiB"
          ]
          const tooMuch = yield* init("--replicas", "3", ...bytes)
          assert.strictEqual(
            nth(tooMuch.err, 0),
            `petrel: the streams need 1175 MiB more (${prefix}EVENTS 600 MiB, ${prefix}HISTORY 300 MiB, ${prefix}DEAD 200 MiB, ${prefix}INTAKE 75 MiB) on each of 3 servers, and the broker has less that is not reserved: reserve less with \`petrel init --event-bytes\`, or raise the account's max_file or the broker's max_file_store`
          )
          assert.notInclude(tooMuch.err.join("\n"), "1 copy")
          const single = yield* init(
            "--event-bytes",
            "600MiB",
            ...bytes.slice(2, 4),
            "--dead-bytes",
            "400MiB"
          )
          assert.match(
            single.err.join("\n"),
            /belongs to a cluster, but each stream has 1 copy.*see --replicas.*petrel: the streams need/s,
            "what one copy means is said before anything is made"
          )
          const tooMany = yield* init("--replicas", "5")
          assert.match(
            nth(tooMany.err, 0),
            /^petrel: --replicas 5 needs a cluster of that many brokers/
          )
          assert.deepStrictEqual(yield* streamsOf(prefix), [])

          const made = yield* init("--replicas", "3")
          assert.strictEqual(made.code, 0, made.err.join())
          const streams = yield* streamsOf(prefix)
          const reserved = streams.reduce((sum, [, , bytes]) => sum + Math.max(0, bytes), 0)
          assert.isAtMost(reserved, maxStore, "each server has a copy of each stream")

          const short = ["--event-dedupe", "5m", "--history-age", "1m", "--dead-age", "1m"]
          for (const [args, says] of [
            [["--replicas", "5"], "--replicas 5 needs a cluster of that many brokers"],
            [short, "--history-age (1 min) must not be shorter than 2 min"]
          ] as const) {
            const refused = yield* run("init", ...args, ...flags)
            assert.include(nth(refused.err, 0), says)
            assert.strictEqual(refused.code, 1)
            assert.deepStrictEqual(yield* streamsOf(prefix), streams, "nothing is changed")
          }

          const { ask, jsm } = yield* natsClients
          yield* ask("remove", () => jsm.streams.delete(`${prefix}EVENTS`))
          const again = yield* run("init", ...flags)
          assert.strictEqual(again.code, 0, again.err.join())
          assert.deepStrictEqual(yield* streamsOf(prefix), streams, "with as many copies")
        })
      )
    }
  )

  it.live("gives streams and consumers their copies back that somebody took away", () => {
    const { flags, prefix, within } = place()
    return within(
      Effect.gen(function* () {
        const made = yield* run("init", "--partitions", "1", "--replicas", "3", ...flags)
        assert.strictEqual(made.code, 0, made.err.join())
        const { ask, jsm, names } = yield* natsClients
        const streams = yield* streamsOf(prefix)
        yield* ask("take copies away", async () => {
          await jsm.consumers.update(names.events, names.routerConsumer, { num_replicas: 1 })
          for (const name of [names.events, names.backlog(0)])
            await jsm.streams.update(name, { num_replicas: 1 })
        })
        const status = yield* run("status", "--check", ...flags)
        assert.include(
          status.err.join("\n"),
          `${names.events}, ${names.backlog(0)} have fewer copies than other streams (num_replicas was changed with another tool)`
        )
        const mended = yield* run("init", ...flags)
        assert.strictEqual(mended.code, 0, mended.err.join())
        yield* eventually(
          streamsOf(prefix),
          (now) => JSON.stringify(now) === JSON.stringify(streams)
        )
        yield* eventually(readStatus, ({ problems }) =>
          problems.every(({ code }) => !code.endsWith("-changed"))
        )

        yield* ask("take copies of the consumer away", () =>
          jsm.consumers.update(names.events, names.routerConsumer, { num_replicas: 1 })
        )
        yield* eventually(readStatus, ({ problems }) =>
          problems.some(({ text }) => text.includes("the consumer of the routers has fewer copies"))
        )
        yield* run("init", ...flags)
        const { config } = yield* ask("look", () =>
          jsm.consumers.info(names.events, names.routerConsumer)
        )
        assert.strictEqual(config.num_replicas, 0)
      })
    )
  })
})
