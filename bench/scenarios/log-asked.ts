import { Effect, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { addTyped, endpointCap, prepare, typeSubjects } from "../ground.ts"
import { watch } from "../machine.ts"
import {
  memoryOf,
  preciseCpuOf,
  runPetrelCommand,
  startConsole,
  startReceiver
} from "../processes.ts"
import type { Row, Scenario } from "../scenario.ts"
import { caughtUp } from "./log-beside.ts"

const endpoints = 10
const bytes = 300
/** What the worker delivers while the console is asked, a second. */
const perSecond = 500
const base = "/v1/tenants/bench"

const Made = Schema.fromJsonString(Schema.Struct({ token: Schema.String }))
const Page = Schema.fromJsonString(
  Schema.Struct({ deliveries: Schema.Array(Schema.Struct({ event: Schema.String })) })
)

/** What is asked for, each as often as the others, with an event that is there. */
const questionsAbout = (event: string): ReadonlyArray<string> => [
  ...["deliveries", "deliveries?endpoint=e3", "deliveries?type=type3&limit=200"],
  ...["deliveries?state=dead-lettered", "deliveries?status=418", "deliveries?state=waiting"],
  ...[`deliveries?event=${event}`, "deliveries?event=unknown", "deliveries?event=bench-*"],
  ...[`deliveries/${event}.e0`, "deliveries/unknown.e0"],
  ...[
    "attempts",
    "attempts?endpoint=e3&status=2xx",
    "attempts?status=418",
    "attempts?error=timeout"
  ],
  ...["events", "events?type=type3", "events?type=absent", `events/${event}`, "events/unknown"],
  ...["stats", "endpoints/e3/stats?by=hour", "totals"],
  ...["endpoints", "endpoints/e3", "endpoints/unknown", "dead-letters"]
]

const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

/** What one question took, ms: until its answer was there, and of the CPU meanwhile. */
interface Took {
  readonly ms: number
  readonly console: number
  readonly broker: number
}

/** Questions of each kind in one run: with fewer, the 99th percentile is the slowest one. */
const askedEach = 400

const figuresOf = (all: ReadonlyArray<Took>) => {
  const sorted = (figure: keyof Took) => all.map((one) => one[figure]).toSorted((a, b) => a - b)
  const ms = sorted("ms")
  return {
    p50: quantile(ms, 0.5),
    p99: quantile(ms, 0.99),
    most: ms.at(-1) ?? 0,
    // What runs beside it counts as well, so the mean would be of the worker's load.
    console: quantile(sorted("console"), 0.5),
    broker: quantile(sorted("broker"), 0.5)
  }
}

interface Asked {
  readonly address: string
  readonly token: string
  /** The processes that answer. */
  readonly console: number
  readonly broker: number
}

/** Asks for all paths in turn. Returns what the answers took, by path. */
const ask = async (of: Asked, paths: ReadonlyArray<string>, times: number) => {
  const took = new Map(paths.map((path) => [path, [] as Array<Took>]))
  const cpu = () => ({ console: preciseCpuOf(of.console), broker: preciseCpuOf(of.broker) })
  for (let time = 0; time < times; time++)
    for (const path of paths) {
      const before = cpu()
      const began = performance.now()
      const answer = await fetch(`${of.address}${path}`, {
        headers: { authorization: `Bearer ${of.token}` }
      })
      const text = await answer.text()
      const ms = performance.now() - began
      const after = cpu()
      took.get(path)?.push({
        ms,
        console: after.console - before.console,
        broker: after.broker - before.broker
      })
      const isMissing = answer.status === 404 && path.includes("unknown")
      if (!answer.ok && !isMissing) throw new Error(`${path}: ${answer.status} ${text}`)
    }
  return took
}

const time = { unit: "ms", digits: 1 }

/** Lists and gets over HTTP while a worker delivers. */
export const logAsked: Scenario = {
  name: "log-asked",
  measures:
    "How long each list and get of the HTTP API takes beside a worker, with 200,000 deliveries in the log.",
  limit: "The limit is /healthz of the same console, which reads nothing.",
  sides: { petrel: "lists and gets", limit: "/healthz" },
  onlyNamed: true,
  figures: {
    p50: { title: "p50", ...time },
    p99: { title: "p99", ...time, panel: "p99, ms" },
    most: { title: "slowest", ...time },
    console: { title: "console CPU", ...time },
    broker: { title: "broker CPU", ...time },
    memory: { title: "console memory", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 20 : askedEach }, row) {
    const count = quick ? 20_000 : 200_000
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addTyped(endpoints, (number) => `${receiver.url}/${number}`)
    )
    const { broker, publisher, workers } = ground
    const console = yield* startConsole(broker.url)
    const deliver = { subject: typeSubjects, subjects: endpoints, bytes }
    yield* Effect.promise(() =>
      Promise.all([receiver.received(count), publisher.publish({ ...deliver, count })])
    )
    yield* Effect.provide(caughtUp, connectTo(broker))
    const made = yield* runPetrelCommand([
      ...["token", "create", "--operator", "--rate", "1000000", "--json"],
      ...["--nats", broker.url]
    ])
    const { token } = Schema.decodeUnknownSync(Made)(made.printed)
    const page = yield* Effect.promise(() =>
      fetch(`${console.address}${base}/deliveries?endpoint=e0&limit=1`, {
        headers: { authorization: `Bearer ${token}` }
      }).then((answer) => answer.text())
    )
    const event = Schema.decodeUnknownSync(Page)(page).deliveries[0]?.event ?? ""
    const paths = questionsAbout(event).map((path) => `${base}/${path}`)
    const resting = memoryOf(console.pid)
    const asked = { address: console.address, token, console: console.pid, broker: broker.pid }
    const all = ["/healthz", "/metrics", ...paths]
    // The first round warms up.
    const asking = Effect.promise(() => ask(asked, all, 2).then(() => ask(asked, all, rounds)))
    const delivering = Effect.promise(() =>
      publisher.publish({ ...deliver, count: 3_600 * perSecond, perSecond })
    )
    const watched = watch({
      worker: workers.map(({ pid }) => pid),
      broker: [broker.pid],
      console: [console.pid]
    })
    const took = yield* Effect.raceFirst(asking, Effect.andThen(delivering, Effect.never))
    const { use } = watched()
    const named = [...took].map(([path, times]) => [path.replace(`${base}/`, ""), times] as const)
    const rows: Array<Row> = named.map(([path, times]) => ({
      of: path.replace(event, "EVENT"),
      round: 1,
      figures: figuresOf(times)
    }))
    const lists = named.filter(([path]) => !path.startsWith("/")).flatMap(([, times]) => times)
    rows.push({
      of: altogether,
      round: 1,
      figures: { ...figuresOf(lists), memory: memoryOf(console.pid) },
      machine: { petrel: use }
    })
    rows.push({ of: atRest, round: 1, figures: { memory: resting } })
    for (const one of rows) row(one)
    const aims = rows
      .filter(({ of }) => !of.startsWith("/") && of !== atRest)
      .map(({ of }) => ({ of, figure: "p99", atMost: 50 }))
    return {
      settings: {
        ...{ deliveries: count, bytes, endpoints, "asked each": rounds },
        ...{
          "delivered a second meanwhile": perSecond,
          "requests at once": endpoints * endpointCap
        }
      },
      aims: [
        ...aims,
        { of: "/metrics", figure: "p99", atMost: 10 },
        { of: atRest, figure: "memory", atMost: 300 }
      ]
    }
  })
}

const altogether = "all lists and gets"
const atRest = "the console before it is asked"
