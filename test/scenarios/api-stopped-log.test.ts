import { rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { Worker } from "node:worker_threads"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { DeliveryLog } from "../../src/projection/delivery-log.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { run } from "../cli/in-process.ts"
import { type Answer, type AskedConsole, startConsole } from "../kit/console.ts"
import { caughtUp, directory, optionsOf } from "../kit/delivery-log.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 90_000 })

const { scenario } = onServer()

/** What is answered from the log alone. */
const ofTheLog = ["deliveries", "events", "attempts", "stats", "endpoints/good/stats"]

interface Lag {
  readonly facts: number
  readonly ms: number
}

/** True for an answer that says that it is as new as the history. */
const saysLevel = ({ json, status }: Answer): boolean => {
  const { facts = 0, ms = 0 } = Object(json.lag) as Partial<Lag>
  return status === 200 && facts === 0 && ms === 0
}

/** Publishes the first or second event, which one endpoint takes and one does not, and waits for both ends. */
const publishOne = (id: "one" | "two") =>
  Effect.gen(function* () {
    const facts = yield* history
    const count = id === "one" ? 1 : 2
    yield* publish("paid", "{}", { "Nats-Msg-Id": `acme.${id}` })
    yield* facts.count("delivered", count)
    yield* facts.count("dead-lettered", count)
  })

/** Two endpoints, of which one takes the first event and the other one does not. */
const oneEvent = Effect.gen(function* () {
  const good = yield* receiver()
  const bad = yield* receiver({ answer: { status: 400 } })
  yield* endpoint({ id: "good", url: good.url, types: ["paid"] })
  yield* endpoint({ id: "bad", url: bad.url, types: ["paid"] })
  yield* worker()
  yield* publishOne("one")
})

/** What is asked of a console that keeps a log of deliveries. */
const asking = (place: Installation, { ask, token: makeToken }: AskedConsole) =>
  Effect.gen(function* () {
    const [token, operator] = [yield* makeToken(), yield* makeToken({ tenant: "*" })]
    return {
      ask: (path: string) => ask(`/v1/tenants/acme/${path}`, { token }),
      projection: ask("/v1/projection", { token: operator }),
      metrics: ask("/metrics"),
      /** What `petrel delivery show` says. */
      shown: (id: string) =>
        Effect.map(run("delivery", "show", id, ...flagsOf(place)), ({ out }) => out.join("\n"))
    }
  })
type LoggedConsole = Effect.Success<ReturnType<typeof asking>>

const flagsOf = ({ eventRoot, prefix, url }: Installation) =>
  ["--nats", url, "--prefix", prefix, "--events", eventRoot] as const

/** A console of this process, with a log of deliveries. */
const loggedConsole = (place: Installation, log: DeliveryLog["Service"]) =>
  Effect.flatMap(Effect.provideService(startConsole(), DeliveryLog, log), (console) =>
    asking(place, console)
  )

/** Looks at all that is answered while the log does not follow, and the second event is not in it. */
const saysStopped = ({ ask, projection, shown }: LoggedConsole, why: RegExp) =>
  Effect.gen(function* () {
    for (const path of ofTheLog) {
      const answer = yield* ask(path)
      assert.strictEqual(answer.status, 503, `${path}: ${answer.text}`)
      assert.match(String(answer.json.detail), why, path)
      assert.match(answer.headers.get("retry-after") ?? "", /^\d+$/, path)
    }
    const { json: status } = yield* projection
    assert.strictEqual(status.state, "stopped")
    assert.match(String(status.problem), why)
    assert.isAbove((status.lag as Lag).facts + (status.lag as Lag).ms, 0)
    // These are read elsewhere then: nothing that the log does not know is missing.
    const event = yield* ask("events/two")
    const states = (event.json.deliveries as ReadonlyArray<{ readonly state: string }>).map(
      ({ state }) => state
    )
    assert.deepStrictEqual(states.toSorted(), ["dead-lettered", "delivered"], event.text)
    const { rounds } = (yield* ask("deliveries/two.good")).json
    assert.deepInclude(nth(rounds as ReadonlyArray<object>, 0), { state: "delivered" })
    assert.match(yield* shown("acme.two.good"), /#1 .*delivered$/)
    const dead = yield* ask("dead-letters")
    assert.lengthOf(dead.json.deadLetters as ReadonlyArray<unknown>, 2, dead.text)
    const totals = yield* ask("totals")
    assert.include(totals.text, '"delivered":2', totals.text)
  })

const lagMetric = /^petrel_projection_lag_seconds (\S+)$/m

/** Waits until the metric says that the log is behind: its numbers are some seconds old. */
const metricTells = ({ metrics }: LoggedConsole) =>
  eventually(metrics, ({ text }) => Number(lagMetric.exec(text)?.[1] ?? 0) > 0)

/** Waits until all is answered from the log again, with both events. */
const goesOn = ({ ask }: LoggedConsole) =>
  Effect.gen(function* () {
    const isBack = (answer: Answer) => saysLevel(answer) && answer.text.includes("acme.two")
    for (const path of ["deliveries", "events", "attempts"]) yield* eventually(ask(path), isBack)
    const stats = yield* eventually(ask("stats"), saysLevel)
    assert.deepInclude(stats.json.whole, { succeeded: 2, failed: 2 })
  })

describe("the API, where the log of deliveries does not follow the history", () => {
  scenario("says so while nothing can be written to its files", (place) =>
    Effect.gen(function* () {
      yield* oneEvent
      const data = yield* directory
      const log = yield* serveProjection(optionsOf(place, data))
      yield* caughtUp(log.status)
      const console = yield* loggedConsole(place, log)
      const other = new DatabaseSync(join(data, "main.db"))
      other.exec("BEGIN IMMEDIATE")
      yield* publishOne("two")
      yield* eventually(console.ask("deliveries"), ({ status }) => status === 503)
      yield* saysStopped(console, /database is locked/)
      yield* metricTells(console)
      other.close()
      yield* goesOn(console)
      const { json } = yield* eventually(console.projection, saysLevel)
      assert.deepInclude(json, { state: "following", problem: null })
      yield* eventually(console.metrics, ({ text }) => lagMetric.exec(text)?.[1] === "0")
    })
  )

  scenario("says so while its thread has ended", (place) =>
    Effect.gen(function* () {
      yield* oneEvent
      const started: Array<Worker> = []
      const note = (thread: Worker) => started.push(thread)
      // What no thread expects to be told: its handler fails, and so does that of each next one.
      const end = (thread: Worker) => thread.postMessage(null)
      process.on("worker", note)
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => process.off("worker", note).off("worker", end))
      )
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      const console = yield* loggedConsole(place, log)
      process.off("worker", note).on("worker", end)
      end(nth(started, 0))
      yield* eventually(console.ask("deliveries"), ({ status }) => status === 503)
      yield* publishOne("two")
      yield* saysStopped(console, /its writer has ended/)
      yield* metricTells(console)
      // It waits for twice as long each time.
      const { headers, json } = yield* eventually(
        console.ask("deliveries"),
        ({ json }) => Number(json.retryAfter) > 4
      )
      assert.strictEqual(headers.get("retry-after"), String(json.retryAfter))
      assert.match(String(json.detail), /it is started again in 8 s/)
      process.off("worker", end)
      yield* goesOn(console)
    })
  )

  scenario(
    "never says that it is level without what it had, where its files are deleted",
    (place) =>
      Effect.gen(function* () {
        yield* oneEvent
        const data = yield* directory
        const log = yield* serveProjection(optionsOf(place, data))
        yield* caughtUp(log.status)
        const console = yield* loggedConsole(place, log)
        rmSync(data, { recursive: true })
        yield* publishOne("two")
        const lookAt = (path: string) =>
          Effect.gen(function* () {
            const answer = yield* console.ask(path)
            if (answer.status !== 200) assert.strictEqual(answer.status, 503, answer.text)
            else if (saysLevel(answer)) assert.include(answer.text, "acme.one", path)
            return answer
          })
        for (const path of ["deliveries", "events", "attempts"])
          yield* eventually(lookAt(path), ({ text }) => text.includes("acme.two"))
        yield* goesOn(console)
      })
  )
})
