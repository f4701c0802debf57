import { assert, describe, it } from "@effect/vitest"
import { firstRound } from "../../../src/domain/delivery.ts"
import type { Fact } from "../../../src/domain/fact.ts"
import { answersIn } from "../../../src/operations/deliveries/attempt-answers.ts"

const answered = (attempt: number, changes: Partial<Fact> = {}): Fact => ({
  ...{ v: 1, kind: "attempt-failed", at: attempt, tenant: "acme", endpoint: "hook" },
  ...{ eventSeq: 1, eventAt: 1, attempt, worker: "w1" },
  response: { headers: {}, body: `answer ${attempt}`, bytes: 8 },
  ...changes
})

const attempt = (number: number, worker = "w1") => ({ number, at: number, worker })

describe("the answers of a delivery's attempts", () => {
  it("are those of the attempt with the round, the number, the time and the worker", () => {
    const redirects = [{ status: 302, to: "https://a.example/" }]
    const find = answersIn([
      answered(1),
      answered(1, { round: "again", response: undefined, redirects }),
      answered(2, { kind: "delivered" }),
      answered(2, { kind: "delivered-late", worker: "w2", response: undefined }),
      answered(3, { kind: "dead-lettered" })
    ])
    assert.strictEqual(find(firstRound, attempt(1)).response?.body, "answer 1")
    assert.deepStrictEqual(find("again", attempt(1)), { redirects })
    assert.strictEqual(find(firstRound, attempt(2)).response?.body, "answer 2")
    assert.deepStrictEqual(find(firstRound, attempt(2, "w2")), {})
    assert.deepStrictEqual(find(firstRound, attempt(3)), {})
  })

  it("are those of the last 100", () => {
    const find = answersIn(Array.from({ length: 150 }, (_, n) => answered(n + 1)))
    assert.deepStrictEqual(find(firstRound, attempt(50)), {})
    assert.strictEqual(find(firstRound, attempt(51)).response?.body, "answer 51")
  })
})
