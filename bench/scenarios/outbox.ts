import { Effect, Stream } from "effect"
import pg from "pg"
import { Broker } from "../../src/broker/broker.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { readStream } from "../../src/broker/scan.ts"
import { eventIdHeader } from "../../src/domain/intake.ts"
import { migration } from "../../src/outbox/migration.ts"
import { enqueueAll } from "../../src/outbox/outbox.ts"
import { readTable, usualTable } from "../../src/outbox/table-name.ts"
import { startPostgres } from "../../test/kit/postgres-server.ts"
import { watch } from "../machine.ts"
import { startRelay } from "../processes.ts"
import { startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const bytes = 1_000
/** Rows a second that are committed one by one, and connections that do so. */
const perSecond = 500
const writers = 4
const atOnce = 1_000

const connected = async (url: string) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

/** Commits rows in transactions of a size. Returns when each was committed, by its id. */
const commitRows = async (client: pg.Client, ids: ReadonlyArray<string>, size: number) => {
  const committed = new Map<string, number>()
  for (let from = 0; from < ids.length; from += size) {
    const some = ids.slice(from, from + size)
    await client.query("begin")
    await enqueueAll(
      client,
      some.map((id) => ({ tenant: "bench", type: "tick", id, body: "x".repeat(bytes) }))
    )
    await client.query("commit")
    for (const id of some) committed.set(`bench.outbox.${id}`, Date.now())
  }
  return committed
}

const intake = Effect.gen(function* () {
  const { names } = yield* Broker
  const messages = yield* Stream.runCollect(
    readStream({ stream: names.intake, subjects: [], headersOnly: true })
  )
  return messages.map(({ headers, time }) => ({
    id: headers?.get(eventIdHeader) ?? "",
    at: time.getTime()
  }))
})

const untilStored = Effect.fnUntraced(function* (count: number) {
  const { names, streamInfo } = yield* Broker
  while ((yield* streamInfo("count", names.intake)).state.messages < count)
    yield* Effect.sleep("50 millis")
})

const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

/** Rows that wait when the relay starts, and rows that are committed at a steady rate. */
export const outbox: Scenario = {
  name: "outbox",
  measures: "Rows per second of one relay, and the time from commit to stream.",
  limit: "PostgreSQL (without fsync), broker, relay and writers share the machine.",
  onlyNamed: true,
  figures: {
    rate: { title: "rows waiting, published", unit: "rows/s", digits: 0, panel: "rows a second" },
    cpu: { title: "CPU of the relay, a row", unit: "µs", digits: 0 },
    p50: { title: "commit to stream, p50", unit: "ms", digits: 0, panel: "ms" },
    p99: { title: "commit to stream, p99", unit: "ms", digits: 0, panel: "ms", side: "limit" }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 3 }, row) {
    const waiting = quick ? 10_000 : 50_000
    const steady = perSecond * (quick ? 5 : 20)
    const table = readTable(usualTable)
    const database = yield* Effect.acquireRelease(
      Effect.promise(() => startPostgres({ shared_buffers: "256MB" })),
      ({ stop }) => Effect.promise(stop)
    )
    for (let round = 1; round <= rounds; round++) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const broker = yield* startBroker()
          const url = yield* Effect.promise(() => database.database(`round_${round}`))
          const clients = yield* Effect.promise(() =>
            Promise.all(Array.from({ length: writers }, () => connected(url)))
          )
          yield* Effect.addFinalizer(() =>
            Effect.promise(() => Promise.all(clients.map((client) => client.end())))
          )
          const [first] = clients
          if (first === undefined || table === undefined) return
          yield* Effect.promise(async () => {
            await first.query(migration(table))
            const ids = Array.from({ length: waiting }, (_, index) => `w${index}`)
            await commitRows(first, ids, atOnce)
          })
          const relay = yield* startRelay(broker.url, url)
          const watched = watch({ relay: [relay.pid], broker: [broker.pid] })
          const begun = performance.now()
          const measured = Effect.gen(function* () {
            yield* untilStored(waiting)
            const seconds = (performance.now() - begun) / 1_000
            const { cpu, use } = watched()
            const committed = new Map<string, number>()
            yield* Effect.promise(() =>
              Promise.all(
                clients.map(async (client, writer) => {
                  const from = performance.now()
                  for (let index = writer; index < steady; index += writers) {
                    const due = from + (index * 1_000) / perSecond - performance.now()
                    if (due > 0) await new Promise((resolve) => setTimeout(resolve, due))
                    for (const [id, at] of await commitRows(client, [`s${index}`], 1))
                      committed.set(id, at)
                  }
                })
              )
            )
            yield* untilStored(waiting + steady)
            const took = (yield* intake)
              .flatMap(({ at, id }) => {
                const since = committed.get(id)
                return since === undefined ? [] : [Math.max(0, at - since)]
              })
              .sort((a, b) => a - b)
            row({
              of: "1 relay",
              round,
              figures: {
                rate: waiting / seconds,
                cpu: (cpu.relay ?? 0) / waiting,
                p50: quantile(took, 0.5),
                p99: quantile(took, 0.99)
              },
              machine: { petrel: use }
            })
          })
          yield* Effect.provide(measured, connectTo({ url: broker.url }))
        })
      )
    }
    return {
      settings: { waiting, bytes, "steady rows a second": perSecond, steady, rounds },
      aims: [
        { of: "1 relay", figure: "rate", atLeast: 5_000 },
        { of: "1 relay", figure: "p99", atMost: 100 }
      ]
    }
  })
}
