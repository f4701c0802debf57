import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { AlertWindows } from "../../src/alerts/alert-windows.ts"
import { thresholdsFrom } from "../../src/alerts/thresholds.ts"
import { untried } from "../../src/domain/delivery.ts"
import type { RuledStatus } from "../../src/domain/outcome.ts"
import { blankEndpoint } from "../../src/operations/endpoints/endpoint-change.ts"

const minute = 60_000
const start = 1_000_000 * minute

const endpoint = (id: string, generation = "g") => ({
  key: `acme.${id}`,
  config: blankEndpoint({ tenant: "acme", id }, generation, start)
})

const makeWindows = (lengths: Readonly<Record<string, Duration.Duration>> = {}) => {
  const tenants = Object.entries(lengths).map(([tenant, window]) => [tenant, { window }] as const)
  const windows = new AlertWindows(thresholdsFrom({ system: undefined, tenants: new Map(tenants) }))
  const answered = (
    of: ReturnType<typeof endpoint>,
    status: number,
    {
      at = start,
      rule,
      type = "invoice.paid"
    }: { at?: number; rule?: RuledStatus; type?: string } = {}
  ) =>
    windows.answered(
      of,
      { tenant: "acme", type, began: at - 20 },
      {
        ...{ at, rule, verdict: status === 200 ? "delivered" : "retry" },
        result: { status, durationMs: 1 }
      },
      untried
    )
  return { windows, answered }
}

describe("what alerts are made of", () => {
  it("is counted by endpoint and by tenant, with the failures in a row and the last one", () => {
    const { answered, windows } = makeWindows()
    answered(endpoint("a"), 200)
    answered(endpoint("a"), 500)
    answered(endpoint("a"), 503)
    answered(endpoint("b"), 200)
    windows.onDeadLettered(
      { tenant: "acme", endpoint: "b", generation: "g", type: "x" },
      untried,
      start,
      undefined
    )
    const page = windows.page("acme.a")
    assert.deepInclude(page?.window.read(start), { tried: 3, pending: 2, delivered: 1 })
    assert.deepStrictEqual([page?.failuresInRow, page?.lastStatus], [2, 503])
    assert.deepInclude(windows.tenant("acme")?.read(start), { tried: 4, delivered: 2, dead: 1 })
    answered(endpoint("a"), 200)
    assert.strictEqual(windows.page("acme.a")?.failuresInRow, 0)
  })

  it("is the last answers in a row with a rule, however far apart they are", () => {
    const { answered, windows } = makeWindows({ acme: Duration.minutes(5) })
    const rule = { status: "404", alert: 3 }
    const count = () => windows.page("acme.a")?.row?.count
    answered(endpoint("a"), 404, { rule })
    windows.takeTouched(start)
    windows.takeTouched(start + 60 * minute)
    answered(endpoint("a"), 404, { at: start + 60 * minute, rule })
    assert.deepStrictEqual(windows.page("acme.a")?.row, { ...rule, count: 2 })
    answered(endpoint("a"), 503, { at: start + 61 * minute })
    assert.isUndefined(count())
    answered(endpoint("a"), 404, { at: start + 62 * minute, rule })
    assert.strictEqual(count(), 1)
    answered(endpoint("a"), 500, { at: start + 63 * minute, rule: { status: "5xx", alert: 9 } })
    assert.deepStrictEqual(windows.page("acme.a")?.row, { status: "5xx", alert: 9, count: 1 })
    answered(endpoint("a"), 200, { at: start + 64 * minute })
    assert.isUndefined(count())
    windows.takeTouched(start + 64 * minute)
    windows.takeTouched(start + 72 * minute)
    assert.isUndefined(windows.page("acme.a"))
  })

  it("names each endpoint once of which there is something new", () => {
    const { answered, windows } = makeWindows()
    answered(endpoint("a"), 200)
    answered(endpoint("a"), 200)
    answered(endpoint("b"), 200)
    assert.deepStrictEqual(windows.takeTouched(start), ["acme.a", "acme.b"])
    assert.deepStrictEqual(windows.takeTouched(start), [])
    answered(endpoint("b"), 500)
    assert.deepStrictEqual(windows.takeTouched(start), ["acme.b"])
  })

  it("does not count for the tenant what becomes of alerts themselves", () => {
    const { answered, windows } = makeWindows()
    const type = "petrel.alert.success-low"
    answered(endpoint("ops"), 500, { type })
    windows.onDeadLettered(
      { tenant: "acme", endpoint: "ops", generation: "g", type },
      untried,
      start,
      undefined
    )
    assert.isUndefined(windows.tenant("acme"))
    assert.deepInclude(windows.page("acme.ops")?.window.read(start), { tried: 1, dead: 1 })
  })

  it("begins anew for an endpoint made again, and takes no memory when it is over", () => {
    const { answered, windows } = makeWindows({ acme: Duration.minutes(5) })
    answered(endpoint("a", "old"), 500)
    answered(endpoint("a", "new"), 200)
    assert.deepInclude(windows.page("acme.a")?.window.read(start), { tried: 1, pending: 0 })
    assert.strictEqual(windows.page("acme.a")?.window.over, 5 * minute)
    windows.takeTouched(start)
    windows.takeTouched(start + 6 * minute)
    assert.isUndefined(windows.page("acme.a"))
    assert.deepStrictEqual([...windows.tenants()], [])
  })
})
