import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { resendDelivery } from "../../src/operations/deliveries/resend-delivery.ts"
import { Auditor, type AuditWork, auditHere } from "../../src/operations/jobs/audit-work.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { addJob, showJob } from "../../src/operations/jobs/manage-jobs.ts"
import { readAbandoned } from "../../src/rounds/finish-abandoned.ts"
import { start } from "../cli/running.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, eventually, history, nth, publish, publishMany, worker } from "../kit/engine.ts"
import { endJobLeases } from "../kit/job-leases.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const to = { tenant: "acme", id: "slow" }
const all = { kind: "replay", tenant: undefined } as const

/** Events, and an endpoint that takes none of them for now: a replay to it is held back. */
const heldBack = (count: number) =>
  Effect.gen(function* () {
    const hook = yield* receiver()
    yield* endpoint({ id: "slow", url: hook.url, types: ["none"] })
    yield* publishMany(count)
    yield* pauseEndpoint({ tenant: "acme", endpoint: "slow" }, undefined, "test")
    return hook
  })

describe.concurrent("a job whose console ends in the middle of it", () => {
  scenario("fails, and says so, when it has ended three", (place) =>
    Effect.gen(function* () {
      yield* heldBack(3_000)
      const replay = { to, types: [">"] as const, until: Date.now() }
      const { id } = yield* addJob({ kind: "replay", replay }, "acme", "ana")
      for (const takeovers of [0, 1, 2]) {
        const console = yield* start(
          ...["console", "--roles", "api", "--listen", "127.0.0.1:0"],
          ...["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        )
        const shown = yield* eventually(
          showJob(id, all),
          (job) =>
            job.state === "running" && job.takeovers === takeovers && job.progress !== undefined
        )
        assert.strictEqual(shown.takeovers, takeovers)
        yield* console.signal("SIGKILL")
        yield* console.ended
        yield* endJobLeases
      }
      yield* runJobs("fourth")
      const failed = yield* eventually(showJob(id, all), ({ state }) => state === "failed")
      assert.strictEqual(failed.takeovers, 3)
      assert.match(failed.problem ?? "", /^3 consoles ended while they worked on it \(.*\), so it/)
      assert.property(failed, "endedAt")
    })
  )

  scenario("does not count one that was stopped, nor one that was cut off", () =>
    Effect.gen(function* () {
      yield* heldBack(3_000)
      const replay = { to, types: [">"] as const, until: Date.now() }
      const { id } = yield* addJob({ kind: "replay", replay }, "acme", "ana")
      const isUnderWay = eventually(
        showJob(id, all),
        ({ progress, state }) => state === "running" && (progress?.done ?? 0) > 0
      )
      for (const name of ["one", "two", "three", "four"]) {
        yield* Effect.scoped(Effect.andThen(runJobs(name), isUnderWay))
        // It was given up, so that the next one need not wait for the lease.
        assert.strictEqual((yield* showJob(id, all)).takeovers, 0)
      }
    })
  )

  scenario("leaves nothing open where it is cancelled", () =>
    Effect.gen(function* () {
      const hook = yield* heldBack(3_000)
      const facts = yield* history
      const replay = { to, types: [">"] as const, until: Date.now() }
      const { id } = yield* addJob({ kind: "replay", replay }, "acme", "ana")
      yield* runJobs("one")
      yield* facts.until((told) => told.some(({ kind }) => kind === "replayed"))
      const { ask, token } = yield* startConsole()
      const path = `/v1/tenants/acme/replays/${id}`
      yield* ask(path, { method: "DELETE", token: yield* token() })
      yield* eventually(
        showJob(id, all),
        ({ progress, state }) =>
          state === "cancelled" && progress?.done === facts.of("replayed").length
      )
      yield* eventually(readAbandoned, (left) => left.length === 0)
      const begun = facts.of("replayed").length
      assert.isBelow(begun, 3_000)
      assert.lengthOf(hook.requests, 0)
      const { judgement } = yield* audit({})
      assert.include(judgement.tally, { missing: 0, begun })
    })
  )
})

describe.concurrent("a job whose result is larger than a message of the broker", () => {
  scenario("fails, and is not begun anew", () =>
    Effect.gen(function* () {
      let audits = 0
      const auditAtLength: AuditWork = (request, begun) =>
        Effect.map(auditHere(request, begun), (findings) => {
          audits++
          return { ...findings, problems: [{ kind: "missing", says: "x".repeat(2 * 1024 * 1024) }] }
        })
      const { id } = yield* addJob({ kind: "audit", audit: {} }, "*", "ana")
      yield* Effect.provideService(runJobs("one"), Auditor, auditAtLength)
      const scope = { kind: "audit", tenant: undefined } as const
      const failed = yield* eventually(showJob(id, scope), ({ endedAt }) => endedAt !== undefined)
      assert.strictEqual(failed.state, "failed")
      assert.match(failed.problem ?? "", /its result is larger than the broker's messages may be/)
      assert.strictEqual(audits, 1)
    })
  )
})

describe.concurrent("who looks for jobs", () => {
  scenario("goes on after a defect", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      let looks = 0
      const altered = yield* alteredBroker(({ read }) => ({
        read: (range, from) => {
          if (range.stream === `KV_${names.buckets.jobs}` && ++looks === 1)
            throw new Error("a defect")
          return read(range, from)
        }
      }))
      const { id } = yield* addJob({ kind: "audit", audit: {} }, "*", "ana")
      yield* Effect.provideService(runJobs("one"), Broker, altered)
      const scope = { kind: "audit", tenant: undefined } as const
      yield* eventually(showJob(id, scope), ({ state }) => state === "done")
      assert.isAbove(looks, 1)
    })
  )
})

describe.concurrent("a request for a replay", () => {
  scenario("does not read the events: its job does", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      yield* heldBack(10)
      let reads = 0
      const altered = yield* alteredBroker(({ see }) => ({
        see: (range, from, each) => {
          if (range.stream === names.events) reads++
          return see(range, from, each)
        }
      }))
      const { ask, token } = yield* Effect.provideService(startConsole(), Broker, altered)
      const asked = (dryRun: boolean) =>
        Effect.flatMap(token(), (token) =>
          ask("/v1/tenants/acme/replays", {
            method: "POST",
            token,
            body: { endpoint: "slow", types: [">"], dryRun }
          })
        )
      assert.strictEqual((yield* asked(false)).status, 202)
      assert.strictEqual(reads, 0)
      const planned = yield* asked(true)
      assert.deepInclude(planned.json, { replay: 10, types: { "invoice.paid": 10 } })
      assert.isAbove(reads, 0)
    })
  )
})

