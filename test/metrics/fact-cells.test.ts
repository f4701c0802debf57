import { assert, describe, it } from "@effect/vitest"
import { defaultCircuit } from "../../src/domain/circuit.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { type Health, healthy } from "../../src/domain/health.ts"
import { DeadReason, ErrorClass } from "../../src/domain/outcome.ts"
import { others } from "../../src/metrics/cells.ts"
import { prometheusText } from "../../src/metrics/prometheus-text.ts"
import { WorkerMetrics } from "../../src/metrics/worker-metrics.ts"
import { afterOutcome, type Consequence, toHalfOpen } from "../../src/policy/circuit.ts"
import { counted } from "../kit/counted.ts"

const eventAt = 1_800_000_000_000

const fact = (kind: Fact["kind"], changes: Partial<Fact> = {}): Fact => ({
  ...{ v: 1, kind, at: eventAt + 300, tenant: "acme", endpoint: "hook" },
  ...{ eventAt, eventSeq: 1, round: "0", attempt: 1, durationMs: 100 },
  ...changes
})

const plan = (part = 0): Fact["plan"] => ({ part, last: true, endpoints: [], skipped: [] })

const countedOf = (facts: ReadonlyArray<Fact>) => {
  const metrics = new WorkerMetrics()
  for (const one of facts) metrics.stored(one)
  return (name: string, labels = {}) => counted([metrics], name, labels)
}

const error = (name: ErrorClass) => ({ class: name, message: "" })

describe("FactCells", () => {
  it("counts a success with its plan as a routed event, an attempt and an end", () => {
    const number = countedOf([fact("delivered", { status: 204, plan: plan() })])
    assert.strictEqual(number("petrel_events_routed_total"), 1)
    const labels = { outcome: "delivered", status_class: "2xx" }
    assert.strictEqual(number("petrel_attempts_total", labels), 1)
    assert.strictEqual(number("petrel_deliveries_ended_total", { end: "delivered" }), 1)
    assert.strictEqual(number("petrel_attempts_retried_total"), 0)
    assert.strictEqual(number("petrel_queue_delay_seconds"), 1)
  })

  it("counts an event once, however many parts its plan has", () => {
    const number = countedOf([
      fact("routed", { plan: plan(0) }),
      fact("routed", { plan: plan(1) }),
      fact("routed", { plan: plan(2) })
    ])
    assert.strictEqual(number("petrel_events_routed_total"), 1)
  })

  it.each([
    [
      { status: 503, nextAttemptAt: 1 },
      { outcome: "retry", status_class: "5xx" }
    ],
    [{ status: 404 }, { outcome: "failed", status_class: "4xx" }],
    [
      { error: error("dns"), nextAttemptAt: 1 },
      { outcome: "retry", status_class: "none" }
    ],
    [{ status: 999 }, { outcome: "failed", status_class: "other" }],
    [{ status: 42 }, { outcome: "failed", status_class: "other" }]
  ])("counts the failed attempt %j as %j", (changes, labels) => {
    const number = countedOf([fact("attempt-failed", changes)])
    assert.strictEqual(number("petrel_attempts_total", labels), 1)
    assert.strictEqual(number("petrel_attempts_total"), 1)
  })

  it("has a counter for each class of errors and each reason of a dead letter", () => {
    for (const name of ErrorClass.literals) {
      const number = countedOf([fact("attempt-failed", { error: error(name) })])
      assert.strictEqual(number("petrel_attempt_errors_total", { error: name }), 1)
    }
    for (const reason of [...DeadReason.literals, "other"]) {
      const number = countedOf([fact("dead-lettered", { reason })])
      const labels = { end: "dead-lettered", reason }
      assert.strictEqual(number("petrel_deliveries_ended_total", labels), 1)
    }
    const unknown = countedOf([fact("dead-lettered", { reason: "of a newer version" })])
    assert.strictEqual(unknown("petrel_deliveries_ended_total", { reason: "other" }), 1)
  })

  it("counts an endpoint that stays down as one trip, however many probes fail", () => {
    const settings = { ...defaultCircuit, failures: 1 }
    const fails = (health: Health, at: number) =>
      afterOutcome(
        health,
        { ok: false, permanent: false, status: 503, at, delivery: "d" },
        settings,
        { spread: 0, rateExceeded: false, ramping: false }
      )
    const opened = ({ health, transitions }: Consequence) => {
      assert.deepStrictEqual(transitions, ["circuit-opened"])
      return fact("circuit-opened", { reason: health.circuit.why ?? "" })
    }
    const first = fails(healthy("g"), 1)
    const second = fails(toHalfOpen(first.health, 10), 20)
    const third = fails(toHalfOpen(second.health, 30), 40)
    const number = countedOf([first, second, third].map(opened))
    assert.strictEqual(number("petrel_circuit_transitions_total", { to: "open" }), 3)
    assert.strictEqual(number("petrel_circuit_trips_total"), 1)
  })

  it("tells late successes apart, which the sum by end has too", () => {
    const number = countedOf([fact("delivered"), fact("delivered-late")])
    assert.strictEqual(number("petrel_deliveries_ended_total", { end: "delivered" }), 2)
    assert.strictEqual(number("petrel_deliveries_ended_total", { reason: "late" }), 1)
  })

  it("measures the wait for the first attempt, and success, in the first round only", () => {
    const number = countedOf([
      fact("attempt-failed", { nextAttemptAt: 1 }),
      fact("delivered", { attempt: 2, at: eventAt + 90_000 }),
      fact("delivered", { round: "d1", at: eventAt + 1e9 })
    ])
    assert.strictEqual(number("petrel_queue_delay_seconds"), 1)
    assert.strictEqual(number("petrel_delivery_duration_seconds"), 1)
    assert.strictEqual(number("petrel_attempts_retried_total"), 1)
    const metrics = new WorkerMetrics()
    metrics.stored(fact("attempt-failed", { nextAttemptAt: 1 }))
    assert.include(prometheusText(metrics.families()), "petrel_queue_delay_seconds_sum 0.2\n")
  })

  it("is not below zero where the broker's clock is ahead of the worker's", () => {
    const metrics = new WorkerMetrics()
    metrics.stored(fact("delivered", { at: eventAt - 5_000 }))
    const text = prometheusText(metrics.families())
    assert.include(text, "petrel_queue_delay_seconds_sum 0\n")
    assert.include(text, "petrel_delivery_duration_seconds_sum 0\n")
  })

  it("ignores facts that a worker does not make of deliveries", () => {
    const empty = prometheusText(new WorkerMetrics().families())
    const metrics = new WorkerMetrics()
    for (const kind of ["endpoint-changed", "alert-raised", "redelivered", "discarded"] as const)
      metrics.stored(fact(kind))
    assert.strictEqual(prometheusText(metrics.families()), empty)
  })
})

