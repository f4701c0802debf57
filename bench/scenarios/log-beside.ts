import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { remoteStatus } from "../../src/projection/remote-log.ts"
import { addTyped, endpointCap, type Ground, prepare, typeSubjects } from "../ground.ts"
import { watch } from "../machine.ts"
import { cpuOf, memoryOf, startConsole, startReceiver } from "../processes.ts"
import type { Scenario } from "../scenario.ts"

const endpoints = 10
const bytes = 1024
/** Between two looks at how far the projection is behind. */
const lookEvery = "100 millis"

const quantile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/**
 * Looks how far the log is behind, from outside: the age of the oldest fact that was in the history
 * at an earlier look and is not in the log. The log's own figure is as of its last look.
 */
const startLooking = () => {
  const stored: Array<{ readonly at: number; readonly last: number }> = []
  const behind: Array<number> = []
  const look = Effect.gen(function* () {
    const { names, streamInfo } = yield* Broker
    const { state } = yield* streamInfo("look at the history", names.history)
    stored.push({ at: performance.now(), last: state.last_seq })
    const { position } = yield* remoteStatus
    const missing = stored.find(({ last }) => last > position)
    behind.push(missing === undefined ? 0 : performance.now() - missing.at)
  })
  return { behind, look }
}

/** Delivers events as fast as it goes. Returns deliveries a second. */
const deliver = ({ publisher, receiver }: Ground, count: number) =>
  Effect.promise(async () => {
    await receiver.reset()
    const [{ first, last }] = await Promise.all([
      receiver.received(count),
      publisher.publish({ subject: typeSubjects, subjects: endpoints, count, bytes })
    ])
    return ((count - 1) * 1_000) / (last - first)
  })

/** Waits until the log has all facts that are in the history now. */
export const caughtUp = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  yield* Effect.repeat(
    Effect.orElseSucceed(remoteStatus, () => undefined),
    { until: (status) => (status?.position ?? -1) >= state.last_seq }
  )
})

const rate = { unit: "/s", digits: 0, panel: "deliveries a second" }
const time = { unit: "ms", digits: 0, panel: "how far the log is behind, ms" }

/** Deliveries at full speed, with a console that keeps the log of deliveries and without, in turn. */
export const logBeside: Scenario = {
  name: "log-beside",
  measures:
    "How far the log of deliveries is behind while a worker delivers as fast as it can, and what it takes from it.",
  limit: "The limit is the same worker without a console.",
  sides: { petrel: "with a log", limit: "without" },
  onlyNamed: true,
  figures: {
    petrel: { title: "with a log", ...rate },
    limit: { title: "without", ...rate, side: "limit" },
    ratio: { title: "ratio", unit: "", digits: 3 },
    p50: { title: "behind, p50", ...time },
    p99: { title: "behind, p99", ...time },
    after: { title: "behind once all is delivered", unit: "ms", digits: 0 },
    cpu: { title: "console CPU a delivery", unit: "µs", digits: 1 },
    memory: { title: "console memory", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 2 : 6 }, row) {
    const count = quick ? 8_000 : 60_000
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addTyped(endpoints, (number) => `${receiver.url}/${number}`)
    )
    const broker = connectTo(ground.broker)
    const workers = ground.workers.map(({ pid }) => pid)
    const of = "1 worker"
    for (let round = 0; round <= rounds; round++) {
      const watchedLimit = watch({ worker: workers, broker: [ground.broker.pid] })
      const limit = yield* deliver(ground, count)
      const limitUse = watchedLimit().use
      yield* Effect.gen(function* () {
        const { pid } = yield* startConsole(ground.broker.url)
        yield* caughtUp
        const { behind, look } = startLooking()
        const spent = cpuOf(pid)
        const watched = watch({ worker: workers, broker: [ground.broker.pid], console: [pid] })
        const petrel = yield* Effect.raceFirst(
          deliver(ground, count),
          Effect.forever(Effect.andThen(look, Effect.sleep(lookEvery)))
        )
        const ended = performance.now()
        yield* caughtUp
        const after = performance.now() - ended
        const { use } = watched()
        // The first round warms up.
        if (round === 0) return
        row({
          of,
          round,
          figures: {
            ...{ petrel, limit, ratio: petrel / limit, after },
            ...{ p50: quantile(behind, 0.5), p99: quantile(behind, 0.99) },
            cpu: (cpuOf(pid) - spent) / count,
            memory: memoryOf(pid)
          },
          machine: { petrel: use, limit: limitUse }
        })
      }).pipe(Effect.scoped, Effect.provide(broker))
    }
    return {
      settings: {
        events: count,
        bytes,
        endpoints,
        rounds,
        "requests at once": endpoints * endpointCap
      },
      aims: [{ of, figure: "p99", atMost: 2_000 }]
    }
  })
}
