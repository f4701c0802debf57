import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { readLayout } from "../../src/broker/installed.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { timeText } from "../../src/domain/timestamp.ts"
import { planRedelivery } from "../../src/operations/dead-letters/redeliver-dead-letters.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { startReplay } from "../../src/operations/replays/replay-events.ts"
import { start } from "../cli/running.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import type { TestConsole } from "../kit/console.ts"
import { startConsole } from "../kit/console.ts"
import {
  endpoint,
  eventually,
  history,
  lateRetry,
  nth,
  publish,
  publishTo,
  worker
} from "../kit/engine.ts"
import { endJobLeases } from "../kit/job-leases.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

/** Bodies say with which status they are answered first. */
const failing = receiver({ answer: ({ body }) => ({ status: Number(body.toString()) }) })

const circuit = { failures: 1_000, permanentFailures: 1_000, rate: "none" } as const

const post = (ask: TestConsole["ask"], path: string, token: string, body: object) =>
  ask(path, { method: "POST", token, body })

const done = (ask: TestConsole["ask"], path: string, token: string) =>
  eventually(ask(path, { token }), ({ json }) => json.state === "done" || json.state === "failed")

describe.concurrent("all that failed at an endpoint", () => {
  scenario("is sent again with one call, each once however often that is asked for", () =>
    Effect.gen(function* () {
      const to = yield* failing
      for (const tenant of ["acme", "globex"])
        yield* endpoint({ tenant, id: "e", url: to.url, retry: lateRetry, circuit, types: ["a"] })
      yield* endpoint({ id: "other", url: to.url, retry: lateRetry, circuit, types: ["z"] })
      const facts = yield* history
      yield* worker()
      // Two become dead letters, and two wait for their next attempts.
      for (const status of ["400", "500"]) yield* publish("a", status)
      yield* facts.count("attempt-failed", 2)
      yield* facts.count("dead-lettered", 1)
      const early = Date.now()
      yield* eventually(
        Effect.sync(() => Date.now()),
        (now) => now > early
      )
      for (const status of ["400", "400", "500"]) yield* publish("a", status)
      yield* publish("z", "400")
      yield* publishTo("globex.a", "400")
      yield* facts.count("attempt-failed", 7)
      yield* facts.count("dead-lettered", 5)
      to.answer({ status: 200 })

      const { ask, token: make } = yield* startConsole()
      const [token, globex] = [yield* make(), yield* make({ tenant: "globex" })]
      const powerless = yield* make({ scopes: ["endpoints:write", "replay:write"] })
      const path = "/v1/tenants/acme/endpoints/e/recover"
      const since = timeText(early + 1)
      assert.strictEqual((yield* post(ask, path, globex, { since })).status, 403)
      assert.strictEqual((yield* post(ask, path, powerless, { since })).status, 403)
      assert.strictEqual((yield* post(ask, path, token, {})).status, 400)
      const missing = yield* post(ask, path.replace("/e/", "/none/"), token, { since })
      assert.strictEqual(missing.status, 404)
      const planned = (from: string) => post(ask, path, token, { since: from, dryRun: true })
      // The last failure is on its way to where it waits.
      const plan = yield* eventually(
        planned(since),
        ({ json }) => (json.retried as { readonly moved: number }).moved === 1
      )
      assert.deepInclude(plan.json, { selected: 2, redeliver: 2, before: 0 })
      const all = yield* planned(timeText(0))
      assert.deepInclude(all.json, { redeliver: 3 })
      assert.deepInclude(all.json.retried, { moved: 2 })
      assert.lengthOf(facts.of("redelivered"), 0)

      yield* runJobs("one")
      yield* runJobs("two")
      const asked = yield* Effect.all(
        [1, 2].map(() => post(ask, path, token, { since })),
        { concurrency: "unbounded" }
      )
      const results = yield* Effect.forEach(asked, ({ headers, json, status, text }) => {
        assert.strictEqual(status, 202, text)
        assert.deepInclude(json, { kind: "recovery", tenant: "acme" })
        return done(ask, headers.get("location") ?? "", token)
      })
      for (const { json } of results) assert.strictEqual(json.state, "done")
      yield* facts.count("delivered", 3)
      assert.lengthOf(facts.of("redelivered"), 2)
      const sent = facts.of("delivered")
      assert.lengthOf(new Set(sent.map(({ event, round }) => `${event} ${round}`)), 3)
      assert.isTrue(sent.every(({ endpoint, tenant }) => `${tenant}/${endpoint}` === "acme/e"))
      const again = yield* post(ask, path, token, { since, dryRun: true })
      assert.deepInclude(again.json, { redeliver: 0, before: 2 })
      const list = yield* ask("/v1/tenants/acme/recoveries", { token })
      assert.lengthOf(list.json.jobs as ReadonlyArray<unknown>, 2)
      const theirs = asked.map(({ headers }) => headers.get("location")?.replace("acme", "globex"))
      assert.strictEqual((yield* ask(nth(theirs, 0) ?? "", { token: globex })).status, 404)

      yield* ask("/v1/tenants/acme/endpoints/e/disable", { method: "POST", token })
      assert.strictEqual((yield* post(ask, path, token, { since })).status, 409)
      yield* facts.count("dead-lettered", 6)
      yield* consistentRounds
      yield* isClean
    })
  )
})

