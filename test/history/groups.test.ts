import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Groupable } from "../../src/history/fold/groups.ts"
import { Groups } from "../../src/history/fold/groups.ts"
import type { Totals } from "../../src/history/fold/totals.ts"
import { addTotals, afterCounting, noTotals } from "../../src/history/fold/totals.ts"

const grouped = (by: "endpoint" | "type", facts: ReadonlyArray<Groupable>, most?: number) => {
  const groups = new Groups(by, most)
  for (const fact of facts) groups.note(fact)
  return groups
}

const about = { tenant: "acme", endpoint: "a", type: "invoice.paid" }

const story: ReadonlyArray<Groupable> = [
  {
    ...about,
    kind: "routed",
    endpoint: "_",
    plan: { part: 0, endpoints: [{ id: "a" }, { id: "b" }], skipped: [{ id: "c" }] }
  },
  { ...about, kind: "delivered", attempt: 1, durationMs: 5 },
  { ...about, kind: "attempt-failed", endpoint: "b", attempt: 1 },
  { ...about, kind: "dead-lettered", endpoint: "b", attempt: 1 },
  {
    ...about,
    kind: "delivered",
    tenant: "globex",
    type: "invoice.sent",
    attempt: 1,
    plan: { part: 0, endpoints: [{ id: "a" }], skipped: [] }
  }
]

describe("totals by endpoint", () => {
  it("count a plan for each endpoint that it names, and name the worst first", () => {
    const { others, shown } = grouped("endpoint", story).top(10)
    assert.deepStrictEqual(
      shown.map(({ name, totals }) => [
        name,
        totals.events,
        totals.begun,
        totals.skipped,
        totals.delivered,
        totals.deadLettered
      ]),
      [
        ["acme/b", 1, 1, 0, 0, 1],
        ["acme/a", 1, 1, 0, 1, 0],
        ["globex/a", 1, 1, 0, 1, 0],
        ["acme/c", 0, 0, 1, 0, 0]
      ]
    )
    assert.isUndefined(others)
  })
})

describe("totals by type", () => {
  it("count an event once, whatever it goes to", () => {
    const { shown } = grouped("type", story).top(10)
    assert.deepStrictEqual(
      shown.map(({ name, spread, totals }) => [
        name,
        totals.events,
        totals.begun,
        totals.deadLettered,
        spread.attempts
      ]),
      [
        ["invoice.paid", 1, 2, 1, { "1": 2 }],
        ["invoice.sent", 1, 1, 0, { "1": 1 }]
      ]
    )
  })

  it("sum up what is not shown, also what there was no room for", () => {
    const facts = ["a", "b", "b", "c", "d", "e", "e", "e"].map(
      (type): Groupable => ({ ...about, kind: "delivered", type, attempt: 1, durationMs: 3 })
    )
    const { others, shown } = grouped("type", facts, 3).top(1)
    assert.deepStrictEqual(
      shown.map(({ name, totals }) => [name, totals.delivered]),
      [["b", 2]]
    )
    // Of a and c, which were kept apart, and of d and e, which were not.
    assert.deepStrictEqual([others?.groups, others?.totals.delivered], [4, 6])
    assert.deepStrictEqual(others?.spread.attempts, { "1": 6 })
  })

  const Facts = Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(["delivered", "attempt-failed", "dead-lettered", "replayed"]),
      type: Schema.Literals(["a", "b", "c", "d", "e"]),
      attempt: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 }))
    })
  )
  const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 }))

  it.prop(
    "come to the same in all, however many are shown or kept apart",
    { facts: Facts, limit: Limit, most: Limit },
    ({ facts, limit, most }) => {
      const all = facts.map((fact): Groupable => ({ ...about, ...fact }))
      const { others, shown } = grouped("type", all, most).top(limit)
      assert.isAtMost(shown.length, limit)
      const sum = [...shown, ...(others === undefined ? [] : [others])].reduce<Totals>(
        (sum, { totals }) => addTotals(sum, totals),
        noTotals
      )
      assert.deepStrictEqual(sum, all.reduce(afterCounting, noTotals))
      const names = new Set(facts.map(({ type }) => type))
      assert.strictEqual(shown.length + (others?.groups ?? 0), names.size)
    }
  )
})
