import { assert, describe, it } from "@effect/vitest"
import { systemFamilies } from "../../../src/operations/status/status-metrics.ts"
import { statusOf } from "../../../src/operations/status/status-report.ts"
import { counted } from "../../kit/counted.ts"
import { busy, comingIn, minute, now, partition, silent } from "./surveys.ts"

const alert = (name: "success-low" | "circuit-opened") =>
  ({
    ...{ name, about: "endpoint", level: "warn", since: now, tenant: "acme", endpoint: "hook" }
  }) as never

const numbersOf = (state: Partial<Parameters<typeof systemFamilies>[0]> = {}) => {
  const families = systemFamilies({ status: statusOf(busy), alerts: [], ...state })
  return (name: string, labels = {}) => counted([{ families: () => families }], name, labels)
}

describe("systemFamilies", () => {
  it("has each waiting delivery in one place", () => {
    const status = statusOf(busy)
    const number = numbersOf({ status })
    const name = "petrel_waiting_deliveries"
    assert.strictEqual(number(name), status.deliveries.waiting)
    assert.strictEqual(number(name, { place: "backlog" }), status.deliveries.backlog)
    assert.strictEqual(number(name, { place: "retry" }), status.deliveries.retries)
  })

  it("counts partitions by whether somebody delivers in them", () => {
    const unowned = { ...silent, owner: null, unownedSince: now - minute }
    const partitions = [partition(0), partition(1, silent), partition(2, unowned)]
    const number = numbersOf({ status: statusOf({ ...busy, partitions }) })
    const name = "petrel_partitions"
    for (const state of ["owned", "silent", "unowned"])
      assert.strictEqual(number(name, { state }), 1, state)
  })

  it("has endpoints by state, and alerts by name", () => {
    const alerts = [alert("success-low"), alert("success-low"), alert("circuit-opened")]
    const number = numbersOf({ alerts })
    assert.strictEqual(number("petrel_endpoints", { state: "disabled" }), 990)
    assert.strictEqual(number("petrel_endpoints"), 100_000)
    assert.strictEqual(number("petrel_alerts_raised", { name: "success-low" }), 2)
    assert.strictEqual(number("petrel_alerts_raised"), 3)
  })

  it("has a problem by its code, and 0 where there is none", () => {
    const without = { ...statusOf(busy), problems: [] }
    const families = systemFamilies({ status: without, alerts: [] })
    const problems = families.find(({ name }) => name === "petrel.problems")
    assert.lengthOf(problems?.samples ?? [], 1)
    const one = { ...without, problems: [{ code: "no-worker", text: "" }] }
    assert.strictEqual(numbersOf({ status: one })("petrel_problems", { code: "no-worker" }), 1)
  })

  it("leaves out what is not known", () => {
    const dead = { stored: null, open: null, lastHour: null, bytes: null, limitBytes: null }
    const status = { ...statusOf(busy), endpoints: null, workers: null }
    const deadLetters = { ...dead, byTenant: null }
    const names = systemFamilies({ status: { ...status, deadLetters }, alerts: [] }).map(
      ({ name }) => name
    )
    for (const unknown of ["petrel.dead_letters", "petrel.endpoints", "petrel.workers"])
      assert.notInclude(names, unknown)
    assert.notInclude(names, "petrel.audit.problems")
    assert.notInclude(names, "petrel.projection.lag")
  })

  it("has what comes in, where there is an intake", () => {
    const number = numbersOf({ status: statusOf({ ...busy, incoming: comingIn }) })
    assert.strictEqual(number("petrel_intake_pending"), 5)
    assert.strictEqual(number("petrel_quarantined_requests"), 9)
    assert.strictEqual(number("petrel_gateways"), 2)
    assert.strictEqual(number("petrel_stream_bytes", { stream: "intake" }), 20 * 1024 ** 2)
    assert.strictEqual(number("petrel_outboxes_pending_rows", { outbox: "shop" }), 4)
    assert.strictEqual(number("petrel_outboxes_set_aside_rows", { outbox: "shop" }), 1)
    assert.strictEqual(number("petrel_outboxes_silent", { outbox: "shop" }), 0)
    const names = systemFamilies({ status: statusOf(busy), alerts: [] }).map(({ name }) => name)
    assert.notInclude(names, "petrel.gateways")
  })

  it("has the last audit, and what the projection knows", () => {
    const number = numbersOf({
      audit: { at: now, verdict: "problems", problems: 3 },
      projection: {
        ...{ lagMs: 1_500, repeatedAttempts: 7 },
        sums: { rows: 5, maxRows: 9, together: 2 }
      }
    })
    assert.strictEqual(number("petrel_audit_problems"), 3)
    assert.strictEqual(number("petrel_audit_last_run_timestamp_seconds"), now / 1_000)
    assert.strictEqual(number("petrel_projection_lag_seconds"), 1.5)
    assert.strictEqual(number("petrel_repeated_attempts_total"), 7)
    assert.strictEqual(number("petrel_projection_sums_together_total"), 2)
  })
})