describe.concurrent("a replay over HTTP that was cancelled", () => {
  for (const named of [{}, { id: "nightly" }])
    scenario(`goes on where it was when it is asked for again: ${JSON.stringify(named)}`, () =>
      Effect.gen(function* () {
        const count = 1_100
        const hook = yield* heldBack(count)
        const facts = yield* history
        const { ask, token: make } = yield* startConsole()
        const token = yield* make()
        yield* runJobs("one")
        const start = Effect.map(
          ask("/v1/tenants/acme/replays", {
            ...{ method: "POST", token },
            body: { endpoint: "slow", types: [">"], ...named }
          }),
          ({ headers, status }) => ({ status, path: headers.get("location") ?? "" })
        )
        const { path } = yield* start
        yield* facts.until((told) => told.some(({ kind }) => kind === "replayed"))
        yield* ask(path, { method: "DELETE", token })
        yield* resumeEndpoint({ tenant: "acme", endpoint: "slow" }, "test")
        yield* worker({ findEvery: 200 })
        const again = yield* start
        assert.strictEqual(again.status, 202)
        yield* eventually(ask(again.path, { token }), ({ json }) => json.state === "done")
        yield* facts.count("delivered", count)
        assert.lengthOf(facts.of("replayed"), count)
        assert.lengthOf(hook.requests, count)
        assert.strictEqual((yield* start).status, 409)
      })
    )
})

describe.concurrent("a delivery that is sent again by somebody who dies", () => {
  for (const step of ["round-claimed", "round-stored"])
    scenario(`is finished by a worker: at ${step}`, () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* worker({ findEvery: 200 })
        yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": "acme.one" })
        yield* facts.count("delivered", 1)
        const dying = (reached: string) => {
          if (reached === step) throw new Error("dies here")
        }
        const resend = resendDelivery("acme.one.hook", undefined, "ana")
        const died = yield* Effect.exit(Effect.provideService(resend, Failpoint, dying))
        assert.strictEqual(died._tag, "Failure")
        yield* facts.count("delivered", 2)
        yield* eventually(readAbandoned, (left) => left.length === 0)
        yield* consistentRounds
        yield* isClean
        assert.lengthOf(hook.requests, 2)
        assert.strictEqual(nth(facts.of("delivered"), 1).round, nth(facts.of("replayed"), 0).round)
      })
    )
})
