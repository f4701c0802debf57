import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { AlertBook } from "../../src/alerts/alert-book.ts"
import { thresholdsFrom } from "../../src/alerts/thresholds.ts"
import type { RuledStatus } from "../../src/domain/attempt-outcome.ts"
import { untried } from "../../src/domain/delivery.ts"
import { blankEndpoint } from "../../src/operations/endpoints/endpoint-change.ts"

const minute = 60_000
const start = 1_000_000 * minute

const endpoint = (id: string, generation = "g") => ({
  key: `acme.${id}`,
  config: blankEndpoint({ tenant: "acme", id }, generation, start)
})

const makeBook = (windows: Readonly<Record<string, Duration.Duration>> = {}) => {
  const tenants = Object.entries(windows).map(([tenant, window]) => [tenant, { window }] as const)
  const book = new AlertBook(thresholdsFrom({ system: undefined, tenants: new Map(tenants) }))
  const answered = (
    of: ReturnType<typeof endpoint>,
    status: number,
    {
      at = start,
      rule,
      type = "invoice.paid"
    }: { at?: number; rule?: RuledStatus; type?: string } = {}
  ) =>
    book.answered(
      of,
      { tenant: "acme", type, began: at - 20 },
      {
        ...{ at, rule, verdict: status === 200 ? "delivered" : "retry" },
        result: { status, durationMs: 1 }
      },
      untried
    )
  return { book, answered }
}

describe("what alerts are made of", () => {
  it("is counted by endpoint and by tenant, with the failures in a row and the last one", () => {
    const { answered, book } = makeBook()
    answered(endpoint("a"), 200)
    answered(endpoint("a"), 500)
    answered(endpoint("a"), 503)
    answered(endpoint("b"), 200)
    book.onDeadLettered(
      { tenant: "acme", endpoint: "b", generation: "g", type: "x" },
      untried,
      start,
      undefined
    )
    const page = book.page("acme.a")
    assert.deepInclude(page?.window.read(start), { tried: 3, pending: 2, delivered: 1 })
    assert.deepStrictEqual([page?.failuresInRow, page?.lastStatus], [2, 503])
    assert.deepInclude(book.tenant("acme")?.read(start), { tried: 4, delivered: 2, dead: 1 })
    answered(endpoint("a"), 200)
    assert.strictEqual(book.page("acme.a")?.failuresInRow, 0)
  })

  it("is the last answers in a row with a rule, however far apart they are", () => {
    const { answered, book } = makeBook({ acme: Duration.minutes(5) })
    const rule = { status: "404", alert: 3 }
    const count = () => book.page("acme.a")?.row?.count
    answered(endpoint("a"), 404, { rule })
    book.takeTouched(start)
    book.takeTouched(start + 60 * minute)
    answered(endpoint("a"), 404, { at: start + 60 * minute, rule })
    assert.deepStrictEqual(book.page("acme.a")?.row, { ...rule, count: 2 })
    answered(endpoint("a"), 503, { at: start + 61 * minute })
    assert.isUndefined(count())
    answered(endpoint("a"), 404, { at: start + 62 * minute, rule })
    assert.strictEqual(count(), 1)
    answered(endpoint("a"), 500, { at: start + 63 * minute, rule: { status: "5xx", alert: 9 } })
    assert.deepStrictEqual(book.page("acme.a")?.row, { status: "5xx", alert: 9, count: 1 })
    answered(endpoint("a"), 200, { at: start + 64 * minute })
    assert.isUndefined(count())
    book.takeTouched(start + 64 * minute)
    book.takeTouched(start + 72 * minute)
    assert.isUndefined(book.page("acme.a"))
  })

  it("names each endpoint once of which there is something new", () => {
    const { answered, book } = makeBook()
    answered(endpoint("a"), 200)
    answered(endpoint("a"), 200)
    answered(endpoint("b"), 200)
    assert.deepStrictEqual(book.takeTouched(start), ["acme.a", "acme.b"])
    assert.deepStrictEqual(book.takeTouched(start), [])
    answered(endpoint("b"), 500)
    assert.deepStrictEqual(book.takeTouched(start), ["acme.b"])
  })

  it("does not count for the tenant what becomes of alerts themselves", () => {
    const { answered, book } = makeBook()
    const type = "petrel.alert.success-low"
    answered(endpoint("ops"), 500, { type })
    book.onDeadLettered(
      { tenant: "acme", endpoint: "ops", generation: "g", type },
      untried,
      start,
      undefined
    )
    assert.isUndefined(book.tenant("acme"))
    assert.deepInclude(book.page("acme.ops")?.window.read(start), { tried: 1, dead: 1 })
  })

  it("begins anew for an endpoint made again, and takes no memory when it is over", () => {
    const { answered, book } = makeBook({ acme: Duration.minutes(5) })
    answered(endpoint("a", "old"), 500)
    answered(endpoint("a", "new"), 200)
    assert.deepInclude(book.page("acme.a")?.window.read(start), { tried: 1, pending: 0 })
    assert.strictEqual(book.page("acme.a")?.window.over, 5 * minute)
    book.takeTouched(start)
    book.takeTouched(start + 6 * minute)
    assert.isUndefined(book.page("acme.a"))
    assert.deepStrictEqual([...book.tenants()], [])
  })
})
