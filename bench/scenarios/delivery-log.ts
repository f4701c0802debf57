import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { defaultKeepMs, defaultMaxBytes } from "../../src/cli/commands/console/projection.ts"
import { makeNames } from "../../src/domain/names.ts"
import type { DeliveryQuery } from "../../src/projection/delivery-log.ts"
import { LogReader } from "../../src/projection/log-reader.ts"
import type { Projection } from "../../src/projection/projection.ts"
import { startProjection } from "../../src/projection/projection.ts"
import { ProjectionStore } from "../../src/projection/projection-store.ts"
import { watch } from "../machine.ts"
import { madeUpFacts, storeHistory } from "../made-up-history.ts"
import { startReader } from "../processes.ts"
import { startBroker } from "../rig.ts"
import type { Row, Scenario } from "../scenario.ts"

/** What is asked for, each as often as the others. */
const queries: Readonly<Record<string, DeliveryQuery>> = {
  "a tenant's newest": { tenant: "bench" },
  "an endpoint's newest": { tenant: "bench", endpoint: ["endpoint-0"] },
  "no end without success": { tenant: "bench", state: ["dead-lettered"] },
  "what waits": { tenant: "bench", state: ["waiting"] },
  "a status that only failures have, absent": { tenant: "bench", status: ["418"] },
  "a status of successes, absent": { tenant: "bench", status: ["299"] },
  "an error, absent": { tenant: "bench", error: ["timeout"] },
  "a type": { tenant: "bench", type: ["invoice.*"] },
  "an event": { tenant: "bench", event: "bench.event-77" },
  "the beginning of few events": { tenant: "bench", event: "bench.event-123*" },
  "the beginning of all events": { tenant: "bench", event: "bench.*" },
  "the beginning of all events, and a status, absent": { event: "bench.*", status: ["299"] }
}

/** How often each is asked. */
const asked = 50
/** As the projection commits them. */
const factsPerBatch = 10_000

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
    const [few, many] = quick ? [50_000, 100_000] : [1_000_000, 10_000_000]
    const details = {
      [nameOf(few)]: yield* Effect.scoped(measure(few, rounds, quick, row)),
      [nameOf(many)]: measureLarge(many, row)
    }
    return {
      settings: { rounds, queries: Object.keys(queries).length },
      aims: [
        { of: nameOf(few), figure: "petrel", atLeast: 30_000 },
        { of: nameOf(few), figure: "p99", atMost: 50 },
        { of: nameOf(many), figure: "p99", atMost: 50 }
      ],
      notes: [`${nameOf(many)}: filled by the projection's writer alone, without a broker.`],
      details
    }
  })
}

const nameOf = (deliveries: number): string => `${deliveries.toLocaleString("en")} deliveries`

/** Asks all queries of files with so many deliveries. Returns p50 and p99 of each query. */
const measureLarge = (deliveries: number, row: (row: Row) => void) => {
  const directory = mkdtempSync(join(tmpdir(), "petrel-bench-log-"))
  try {
    const store = new ProjectionStore({
      directory,
      keepMs: Number.MAX_SAFE_INTEGER,
      maxBytes: defaultMaxBytes
    })
    const cpu = process.cpuUsage()
    const began = performance.now()
    let seq = 0
    for (const text of madeUpFacts(deliveries)) {
      store.take(text, ++seq, `${seq}000000`)
      if (seq % factsPerBatch === 0) store.commit()
    }
    store.commit()
    const seconds = (performance.now() - began) / 1_000
    const { system, user } = process.cpuUsage(cpu)
    const { bytes, rows } = store
    store.close()
    const reader = new LogReader(directory)
    const took = new Map<string, Array<number>>()
    for (let time = 0; time < asked; time++)
      for (const [name, query] of Object.entries(queries)) {
        const before = performance.now()
        reader.find(query)
        took.set(name, [...(took.get(name) ?? []), performance.now() - before])
      }
    reader.close()
    row({
      of: nameOf(deliveries),
      round: 1,
      figures: {
        petrel: seq / seconds,
        ...pageFigures(took),
        bytes: bytes / Math.max(1, rows.ended),
        cpu: (system + user) / seq
      }
    })
    return byQuery(took)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const pageFigures = (took: ReadonlyMap<string, ReadonlyArray<number>>) => {
  const all = [...took.values()].flat().sort((a, b) => a - b)
  return { p50: quantile(all, 0.5), p99: quantile(all, 0.99), most: all.at(-1) ?? 0 }
}

const byQuery = (took: ReadonlyMap<string, ReadonlyArray<number>>) =>
  Object.fromEntries(
    [...took].map(([name, times]) => {
      const sorted = times.toSorted((a, b) => a - b)
      return [name, { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) }]
    })
  )

/** Measures with so many deliveries. Returns p50 and p99 of each query, by round. */
const measure = Effect.fnUntraced(function* (
  deliveries: number,
  rounds: number,
  quick: boolean,
  row: (row: Row) => void
) {
  const { history } = makeNames()
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
      const took = yield* ask(log, quick ? 10 : asked)
      details[`round ${round}`] = byQuery(took)
      row({
        of: nameOf(deliveries),
        round,
        figures: {
          petrel: state.messages / seconds,
          limit: state.messages / (ms / 1_000),
          ratio: ms / 1_000 / seconds,
          ...pageFigures(took),
          bytes: status.bytes / Math.max(1, status.rows),
          cpu: (system + user) / state.messages,
          memory: process.memoryUsage().rss / 1_024 ** 2
        },
        machine: { petrel: use, limit }
      })
    }).pipe(Effect.scoped)
  return details
})
