import { Effect, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { addTyped, endpointCap, prepare, typeSubjects } from "../ground.ts"
import { watch } from "../machine.ts"
import { memoryOf, runPetrelCommand, startConsole, startReceiver } from "../processes.ts"
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

const figuresOf = (times: ReadonlyArray<number>) => {
  const sorted = times.toSorted((a, b) => a - b)
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), most: sorted.at(-1) ?? 0 }
}

/** Asks for all paths in turn. Returns how long the answers took, ms, by path. */
const ask = async (address: string, token: string, paths: ReadonlyArray<string>, times: number) => {
  const took = new Map(paths.map((path) => [path, [] as Array<number>]))
  for (let time = 0; time < times; time++)
    for (const path of paths) {
      const began = performance.now()
      const answer = await fetch(`${address}${path}`, {
        headers: { authorization: `Bearer ${token}` }
      })
      const text = await answer.text()
      took.get(path)?.push(performance.now() - began)
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
    memory: { title: "console memory", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 20 : 100 }, row) {
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
    const asking = Effect.promise(() =>
      // The first round warms up.
      ask(console.address, token, ["/healthz", "/metrics", ...paths], 2).then(() =>
        ask(console.address, token, ["/healthz", "/metrics", ...paths], rounds)
      )
    )
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
      of: all,
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

const all = "all lists and gets"
const atRest = "the console before it is asked"
