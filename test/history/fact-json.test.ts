import { assert, describe, it } from "@effect/vitest"
import { answeredFact } from "../../src/history/fact-record.ts"

const at = Date.UTC(2026, 2, 4, 10, 30)
const text = "2026-03-04T10:30:00.000Z"

describe("a fact that is answered", () => {
  it("has its times as texts, and what this version does not know as it is stored", () => {
    const plan = { part: 0, last: true, endpoints: [], skipped: [] }
    const planned = { id: "billing", generation: "g", revision: 1, deadline: at }
    const fact = {
      ...{ v: 1, kind: "attempt-failed", at, tenant: "acme", endpoint: "billing" },
      ...{ durationMs: 12, nextAttemptAt: at, from: { stream: "Q", seq: 1, at }, later: 7 },
      plan: { ...plan, endpoints: [planned] }
    }
    assert.deepStrictEqual(answeredFact(fact), {
      ...fact,
      ...{ at: text, nextAttemptAt: text, from: { stream: "Q", seq: 1, at: text } },
      plan: { ...plan, endpoints: [{ ...planned, deadline: text }] }
    })
  })

  it("is answered as it is stored where this version cannot read it", () => {
    assert.deepStrictEqual(answeredFact({ v: 2, at }), { v: 2, at })
  })
})