describe("metrics by tenant", () => {
  it("are of the first 100 tenants, and of all others together", () => {
    const metrics = new WorkerMetrics(true)
    for (let n = 0; n < 1_000; n++) metrics.stored(fact("delivered", { tenant: `t${n}` }))
    const name = "petrel_deliveries_ended_total"
    assert.strictEqual(counted([metrics], name, { tenant: "t7" }), 1)
    assert.strictEqual(counted([metrics], name, { tenant: others }), 900)
    assert.strictEqual(counted([metrics], name), 1_000)
    const lines = prometheusText(metrics.families()).split("\n").length
    for (let n = 0; n < 10_000; n++) metrics.stored(fact("delivered", { tenant: `u${n}` }))
    assert.lengthOf(prometheusText(metrics.families()).split("\n"), lines)
  })

  it("name at most 100 endpoints that answer 429", () => {
    const metrics = new WorkerMetrics()
    for (let n = 0; n < 500; n++)
      metrics.stored(fact("attempt-failed", { status: 429, endpoint: `e${n}` }))
    const name = "petrel_rate_limited_attempts_total"
    assert.strictEqual(counted([metrics], name, { tenant: "acme", endpoint: "e7" }), 1)
    assert.strictEqual(counted([metrics], name, { endpoint: others }), 400)
  })

  it("name the 20 hosts with the most requests in flight", () => {
    const metrics = new WorkerMetrics()
    const hosts = new Map(Array.from({ length: 100 }, (_, n) => [`h${n}`, n]))
    const load = { requests: 1, slowRequests: 1, maxRequests: 1, partitions: 1, connections: 1 }
    metrics.load = () => ({ ...load, byHost: () => hosts, byTenant: () => [] })
    const name = "petrel_host_inflight_requests"
    assert.strictEqual(counted([metrics], name, { host: "h99" }), 99)
    assert.strictEqual(counted([metrics], name, { host: "h79" }), 0)
    assert.strictEqual(counted([metrics], name), (20 * (80 + 99)) / 2)
  })

  it("name the 20 tenants that use and want the most", () => {
    const metrics = new WorkerMetrics()
    const tenants = Array.from({ length: 100 }, (_, n) => ({
      ...{ tenant: `t${n}`, requests: n, waiting: n === 3 ? 7 : 0 }
    }))
    const load = { requests: 1, slowRequests: 5, maxRequests: 1, partitions: 1, connections: 9 }
    metrics.load = () => ({ ...load, byHost: () => new Map(), byTenant: () => tenants })
    const requests = "petrel_tenant_inflight_requests"
    assert.strictEqual(counted([metrics], requests), (20 * (80 + 99)) / 2)
    assert.strictEqual(counted([metrics], requests, { tenant: "t99" }), 99)
    const waiting = "petrel_tenant_waiting_endpoints"
    assert.strictEqual(counted([metrics], waiting), 7)
    assert.strictEqual(counted([metrics], waiting, { tenant: "t3" }), 7)
    assert.strictEqual(counted([metrics], "petrel_inflight_slow_requests"), 5)
    assert.strictEqual(counted([metrics], "petrel_receiver_connections"), 9)
  })
})