describe.concurrent("a recovery of deliveries that have several dead letters", () => {
  scenario("sends each delivery once, and says how many dead letters it left out", () =>
    Effect.gen(function* () {
      const to = yield* failing
      yield* endpoint({ id: "e", url: to.url, circuit })
      const facts = yield* history
      yield* worker()
      for (let n = 0; n < 3; n++) yield* publish("a", "400")
      yield* facts.count("dead-lettered", 3)
      const again = yield* planRedelivery({ id: [1] }, { by: "ana" })
      yield* again.run()
      yield* facts.count("dead-lettered", 4)
      for (const [name, dead] of [
        ["one", 7],
        ["two", 10]
      ] as const) {
        const replay = yield* startReplay(
          { to: { tenant: "acme", id: "e" }, id: name },
          { by: "ana" }
        )
        yield* replay.run()
        yield* facts.count("dead-lettered", dead)
      }
      const before = to.requests.length
      to.answer({ status: 200 })
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const path = "/v1/tenants/acme/endpoints/e/recover"
      const since = timeText(0)
      const planned = yield* post(ask, path, token, { since, dryRun: true })
      assert.deepInclude(planned.json, { selected: 10, redeliver: 3, before: 1, superseded: 6 })
      yield* runJobs("one")
      const asked = yield* post(ask, path, token, { since })
      const { json } = yield* done(ask, asked.headers.get("location") ?? "", token)
      assert.deepInclude(json.result, { selected: 10, redelivered: 3, before: 1, superseded: 6 })
      yield* facts.count("delivered", 3)
      assert.deepStrictEqual(
        facts
          .of("delivered")
          .map(({ event }) => event)
          .sort(),
        [...new Set(facts.of("dead-lettered").map(({ event }) => event))].sort()
      )
      assert.lengthOf(to.requests, before + 3)
      const { json: repeated } = yield* post(ask, path, token, { since, dryRun: true })
      assert.deepInclude(repeated, { redeliver: 0, before: 4, superseded: 6 })
      yield* consistentRounds
      yield* isClean
    })
  )
})

describe.concurrent("a job that sends again what failed", () => {
  scenario("counts what a console had let go on that was killed in the middle of it", (place) =>
    Effect.gen(function* () {
      const [waiting, dead] = [3, 250]
      const to = yield* failing
      yield* endpoint({ id: "e", url: to.url, retry: lateRetry, circuit })
      const facts = yield* history
      const first = yield* worker()
      for (let n = 0; n < waiting; n++) yield* publish("a", "500")
      for (let n = 0; n < dead; n++) yield* publish("a", "400")
      yield* facts.count("attempt-failed", waiting + dead)
      yield* facts.count("dead-lettered", dead)
      to.answer({ status: 200 })
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const path = "/v1/tenants/acme/endpoints/e/recover"
      const since = timeText(0)
      yield* eventually(
        post(ask, path, token, { since, dryRun: true }),
        ({ json }) => (json.retried as { readonly moved: number }).moved === waiting
      )
      const asked = yield* post(ask, path, token, { since })
      const job = asked.headers.get("location") ?? ""
      const console = yield* start(
        ...["console", "--roles", "api", "--listen", "127.0.0.1:0"],
        ...["--nats", place.url, "--prefix", place.prefix]
      )
      yield* facts.until((all) => all.some(({ kind }) => kind === "redelivered"))
      yield* console.signal("SIGKILL")
      yield* console.ended
      assert.isBelow(facts.of("redelivered").length, dead)
      yield* endJobLeases
      yield* runJobs("second")
      const ended = yield* done(ask, job, token)
      assert.deepInclude(ended.json, { state: "done", takeovers: 1 })
      assert.deepInclude(ended.json.result, { redelivered: dead, before: 0 })
      const { retried } = ended.json.result as { readonly retried: object }
      assert.deepInclude(retried, { endpoints: 1, moved: waiting, left: 0 })
      yield* facts.count("delivered", waiting + dead)
      yield* first.stop
      yield* isClean
    })
  )

  scenario("counts what a worker lets go on while the console that asked is killed", (place) =>
    Effect.gen(function* () {
      const waiting = 20
      const to = yield* failing
      yield* endpoint({ id: "e", url: to.url, retry: lateRetry, circuit })
      const facts = yield* history
      yield* worker()
      for (let n = 0; n < waiting; n++) yield* publish("a", "500")
      yield* facts.count("attempt-failed", waiting)
      to.answer({ status: 200 })
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const selection = { endpoint: "e" }
      const path = "/v1/tenants/acme/retries"
      yield* eventually(
        post(ask, path, token, { ...selection, dryRun: true }),
        ({ json }) => json.moved === waiting
      )
      const { listen, names } = yield* Broker
      const { partitions } = yield* readLayout
      const consoles: Array<number> = []
      let killed = 0
      // It dies when the worker gets the command, before it can have an answer.
      const unlisten = listen(names.subjects.command(partitionOf("acme", "e", partitions)), () => {
        for (const pid of consoles.splice(0)) {
          process.kill(pid, "SIGKILL")
          killed++
        }
      })
      yield* Effect.addFinalizer(() => Effect.sync(unlisten))
      const console = yield* start(
        ...["console", "--roles", "api", "--listen", "127.0.0.1:0"],
        ...["--nats", place.url, "--prefix", place.prefix]
      )
      consoles.push(console.pid)
      const asked = yield* post(ask, path, token, selection)
      const job = asked.headers.get("location") ?? ""
      yield* console.ended
      assert.strictEqual(killed, 1)
      yield* facts.count("delivered", waiting)
      yield* endJobLeases
      yield* runJobs("second")
      const ended = yield* done(ask, job, token)
      assert.deepInclude(ended.json, { state: "done", takeovers: 1 })
      assert.deepInclude(ended.json.result, { endpoints: 1, moved: waiting, inFlight: 0, left: 0 })
      yield* isClean
    })
  )
})

