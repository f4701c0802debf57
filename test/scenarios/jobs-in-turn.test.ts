import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import { timeText } from "../../src/domain/timestamp.ts"
import { maxPlaces } from "../../src/operations/jobs/job-queue.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { addJob, cancelJob, maxOpenJobs, showJob } from "../../src/operations/jobs/manage-jobs.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, eventually, history, publishMany, publishTo, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage } from "../kit/scenario.ts"

const { longScenario, scenario } = onServer()

const any = { kind: "replay", tenant: undefined } as const

const replayTo = (tenant: string, id: string, name: string) =>
  addJob(
    {
      kind: "replay",
      replay: { to: { tenant, id }, types: [">"], id: name, until: Date.now() }
    },
    tenant,
    tenant
  )

/** More than the 1,000 deliveries of a run that wait in an endpoint's queue. */
const stuckEvents = 1_300

/** Many replays of acme to an endpoint that takes nothing, since no worker runs. */
const stuck = (count: number) =>
  Effect.gen(function* () {
    yield* endpoint({ id: "silent", types: ["none"] })
    yield* publishMany(stuckEvents)
    const jobs: Array<string> = []
    for (let n = 0; n < count; n++) jobs.push((yield* replayTo("acme", "silent", `r${n}`)).id)
    return jobs
  })

describe.concurrent("long work of a tenant", () => {
  longScenario(
    "does not wait for that of another one whose endpoint takes nothing",
    () =>
      Effect.gen(function* () {
        const jobs = yield* stuck(maxPlaces)
        yield* runJobs("one")
        for (const id of jobs)
          yield* eventually(showJob(id, any), ({ state }) => state === "running")
        yield* endpoint({ tenant: "globex", id: "e", types: ["none"] })
        for (let n = 0; n < 20; n++) yield* publishTo("globex.a")
        const { id } = yield* replayTo("globex", "e", "theirs")
        const done = yield* eventually(showJob(id, any), ({ state }) => state === "done")
        assert.deepInclude(done.result, { replayed: 20 })
        // What left its place comes again.
        const now = yield* Effect.forEach(jobs, (one) => showJob(one, any))
        for (const one of now.filter(({ state }) => state !== "running"))
          yield* eventually(showJob(one.id, any), ({ state }) => state === "running")
      }),
    {},
    // Sixteen replays write until they are held back: half a minute on a free machine.
    240_000
  )

  scenario("is so much at a time that others have their turn, and is refused beyond", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e" })
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const path = "/v1/tenants/acme/replays"
      const asked = yield* Effect.forEach(
        Array.from({ length: maxOpenJobs + 5 }, (_, n) => n),
        (n) => ask(path, { method: "POST", token, body: { endpoint: "e", id: `r${n}` } }),
        { concurrency: "unbounded" }
      )
      const refused = asked.filter(({ status }) => status === 409)
      assert.lengthOf(refused, 5)
      assert.deepInclude(refused[0]?.json, { type: "urn:petrel:problem:conflict" })
      assert.match(String(refused[0]?.json.detail), /^20 jobs wait or run already/)
      const other = yield* make({ tenant: "globex" })
      const theirs = { method: "POST", token: other, body: { all: true } }
      assert.strictEqual((yield* ask("/v1/tenants/globex/redeliveries", theirs)).status, 202)
      const first = asked.find(({ status }) => status === 202)?.headers.get("location") ?? ""
      const cancelled = yield* ask(first, { method: "DELETE", token })
      assert.deepInclude(cancelled.json, { state: "cancelled" })
      const again = yield* ask(path, { method: "POST", token, body: { endpoint: "e", id: "x" } })
      assert.strictEqual(again.status, 202)
    })
  )

  scenario("is refused where it names no time and no number that there can be", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e" })
      const { ask, token: make } = yield* startConsole()
      const [token, operator] = [yield* make(), yield* make({ tenant: "*" })]
      const nanoseconds = Date.now() * 1e6
      const later = timeText(Date.now() + 3_600_000)
      const senseless: ReadonlyArray<readonly [path: string, body: object, field: string]> = [
        ...[nanoseconds, later, "2026-02-30T00:00:00Z"].flatMap((since) => [
          ["redeliveries", { since }, "since"] as const,
          ["replays", { endpoint: "e", since }, "since"] as const,
          ["audits", { since }, "since"] as const
        ]),
        ["redeliveries", { until: nanoseconds }, "until"],
        ["replays", { endpoint: "e", until: -1e20 }, "until"],
        ["redeliveries", { id: [-4] }, "id.0"],
        ["redeliveries", { id: Array.from({ length: 1_001 }, (_, n) => n + 1) }, "id"],
        ["replays", { endpoint: "e", event: "x".repeat(256) }, "event"],
        ["replays", { endpoint: "e", types: Array.from({ length: 201 }, () => "a") }, "types"]
      ]
      for (const [name, body, field] of senseless) {
        const path = name === "audits" ? "/v1/audits" : `/v1/tenants/acme/${name}`
        const by = name === "audits" ? operator : token
        const refused = yield* ask(path, { method: "POST", token: by, body })
        assert.strictEqual(refused.status, 400, `${name} ${JSON.stringify(body).slice(0, 60)}`)
        assert.deepInclude(JSON.stringify(refused.json.errors), `"field":"${field}"`)
      }
      for (const name of ["redeliveries", "replays"]) {
        const { json } = yield* ask(`/v1/tenants/acme/${name}`, { token })
        assert.deepStrictEqual(json, { jobs: [] })
      }
    })
  )

  scenario("is cancelled at once, and keeps what it did", () =>
    Effect.gen(function* () {
      const facts = yield* history
      const [id = ""] = yield* stuck(1)
      yield* runJobs("one")
      yield* eventually(showJob(id, any), ({ progress }) => (progress?.done ?? 0) > 0)
      assert.strictEqual((yield* cancelJob(id, any)).state, "cancelled")
      yield* worker()
      const begun = () => facts.of("replayed").length
      const shown = yield* eventually(
        showJob(id, any),
        ({ progress }) => progress?.done === begun()
      )
      assert.deepInclude(shown, { state: "cancelled" })
      assert.isBelow(begun(), stuckEvents)
    })
  )
})

