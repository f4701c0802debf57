import { assert, describe } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber } from "effect"
import { AlertWindows } from "../../../src/alerts/alert-windows.ts"
import { thresholdsFrom } from "../../../src/alerts/thresholds.ts"
import { queryOwner } from "../../../src/cluster/introspection.ts"
import { AttemptTallies } from "../../../src/delivery/introspection/attempt-tallies.ts"
import type { AnswerOptions } from "../../../src/delivery/introspection/introspection-answer.ts"
import { answerQueries } from "../../../src/delivery/introspection/introspection-answer.ts"
import type { LaneCounts } from "../../../src/delivery/scheduling/lane-scheduler.ts"
import { untried } from "../../../src/domain/delivery.ts"
import { blankEndpoint } from "../../../src/operations/endpoints/endpoint-change.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const idle: LaneCounts = { inFlight: 0, inLine: 0 }

/** Answers for partition 1, whatever is true of it. */
const owner = (lanes: Readonly<Record<string, LaneCounts>>, options: Partial<AnswerOptions> = {}) =>
  Effect.gen(function* () {
    const tallies = new AttemptTallies()
    const alertWindows = new AlertWindows(thresholdsFrom({ system: undefined, tenants: new Map() }))
    const clock = yield* Clock.Clock
    yield* answerQueries({
      checkConnection: () => undefined,
      partition: 1,
      worker: "w1",
      holds: () => true,
      clock,
      clockSkewMs: () => 1_999,
      activity: {
        tallies,
        alerts: alertWindows,
        openCircuits: () => new Map([["acme", 2]]),
        prefetched: () => 7,
        unreadable: () => 2,
        backlogs: {
          countedIn: (key) => (key === "acme.b" ? 9 : undefined),
          countedInAll: () => 11
        },
        lanes: { keys: () => Object.keys(lanes), countsOf: (key) => lanes[key] ?? idle },
        taskOf: (key, { round }) =>
          key === "acme.a" && round === "0" ? { mode: "sending", forMs: 12 } : undefined
      },
      ...options
    })
    const note = (tenant: string, id: string, delivered: boolean, ms: number) =>
      tallies.note(
        { key: `${tenant}.${id}`, config: blankEndpoint({ tenant, id }, "g", 0) },
        delivered,
        ms,
        clock.currentTimeMillisUnsafe()
      )
    const alertOf = (tenant: string, ok: boolean) => {
      const at = clock.currentTimeMillisUnsafe()
      alertWindows.answered(
        { key: `${tenant}.a`, config: blankEndpoint({ tenant, id: "a" }, "g", 0) },
        { tenant, type: "invoice.paid", began: at },
        { at, verdict: ok ? "delivered" : "retry", result: { durationMs: 1 } },
        untried
      )
    }
    return { note, alertOf }
  })