describe.concurrent("what waits at all endpoints of a tenant", () => {
  scenario("is tried as far as a filter means it, and goes on with another console", () =>
    Effect.gen(function* () {
      const to = yield* failing
      for (const id of ["a", "b", "c"])
        yield* endpoint({ id, url: to.url, retry: lateRetry, circuit, types: [`*.${id}`] })
      yield* endpoint({ tenant: "globex", id: "a", url: to.url, retry: lateRetry, circuit })
      const facts = yield* history
      yield* worker()
      for (const id of ["a", "b", "c"]) {
        yield* publish(`order.${id}`, "500")
        yield* publish(`invoice.${id}`, "503")
      }
      yield* publishTo("globex.order.a", "500")
      yield* facts.count("attempt-failed", 7)
      const { ask, token: make } = yield* startConsole()
      const [token, globex] = [yield* make(), yield* make({ tenant: "globex" })]
      const retries = "/v1/tenants/acme/retries"
      for (const [as, body, status] of [
        [globex, { all: true }, 403],
        [yield* make({ scopes: ["dead:write", "endpoints:read"] }), { all: true }, 403],
        [token, {}, 400],
        [token, { all: true, status: "5xx" }, 400],
        [token, { status: "teapot" }, 400],
        [token, { error: "teapot" }, 400],
        [token, { endpoint: "misspelt" }, 404]
      ] as const)
        assert.strictEqual((yield* post(ask, retries, as, body)).status, status)
      const planned = (body: object, moved: number) =>
        eventually(
          post(ask, retries, token, { ...body, dryRun: true }),
          ({ json }) => json.moved === moved
        )
      yield* planned({ all: true }, 6)
      yield* planned({ types: ["order.>"] }, 3)
      yield* planned({ status: "503", endpoint: "b" }, 1)
      yield* ask("/v1/tenants/acme/endpoints/b/pause", { method: "POST", token })
      to.answer({ status: 200 })
      assert.lengthOf(facts.of("delivered"), 0)

      const asked = yield* post(ask, retries, token, { types: ["order.>"] })
      assert.strictEqual(asked.status, 202, asked.text)
      const path = asked.headers.get("location") ?? ""
      const first = yield* Scope.make()
      yield* runJobs("first").pipe(Scope.provide(first))
      yield* eventually(ask(path, { token }), ({ json }) => json.state !== "waiting")
      yield* Scope.close(first, Exit.void)
      yield* runJobs("second")
      const ended = yield* done(ask, path, token)
      assert.strictEqual(ended.json.state, "done", ended.text)
      assert.deepInclude(ended.json.result, { endpoints: 3, left: 0 })
      const { skipped } = ended.json.result as {
        readonly skipped: ReadonlyArray<{ readonly endpoint: string; readonly why: string }>
      }
      assert.deepStrictEqual(
        skipped.map(({ endpoint }) => endpoint),
        ["b"]
      )
      assert.notInclude(JSON.stringify(skipped), "petrel ")
      yield* facts.count("delivered", 2)
      assert.deepStrictEqual(
        facts
          .of("delivered")
          .map(({ attempt, tenant, type }) => `${tenant} ${type} ${attempt}`)
          .sort(),
        ["acme order.a 2", "acme order.c 2"]
      )
      yield* isClean
    })
  )
})
