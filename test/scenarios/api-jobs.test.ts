import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Scheduler, Scope } from "effect"
import { timeText } from "../../src/domain/timestamp.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { readJobs, takeJob } from "../../src/operations/jobs/job-store.ts"
import { start } from "../cli/running.ts"
import { startConsole } from "../kit/console.ts"
import { deadLetters, endpoint, eventually, history, publish, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const redeliveries = "/v1/tenants/acme/redeliveries"

/** Makes so many dead letters of acme/e, whose receiver takes everything from then on. */
const buried = Effect.fnUntraced(function* (count: number) {
  const { answer, received, url } = yield* receiver({ answer: { status: 400 } })
  yield* endpoint({ id: "e", url, maxInFlight: 2, circuit: { permanentFailures: 1_000_000 } })
  const facts = yield* history
  const { stop } = yield* worker()
  for (let n = 0; n < count; n++) yield* publish("a", `${n}`)
  yield* facts.count("dead-lettered", count)
  answer({ status: 200 })
  return { facts, received, stop }
})

describe.concurrent("long work", () => {
  scenario("is done once, by whichever console, and says how far it has come", () =>
    Effect.gen(function* () {
      const { facts } = yield* buried(20)
      const { ask, token: make } = yield* startConsole()
      const [token, other] = [yield* make(), yield* make({ tenant: "globex" })]
      const planned = yield* ask(redeliveries, {
        method: "POST",
        token,
        body: { endpoint: "e", dryRun: true }
      })
      assert.deepInclude(planned.json, { selected: 20, redeliver: 20 })
      const asked = yield* ask(redeliveries, { method: "POST", token, body: { endpoint: "e" } })
      assert.strictEqual(asked.status, 202)
      const path = asked.headers.get("location") ?? ""
      yield* runJobs("one")
      yield* runJobs("two")
      const done = yield* eventually(ask(path, { token }), ({ json }) => json.state === "done")
      assert.deepInclude(done.json, { progress: { done: 20, total: 20 }, kind: "redelivery" })
      assert.deepInclude(done.json.result, { redelivered: 20 })
      assert.deepInclude(done.json.asked, { endpoint: "e" })
      yield* facts.count("delivered", 20)
      assert.lengthOf(facts.of("redelivered"), 20)
      const theirs = path.replace("acme", "globex")
      assert.strictEqual((yield* ask(theirs, { token: other })).status, 404)
      const again = yield* ask(redeliveries, { method: "POST", token, body: { endpoint: "e" } })
      const second = yield* eventually(
        ask(again.headers.get("location") ?? "", { token }),
        ({ json }) => json.state === "done"
      )
      assert.deepInclude(second.json.result, { redelivered: 0, before: 20 })
      // Nothing of it was for this job to do.
      assert.deepStrictEqual(second.json.progress, { done: 0, total: 0 })
    })
  )

  scenario("goes on in the turns of its tenant alone", () =>
    Effect.gen(function* () {
      yield* buried(5)
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const held: Array<() => void> = []
      let isTurn = false
      const scheduler = new Scheduler.MixedScheduler("async", (run) => {
        if (isTurn) setImmediate(run)
        else held.push(run)
        return () => undefined
      })
      const tenants = new Set<string>()
      yield* runJobs("one", (tenant) => {
        tenants.add(tenant)
        return scheduler
      })
      const asked = yield* ask(redeliveries, { method: "POST", token, body: { endpoint: "e" } })
      const path = asked.headers.get("location") ?? ""
      yield* eventually(
        Effect.sync(() => held.length),
        (waiting) => waiting > 0
      )
      assert.notStrictEqual((yield* ask(path, { token })).json.state, "done")
      isTurn = true
      for (const run of held) run()
      const done = yield* eventually(ask(path, { token }), ({ json }) => json.state === "done")
      assert.deepInclude(done.json.result, { redelivered: 5 })
      assert.deepStrictEqual([...tenants], ["acme"])
    })
  )

  scenario("goes on with another console, and ends where it is when it is cancelled", () =>
    Effect.gen(function* () {
      const { facts, stop } = yield* buried(40)
      // Without a worker, the endpoint's backlog takes all that is sent again.
      yield* stop
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const asked = yield* ask(redeliveries, { method: "POST", token, body: { all: true } })
      const path = asked.headers.get("location") ?? ""
      const first = yield* Scope.make()
      yield* runJobs("first").pipe(Scope.provide(first))
      yield* facts.count("redelivered", 5)
      yield* Scope.close(first, Exit.void)
      yield* runJobs("second")
      const ended = yield* eventually(ask(path, { token }), ({ json }) => json.state === "done")
      assert.deepInclude(ended.json, { state: "done", progress: { done: 40, total: 40 } })
      assert.deepInclude(ended.json.result, { redelivered: 40, before: 0 })
      assert.hasAllKeys(ended.json.asked, ["until"])
      assert.lengthOf(facts.of("redelivered"), 40)

      const replay = yield* ask("/v1/tenants/acme/replays", {
        method: "POST",
        token,
        body: { endpoint: "e" }
      })
      const replayPath = replay.headers.get("location") ?? ""
      const cancelled = yield* ask(replayPath, { method: "DELETE", token })
      assert.strictEqual(cancelled.status, 200)
      const last = yield* eventually(ask(replayPath, { token }), ({ json }) =>
        ["done", "cancelled"].includes(String(json.state))
      )
      assert.property(last.json, "endedAt")
      assert.lengthOf(yield* readJobs(), 2)
      assert.lengthOf(yield* deadLetters, 40)
    })
  )

  scenario("is finished by another console when one is killed in the middle of it", (place) =>
    Effect.gen(function* () {
      const count = 400
      const { facts, stop } = yield* buried(count)
      // Without a worker, the queue takes what is sent again.
      yield* stop
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const console = () =>
        start(
          ...["console", "--roles", "api", "--listen", "127.0.0.1:0"],
          ...["--nats", place.url, "--prefix", place.prefix]
        )
      const first = yield* console()
      const asked = yield* ask(redeliveries, { method: "POST", token, body: { all: true } })
      yield* facts.until((all) => all.some(({ kind }) => kind === "redelivered"))
      yield* first.signal("SIGKILL")
      yield* first.ended
      assert.isBelow(facts.of("redelivered").length, count)
      const [job] = yield* readJobs()
      assert.isUndefined(yield* takeJob(job?.id ?? "", "another"))
      yield* console()
      yield* worker()
      const path = asked.headers.get("location") ?? ""
      const done = yield* eventually(ask(path, { token }), ({ json }) => json.state === "done")
      assert.deepInclude(done.json, { progress: { done: count, total: count } })
      yield* facts.count("delivered", count)
      const rounds = new Set(facts.of("redelivered").map(({ round }) => round))
      assert.strictEqual(rounds.size, count)
    })
  )

  scenario("is listed page by page, and so are dead letters that are still open", () =>
    Effect.gen(function* () {
      const { facts } = yield* buried(5)
      const { ask, token: make } = yield* startConsole()
      const [token, operator] = [yield* make(), yield* make({ tenant: "*" })]
      const pages = Effect.fnUntraced(function* (path: string, as: string, field: string) {
        const found: Array<unknown> = []
        let [cursor, count] = ["", 0]
        do {
          const { json, status, text } = yield* ask(`${path}limit=2${cursor}`, { token: as })
          assert.strictEqual(status, 200, text)
          const page = json[field] as ReadonlyArray<{ readonly id: unknown }>
          assert.isAtMost(page.length, 2)
          found.push(...page.map(({ id }) => id))
          cursor = json.next === undefined ? "" : `&cursor=${String(json.next)}`
          count++
        } while (cursor !== "")
        return { found, count }
      })
      const ids: Array<unknown> = []
      for (const id of [1, 2, 3, 4])
        ids.unshift(
          (yield* ask(redeliveries, { method: "POST", token, body: { id: [id] } })).json.id
        )
      const replay = yield* ask("/v1/tenants/acme/replays", {
        ...{ method: "POST", token },
        body: { endpoint: "e", onlyMissing: true }
      })
      assert.deepStrictEqual(yield* pages(`${redeliveries}?`, token, "jobs"), {
        found: ids,
        count: 2
      })
      const all = yield* pages("/v1/tenants/*/redeliveries?", operator, "jobs")
      assert.deepStrictEqual(all.found, ids)
      const other = yield* ask("/v1/tenants/acme/replays?limit=1", { token })
      const cursor = String((yield* ask(`${redeliveries}?limit=1`, { token })).json.next)
      assert.notProperty(other.json, "next")
      const foreign = yield* ask(`/v1/tenants/acme/replays?cursor=${cursor}`, { token })
      assert.strictEqual(foreign.status, 400)

      const letters = "/v1/tenants/acme/dead-letters"
      assert.lengthOf((yield* pages(`${letters}?open=true&`, token, "deadLetters")).found, 5)
      for (const path of [
        `${redeliveries}/${String(ids[0])}`,
        replay.headers.get("location") ?? ""
      ])
        yield* ask(path, { method: "DELETE", token })
      yield* runJobs("one")
      yield* facts.count("redelivered", 3)
      const open = yield* pages(`${letters}?open=true&`, token, "deadLetters")
      assert.deepStrictEqual(open, { found: [4, 5], count: 1 })
      assert.lengthOf((yield* pages(`${letters}?open=false&`, token, "deadLetters")).found, 5)
      assert.strictEqual((yield* ask(`${letters}?open=maybe`, { token })).status, 400)
    })
  )

  scenario("says what an audit found, and why a replay fails", () =>
    Effect.gen(function* () {
      yield* buried(2)
      yield* runJobs("one")
      const { ask, token: make } = yield* startConsole()
      const operator = yield* make({ tenant: "*" })
      const token = yield* make()
      const audit = yield* ask("/v1/audits", { method: "POST", token: operator })
      const found = yield* eventually(
        ask(audit.headers.get("location") ?? "", { token: operator }),
        ({ json }) => json.state === "done"
      )
      assert.deepInclude(found.json.result, { verdict: "clean" })
      const senseless = [
        { since: timeText(Date.now() + 3_600_000) },
        { tenant: "nobody" },
        { tenant: "*" },
        { until: timeText(1) }
      ]
      for (const body of senseless) {
        const refused = yield* ask("/v1/audits", { method: "POST", token: operator, body })
        assert.strictEqual(refused.status, 400, JSON.stringify(body))
        assert.deepInclude(JSON.stringify(refused.json), Object.keys(body)[0] ?? "")
      }
      const { json: listed } = yield* ask("/v1/audits", { token: operator })
      assert.lengthOf(Array.isArray(listed.jobs) ? listed.jobs : [], 1)
      const nowhere = yield* ask("/v1/tenants/acme/replays", {
        method: "POST",
        token,
        body: { endpoint: "nowhere" }
      })
      assert.strictEqual(nowhere.status, 404)
      assert.strictEqual((yield* ask("/v1/audits", { method: "POST", token })).status, 403)
    })
  )
})
