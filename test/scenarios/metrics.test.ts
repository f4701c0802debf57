import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { WorkerMetrics } from "../../src/metrics/worker-metrics.ts"
import type { PeriodTotals } from "../../src/operations/history/period-totals.ts"
import { sumUpHistory } from "../../src/operations/history/period-totals.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import { counted, countingWorker } from "../kit/counted.ts"
import {
  endpoint,
  eventually,
  history,
  lateRetry,
  publishMany,
  quickRetry,
  worker,
  workersApart
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** The totals of all tenants and periods together. */
const totals = Effect.gen(function* () {
  const all: Array<PeriodTotals> = []
  yield* sumUpHistory({ by: "day" }, (some) => Effect.sync(() => void all.push(...some)))
  const sum = (of: (one: PeriodTotals) => number) => all.reduce((so, one) => so + of(one), 0)
  return {
    events: sum(({ events }) => events),
    delivered: sum(({ delivered }) => delivered),
    deadLettered: sum(({ deadLettered }) => deadLettered),
    attempts: sum(({ attempts }) => attempts),
    retries: sum(({ retries }) => retries)
  }
})

const ended = "petrel_deliveries_ended_total"

/** What workers have counted, in the words of {@link totals}. */
const countedTotals = (workers: ReadonlyArray<WorkerMetrics>) => ({
  events: counted(workers, "petrel_events_routed_total"),
  delivered: counted(workers, ended, { end: "delivered" }),
  deadLettered: counted(workers, ended, { end: "dead-lettered" }),
  attempts: counted(workers, "petrel_attempts_total"),
  retries: counted(workers, "petrel_attempts_retried_total")
})

/** Three endpoints: one that takes all, one at the third attempt, one that takes nothing. */
const threeEndpoints = Effect.gen(function* () {
  const takes = yield* receiver()
  const later = yield* receiver({ answer: byAttempt(503, 429, 200) })
  const never = yield* receiver({ answer: { status: 500 } })
  yield* endpoint({ id: "takes", url: takes.url })
  yield* endpoint({ id: "later", url: later.url })
  yield* endpoint({ id: "never", url: never.url, retry: quickRetry({ maxAttempts: 2 }) })
  return { takes }
})

describe.concurrent("what workers count", () => {
  scenario(
    "is what the history and the audit tell, also with owners that change",
    () =>
      Effect.gen(function* () {
        const metrics = Array.from({ length: 3 }, () => new WorkerMetrics())
        const [first, second, third] = metrics as [WorkerMetrics, WorkerMetrics, WorkerMetrics]
        const { takes } = yield* threeEndpoints
        const one = yield* countingWorker("w1", first)
        yield* publishMany(100, "a")
        yield* countingWorker("w2", second)
        yield* publishMany(100, "b")
        yield* takes.received(120)
        // What the first one has under way goes on elsewhere.
        yield* one.stop
        yield* countingWorker("w3", third)
        yield* publishMany(100, "c")
        yield* consistentRounds
        const { attempts, delivered, deadLettered, ...rest } = yield* totals
        assert.deepStrictEqual(countedTotals(metrics), {
          attempts,
          delivered,
          deadLettered,
          ...rest
        })
        assert.deepStrictEqual(
          { events: rest.events, delivered, deadLettered },
          { events: 300, delivered: 600, deadLettered: 300 }
        )
        const audited = yield* isClean
        assert.strictEqual(audited.delivered, delivered)
        assert.strictEqual(audited.deadLettered, deadLettered)
        assert.strictEqual(counted(metrics, ended, { reason: "attempts" }), 300)
        assert.strictEqual(counted(metrics, "petrel_delivery_attempts"), 900)
        assert.strictEqual(counted(metrics, "petrel_attempt_duration_seconds"), attempts)
        assert.strictEqual(counted(metrics, "petrel_delivery_duration_seconds"), 600)
        assert.strictEqual(counted(metrics, "petrel_queue_delay_seconds"), 900)
        const limited = { tenant: "acme", endpoint: "later" }
        assert.strictEqual(counted(metrics, "petrel_rate_limited_attempts_total", limited), 300)
        for (const each of metrics)
          assert.isAbove(countedTotals([each]).delivered, 0, "each worker has delivered")
      }),
    { partitions: 8 }
  )

  scenario("is the same where routing and delivering are apart", () =>
    Effect.gen(function* () {
      const metrics = new WorkerMetrics()
      yield* threeEndpoints
      yield* workersApart({ metrics })
      yield* publishMany(20, "a")
      yield* consistentRounds
      assert.deepStrictEqual(countedTotals([metrics]), yield* totals)
    })
  )

  scenario("has a request that a stop cuts off, and not one that is answered", () =>
    Effect.gen(function* () {
      const metrics = new WorkerMetrics()
      const open = yield* Deferred.make<void>()
      const slow = yield* receiver({
        answer: () => Effect.runPromise(Effect.as(Deferred.await(open), {}))
      })
      yield* endpoint({ url: slow.url })
      const one = yield* worker({ metrics, stopWithin: 100 })
      yield* publishMany(3)
      yield* slow.received(3)
      assert.strictEqual(counted([metrics], "petrel_inflight_requests"), 3)
      yield* one.stop
      assert.strictEqual(counted([metrics], "petrel_unanswered_attempts_total"), 3)
      assert.strictEqual(counted([metrics], "petrel_inflight_requests"), 0)
      assert.strictEqual(counted([metrics], "petrel_attempts_total"), 0)
      yield* Deferred.succeed(open, undefined)
    })
  )

  scenario("has circuits, errors and endpoints that are given up", () =>
    Effect.gen(function* () {
      const metrics = new WorkerMetrics()
      const gone = yield* receiver({ answer: { status: 410 } })
      yield* endpoint({ id: "gone", url: gone.url, types: ["gone"] })
      yield* endpoint({
        id: "refused",
        url: "http://127.0.0.1:9/",
        types: ["refused"],
        retry: lateRetry,
        circuit: { failures: 3, rate: "none" }
      })
      const facts = yield* history
      yield* worker({ metrics })
      yield* publishMany(1, "gone")
      yield* publishMany(5, "refused")
      yield* facts.count("circuit-opened", 1)
      yield* facts.count("endpoint-disabled", 1)
      const number = (name: string, labels = {}) => counted([metrics], name, labels)
      yield* eventually(
        Effect.sync(() => number("petrel_circuit_transitions_total", { to: "open" })),
        (count) => count === 1
      )
      yield* eventually(
        Effect.sync(() => number("petrel_endpoints_disabled_total", { reason: "gone" })),
        (count) => count === 1
      )
      assert.strictEqual(number("petrel_endpoints_disabled_total"), 1)
      assert.isAtLeast(number("petrel_attempt_errors_total", { error: "refused" }), 3)
      assert.strictEqual(
        number("petrel_attempts_total", { outcome: "failed", status_class: "4xx" }),
        1
      )
    })
  )

  scenario("tells whether a worker is ready", () =>
    Effect.gen(function* () {
      const started = yield* worker()
      assert.deepStrictEqual(started.problems(), [])
      yield* started.stop
      assert.deepStrictEqual(started.problems(), ["the worker is stopping"])
    })
  )
})
