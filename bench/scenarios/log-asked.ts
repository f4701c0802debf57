import { Effect, Schedule, Schema } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { quarantine } from "../../src/intake/quarantine.ts"
import { readLastAudit } from "../../src/operations/audit/run-audit.ts"
import { addTyped, endpointCap, prepare, typeSubjects } from "../ground.ts"
import { watch } from "../machine.ts"
import {
  memoryOf,
  runPetrelCommand,
  startAsker,
  startConsole,
  startReceiver
} from "../processes.ts"
import type { Took } from "../programs/asker.ts"
import { addEndpoints } from "../rig.ts"
import type { Row, Scenario } from "../scenario.ts"
import { caughtUp } from "./log-beside.ts"
import { type Known, questionsOf } from "./log-questions.ts"

const endpoints = 10
const bytes = 300
/** What the worker delivers while the console is asked, a second. */
const perSecond = 500
const tenant = "bench"
const base = `/v1/tenants/${tenant}`
/** Deliveries to an endpoint that refuses connections, and so become dead letters. */
const refused = 200

const Made = Schema.fromJsonString(Schema.Struct({ token: Schema.String }))
const Id = Schema.Struct({ id: Schema.String })
const Job = Schema.Struct({ state: Schema.String })
const Page = Schema.Struct({ deliveries: Schema.Array(Schema.Struct({ event: Schema.String })) })
const DeadLetters = Schema.Struct({
  deadLetters: Schema.Array(Schema.Struct({ id: Schema.Int }))
})
const Quarantined = Schema.Struct({
  quarantined: Schema.Array(Schema.Struct({ number: Schema.Int }))
})

/** Calls a console. Fails where it refuses. */
const callerOf =
  (address: string, token: string) =>
  async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${address}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return JSON.parse(text)
  }

/** An endpoint where nothing listens: each delivery there is a dead letter after one attempt. */
const addRefusing = addEndpoints(1, () => ({
  ...{ id: "refusing", url: "http://127.0.0.1:9", types: ["refused"] },
  retry: {
    ...{ backoff: { kind: "fixed", delay: "1 second" }, jitter: "none" },
    ...{ maxAttempts: 1, window: "1 minute" }
  },
  circuit: { failures: 10_000, rate: "none", permanentFailures: 1_000_000 }
}))

const putInQuarantine = quarantine(
  tenant,
  {
    ...{ source: "stripe", provider: "stripe", contentType: "application/json", headers: {} },
    ...{ method: "POST", url: "http://127.0.0.1/in/bench/stripe" },
    ...{ reason: "unreadable", problem: "no id" }
  },
  Buffer.from("{}")
)

/** Waits until the console's own audit has read what is stored now. */
const audited = Effect.gen(function* () {
  const next = (after: number) =>
    Effect.repeat(
      Effect.map(readLastAudit, (last) => last?.at ?? 0),
      { until: (at) => at > after, schedule: Schedule.spaced("1 second") }
    )
  // The look that ends next may have begun before.
  yield* next(yield* next(Date.now()))
})

/** Makes what the document's gets are about, and returns what to ask for it by. */
const makeKnown = async (call: ReturnType<typeof callerOf>): Promise<Known> => {
  const idOf = async (path: string, body: unknown) =>
    Schema.decodeUnknownSync(Id)(await call("POST", path, body)).id
  await call("POST", `${base}/sources/stripe`, { provider: "stripe", secrets: ["whsec_of_bench"] })
  await call(
    "POST",
    `${base}/events`,
    Array.from({ length: refused }, (_, n) => ({ type: "refused", id: `refused-${n}`, data: n }))
  )
  const page = await call("GET", `${base}/deliveries?endpoint=e0&limit=1`)
  const event = Schema.decodeUnknownSync(Page)(page).deliveries[0]?.event ?? ""
  let dead: ReadonlyArray<{ readonly id: number }> = []
  while (dead.length < refused)
    dead = Schema.decodeUnknownSync(DeadLetters)(
      await call("GET", `${base}/dead-letters?limit=${refused}`)
    ).deadLetters
  const { quarantined } = Schema.decodeUnknownSync(Quarantined)(
    await call("GET", `${base}/quarantine`)
  )
  // These jobs find nothing to do.
  const since = new Date().toISOString()
  const audits = await idOf("/v1/audits", { tenant })
  // It reads all events and facts, and would take a core while the console is asked.
  let state = "waiting"
  while (state === "waiting" || state === "running")
    ({ state } = Schema.decodeUnknownSync(Job)(await call("GET", `/v1/audits/${audits}`)))
  if (state !== "done") throw new Error(`the audit has ended as ${state}`)
  return {
    tenant,
    event,
    delivery: `${event}.e0`,
    token: await idOf(`${base}/tokens`, { scopes: ["events:publish"], name: "asked" }),
    endpoints: "e3",
    sources: "stripe",
    "dead-letters": String(dead[0]?.id),
    quarantine: String(quarantined[0]?.number),
    redeliveries: await idOf(`${base}/redeliveries`, { endpoint: "e3" }),
    replays: await idOf(`${base}/replays`, { endpoint: "e3", since }),
    retries: await idOf(`${base}/retries`, { endpoint: "e3" }),
    recoveries: await idOf(`${base}/endpoints/e3/recover`, { since }),
    audits
  }
}

const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

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

const time = { unit: "ms", digits: 1 }

/** Lists and gets over HTTP while a worker delivers. */
export const logAsked: Scenario = {
  name: "log-asked",
  measures:
    "How long each list and get of the OpenAPI document takes, of ids that are there and of unknown ones, beside a worker, with 200,000 deliveries in the log.",
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
      Effect.all([
        addTyped(endpoints, (number) => `${receiver.url}/${number}`),
        addRefusing,
        putInQuarantine
      ])
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
    const known = yield* Effect.promise(() => makeKnown(callerOf(console.address, token)))
    yield* Effect.provide(Effect.andThen(caughtUp, audited), connectTo(broker))
    const questions = questionsOf(apiDocument(), known)
    const resting = memoryOf(console.pid)
    const asker = yield* startAsker(console, token, broker.pid)
    const scrape = { name: "/metrics", path: "/metrics", isUnknown: false }
    const all = [scrape, ...questions]
    // The first round warms up.
    const asking = Effect.promise(async () => {
      await asker.ask({ questions: all, times: 2 })
      return asker.ask({ questions: all, times: rounds })
    })
    const delivering = Effect.promise(() =>
      publisher.publish({ ...deliver, count: 3_600 * perSecond, perSecond })
    )
    const watched = watch({
      worker: workers.map(({ pid }) => pid),
      broker: [broker.pid],
      console: [console.pid],
      asker: [asker.pid]
    })
    const { took } = yield* Effect.raceFirst(asking, Effect.andThen(delivering, Effect.never))
    const { use } = watched()
    const rows: Array<Row> = took.map(([name, times]) => ({
      of: name,
      round: 1,
      figures: figuresOf(times)
    }))
    const lists = took.filter(([name]) => !name.startsWith("/")).flatMap(([, times]) => times)
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
        ...{
          deliveries: count,
          bytes,
          endpoints,
          questions: questions.length,
          "asked each": rounds
        },
        ...{
          "delivered a second meanwhile": perSecond,
          "requests at once": endpoints * endpointCap
        }
      },
      aims: [
        ...aims,
        { of: "/metrics", figure: "p99", atMost: 10 },
        { of: atRest, figure: "memory", atMost: 300 },
        { of: altogether, figure: "memory", atMost: 300 }
      ]
    }
  })
}

const altogether = "all lists and gets"
const atRest = "the console before it is asked"