describe.concurrent("a job whose work fails", () => {
  outage("is tried again later, says why, and is cancelled at once", (_place, _server, log) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      yield* endpoint({ id: "e" })
      yield* publishMany(3)
      const broken = yield* alteredBroker(({ see }) => ({
        see: (range, from, each) =>
          range.stream === names.events
            ? Effect.fail(
                new BrokerError({ operation: "read events", cause: new Error("no leader") })
              )
            : see(range, from, each)
      }))
      yield* Effect.provideService(runJobs("one"), Broker, broken)
      const { id } = yield* replayTo("acme", "e", "r")
      const waits = yield* eventually(showJob(id, any), ({ problem }) => problem !== undefined)
      assert.deepInclude(waits, { state: "waiting", problem: "read events: no leader" })
      const said = () => log.lines.filter(({ text }) => text === "a job is tried again").length
      yield* eventually(Effect.sync(said), (count) => count >= 2)
      assert.strictEqual((yield* cancelJob(id, any)).state, "cancelled")
    })
  )

  outage("ends where the request itself is wrong, and says so", (_place, _server, log) =>
    Effect.gen(function* () {
      const cause = new RangeError("Invalid time value")
      const { names } = yield* Broker
      const failing = yield* alteredBroker(({ batch }) => ({
        batch: (stream, ...what) =>
          stream === names.dead
            ? Effect.fail(new BrokerError({ operation: "look for a time", cause }))
            : batch(stream, ...what)
      }))
      yield* Effect.provideService(runJobs("one"), Broker, failing)
      const selection = { since: 1 }
      const { id } = yield* addJob({ kind: "redelivery", selection }, "acme", "ana")
      const scope = { kind: "redelivery", tenant: "acme" } as const
      const failed = yield* eventually(showJob(id, scope), ({ state }) => state === "failed")
      assert.match(failed.problem ?? "", /Invalid time value/)
      assert.isTrue(log.lines.some(({ text }) => text === "a job has failed"))
    })
  )
})

describe.concurrent("a job at a good receiver", () => {
  scenario("takes its turns with others, and ends", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ id: "e", url: hook.url, types: ["none"] })
      yield* publishMany(50)
      yield* worker()
      const count = yield* runJobs("one")
      const jobs = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (n) => replayTo("acme", "e", `r${n}`))
      yield* eventually(Effect.sync(count), ({ running, waiting }) => running + waiting > 0)
      for (const { id } of jobs) {
        const done = yield* eventually(showJob(id, any), ({ state }) => state === "done")
        assert.deepInclude(done.result, { replayed: 50 })
      }
      yield* eventually(Effect.sync(count), ({ running, waiting }) => running + waiting === 0)
    })
  )
})
