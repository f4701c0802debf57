import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { defaultKeepMs, defaultMaxBytes } from "../../src/cli/console-projection.ts"
import { makeNames } from "../../src/domain/names.ts"
import type { DeliveryQuery } from "../../src/projection/delivery-log.ts"
import type { Projection } from "../../src/projection/projection.ts"
import { startProjection } from "../../src/projection/projection.ts"
import { watch } from "../machine.ts"
import { storeHistory } from "../made-up-history.ts"
import { startReader } from "../processes.ts"
import { startBroker } from "../rig.ts"
import type { Row, Scenario } from "../scenario.ts"

/** What is asked for, each as often as the others. */
const queries: Readonly<Record<string, DeliveryQuery>> = {
  "a tenant's newest": { tenant: "bench" },
  "an endpoint's newest": { tenant: "bench", endpoint: "endpoint-0" },
  "no end without success": { tenant: "bench", state: "dead-lettered" },
  "what waits": { tenant: "bench", state: "waiting" },
  "a status that only failures have, absent": { tenant: "bench", status: 418 },
  "a status of successes, absent": { tenant: "bench", status: 299 },
  "an error, absent": { tenant: "bench", error: "timeout" },
  "a type": { tenant: "bench", type: "invoice.*" },
  "an event": { tenant: "bench", event: "bench.event-77" },
  "the beginning of few events": { tenant: "bench", event: "bench.event-123*" },
  "the beginning of all events": { tenant: "bench", event: "bench.*" },
  "the beginning of all events, and a status, absent": { event: "bench.*", status: 299 }
}

const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

/** Asks all queries in turn. Returns how long each took, ms, by its name. */
const ask = Effect.fnUntraced(function* (log: Projection["log"], times: number) {
  const took = new Map<string, Array<number>>()
  for (let time = 0; time < times; time++)
    for (const [name, query] of Object.entries(queries)) {
      const began = performance.now()
      yield* log.find(query)
      const ms = performance.now() - began
      took.set(name, [...(took.get(name) ?? []), ms])
    }
  return took
})

const caughtUp = Effect.fnUntraced(function* (log: Projection["log"], last: number) {
  while (true) {
    const status = yield* Effect.option(log.status)
    if (status._tag === "Some" && status.value.position >= last) return status.value
    yield* Effect.sleep("20 millis")
  }
})

const rate = { unit: "/s", digits: 0, panel: "facts a second" }
const time = { unit: "ms", digits: 2 }

/** Folds a generated history into the delivery log, and asks it. */
export const deliveryLog: Scenario = {
  name: "delivery-log",
  measures: "How fast a projection takes a history, and how long a page of it takes.",
  limit: "The limit is a program that reads the same facts and does nothing with them.",
  sides: { petrel: "projection", limit: "reading" },
  onlyNamed: true,
  figures: {
    petrel: { title: "projection", ...rate },
    limit: { title: "reading", ...rate, side: "limit" },
    ratio: { title: "ratio", unit: "", digits: 3 },
    p50: { title: "page, p50", ...time },
    p99: { title: "page, p99", ...time, panel: "a page, p99, ms" },
    most: { title: "slowest page", ...time },
    bytes: { title: "on disk", unit: "B a delivery", digits: 0 },
    cpu: { title: "CPU a fact", unit: "µs", digits: 1 },
    memory: { title: "memory, with the benchmark's own", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 3 }, row) {
    const sizes = quick
      ? [{ deliveries: 50_000, rounds }]
      : [
          { deliveries: 1_000_000, rounds },
          // Once: it takes a quarter of an hour and 12 GB of disk.
          { deliveries: 10_000_000, rounds: 1 }
        ]
    const details: Record<string, unknown> = {}
    for (const size of sizes)
      details[nameOf(size)] = yield* Effect.scoped(measure(size, quick, row))
    return {
      settings: { rounds, queries: Object.keys(queries).length },
      aims: sizes.flatMap((size) => [
        { of: nameOf(size), figure: "petrel", atLeast: 30_000 },
        { of: nameOf(size), figure: "p99", atMost: 50 }
      ]),
      details
    }
  })
}

interface Size {
  readonly deliveries: number
  readonly rounds: number
}

const nameOf = ({ deliveries }: Size): string => `${deliveries.toLocaleString("en")} deliveries`

/** Measures with so many deliveries. Returns p50 and p99 of each query, by round. */
const measure = Effect.fnUntraced(function* (size: Size, quick: boolean, row: (row: Row) => void) {
  const { history } = makeNames()
  const { deliveries, rounds } = size
  const broker = yield* startBroker()
  const layer = connectTo(broker)
  yield* Effect.provide(storeHistory({ events: deliveries, fanOut: 1 }), layer)
  const { state } = yield* Effect.provide(
    Effect.flatMap(Broker, ({ streamInfo }) => streamInfo("count the facts", history)),
    layer
  )
  const reader = yield* startReader(broker.url)
  const details: Record<string, unknown> = { facts: state.messages }
  for (let round = 1; round <= rounds; round++)
    yield* Effect.gen(function* () {
      const watchedLimit = watch({ limit: [reader.pid], broker: [broker.pid] })
      const { ms } = yield* Effect.promise(() => reader.read({ streams: [history] }))
      const limit = watchedLimit().use
      const data = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-bench-log-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      const watched = watch({ broker: [broker.pid] })
      const cpu = process.cpuUsage()
      const began = performance.now()
      const { log } = yield* startProjection({
        broker: { url: broker.url },
        data,
        keepMs: defaultKeepMs,
        maxBytes: defaultMaxBytes
      })
      const status = yield* caughtUp(log, state.last_seq)
      const seconds = (performance.now() - began) / 1_000
      const { system, user } = process.cpuUsage(cpu)
      const { use } = watched()
      const took = yield* ask(log, quick ? 10 : 50)
      const all = [...took.values()].flat().sort((a, b) => a - b)
      details[`round ${round}`] = Object.fromEntries(
        [...took].map(([name, times]) => {
          const sorted = times.toSorted((a, b) => a - b)
          return [name, { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) }]
        })
      )
      row({
        of: nameOf(size),
        round,
        figures: {
          petrel: state.messages / seconds,
          limit: state.messages / (ms / 1_000),
          ratio: ms / 1_000 / seconds,
          p50: quantile(all, 0.5),
          p99: quantile(all, 0.99),
          most: all.at(-1) ?? 0,
          bytes: status.bytes / Math.max(1, status.rows),
          cpu: (system + user) / state.messages,
          memory: process.memoryUsage().rss / 1_024 ** 2
        },
        machine: { petrel: use, limit }
      })
    }).pipe(Effect.scoped)
  return details
})