describe("the owner of a partition", () => {
  scenario("says what goes on in it", () =>
    Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      const { note } = yield* owner({
        "acme.a": { inFlight: 2, inLine: 3 },
        "acme.b": { inFlight: 1, inLine: 0 }
      })
      note("acme", "a", true, 0.5)
      note("acme", "c", false, 0.5)
      const answer = yield* queryOwner(1, { about: "partition" })
      assert.deepStrictEqual(answer?.partition, {
        inFlight: 3,
        inLine: 3,
        prefetched: 7,
        unreadable: 2,
        backlog: 11,
        attempts: 2,
        delivered: 1,
        durations: [2]
      })
      assert.strictEqual(answer?.worker, "w1")
      assert.isAtLeast(answer?.since ?? 0, before)
      assert.isAtMost(answer?.since ?? 0, yield* Clock.currentTimeMillis)
    })
  )

  scenario("says what a delivery in its memory is doing", () =>
    Effect.gen(function* () {
      yield* owner({})
      const ask = (round: string, endpoint = "a") =>
        queryOwner(1, {
          ...{ about: "delivery", tenant: "acme", endpoint },
          delivery: { eventSeq: 7, eventAt: 1, round }
        })
      assert.deepStrictEqual((yield* ask("0"))?.task, { mode: "sending", forMs: 12 })
      assert.isUndefined((yield* ask("1"))?.task)
      assert.isUndefined((yield* ask("0", "b"))?.task)
      assert.strictEqual((yield* ask("1"))?.worker, "w1")
    })
  )

  scenario("tries connections of one tenant while those of another one take long", () =>
    Effect.gen(function* () {
      const reached = { host: "b.example", port: 443, isSecure: true, refused: 0, addresses: [] }
      yield* owner(
        {},
        {
          checkConnection: (key) => (key === "acme.a" ? Effect.never : Effect.succeed(reached))
        }
      )
      const check = (tenant: string) =>
        queryOwner(1, { about: "connection", tenant, endpoint: "a" })
      const slow = yield* Effect.forEach(Array.from({ length: 6 }), () =>
        Effect.forkChild(check("acme"), { startImmediately: true })
      )
      assert.deepStrictEqual((yield* check("globex"))?.connection, reached)
      yield* Fiber.interruptAll(slow)
    })
  )

  scenario("says it of one endpoint, of a tenant's, and of each that has something to tell", () =>
    Effect.gen(function* () {
      const { note } = yield* owner({ "acme.a": { inFlight: 2, inLine: 3 } })
      for (let n = 0; n < 20; n++) note("acme", "b", n > 0, 100)
      note("other", "a", true, 5)
      const [one, quiet, tenants, all] = yield* Effect.all([
        queryOwner(1, { about: "endpoints", tenant: "acme", endpoint: "b" }),
        queryOwner(1, { about: "endpoints", tenant: "acme", endpoint: "quiet" }),
        queryOwner(1, { about: "endpoints", tenant: "acme" }),
        queryOwner(1, { about: "endpoints" })
      ])
      const [{ p50Ms = 0, p95Ms = 0, ...rest } = {}] = one?.endpoints ?? []
      assert.deepStrictEqual(
        { ...rest },
        { tenant: "acme", endpoint: "b", ...idle, backlog: 9, attempts: 20, delivered: 19 }
      )
      assert.approximately(p50Ms, 100, 10)
      assert.approximately(p95Ms, 100, 20)
      assert.deepStrictEqual(quiet?.endpoints, [
        { tenant: "acme", endpoint: "quiet", ...idle, attempts: 0, delivered: 0 }
      ])
      const names = (answer: typeof all) =>
        answer?.endpoints.map(({ endpoint, tenant }) => `${tenant}/${endpoint}`).sort()
      assert.deepStrictEqual(names(tenants), ["acme/a", "acme/b"])
      assert.deepStrictEqual(names(all), ["acme/a", "acme/b", "other/a"])
    })
  )

  scenario("says of which tenants something failed, or of those that are named", () =>
    Effect.gen(function* () {
      const { alertOf } = yield* owner({}, {})
      for (let n = 0; n < 300; n++) alertOf(`bad-${n}`, false)
      alertOf("well", true)
      alertOf("named", true)
      const answer = yield* queryOwner(1, { about: "alerts", tenants: [] })
      const counts = { delivered: 0, pending: 1, dead: 0, openCircuits: 0 }
      assert.sameDeepMembers(
        [...(answer?.tenants ?? [])],
        Array.from({ length: 300 }, (_, n) => ({ tenant: `bad-${n}`, ...counts }))
      )
      const tenants = ["named", "acme", "unknown"]
      const named = yield* queryOwner(1, { about: "alerts", tenants })
      assert.deepStrictEqual(named?.tenants, [
        { tenant: "named", ...counts, delivered: 1, pending: 0 },
        { tenant: "acme", ...counts, pending: 0, openCircuits: 2 }
      ])
      assert.strictEqual(answer?.openCircuits, 2)
    })
  )

  scenario("says it of more endpoints than fit into one message", () =>
    Effect.gen(function* () {
      const { note } = yield* owner({})
      const ids = Array.from({ length: 1_000 }, (_, n) => `${n}-${"x".repeat(50)}`)
      for (const id of ids) note("acme", id, true, 10)
      const answer = yield* queryOwner(1, { about: "endpoints" })
      assert.deepStrictEqual(answer?.endpoints.map(({ endpoint }) => endpoint).sort(), ids.sort())
    })
  )

  scenario("says nothing where it is owner no longer, and nobody does where there is none", () =>
    Effect.gen(function* () {
      yield* owner({}, { holds: () => false })
      assert.isUndefined(yield* queryOwner(1, { about: "partition" }))
      const [took, nobody] = yield* Effect.timed(queryOwner(0, { about: "partition" }))
      assert.isUndefined(nobody)
      assert.isBelow(Duration.toMillis(took), 500)
    })
  )
})
