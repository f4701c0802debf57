import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import type { Fact, FactKind } from "../../src/domain/fact.ts"
import { readFates } from "../../src/history/dead-fates.ts"
import { Facts } from "../../src/history/facts.ts"
import { readLateDeliveries } from "../../src/history/late-deliveries.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const about = { tenant: "acme", endpoint: "hook", eventSeq: 1, eventAt: 1, round: "d4" }

let ids = 0
const tell = (kind: FactKind, at: number, more: Partial<Fact> = {}) =>
  Effect.gen(function* () {
    const { append } = yield* Facts
    const fact: Fact = { v: 1, kind, at, ...about, worker: "w1", ...more }
    yield* append(fact, `fact.${ids++}`)
  })

describe.concurrent("a late success", () => {
  scenario("is known by its round", () =>
    Effect.gen(function* () {
      yield* tell("delivered", 1, { round: "d5" })
      yield* tell("delivered-late", 2)
      yield* tell("delivered-late", 3, { endpoint: "other" })
      const late = yield* readLateDeliveries({ endpoint: { tenant: "acme", id: "hook" } })
      assert.deepStrictEqual(late(about), { at: 2, worker: "w1" })
      for (const other of [{ round: "d5" }, { eventSeq: 2 }, { eventAt: 2 }, { endpoint: "other" }])
        assert.isUndefined(late({ ...about, ...other }))
    })
  )

  for (const order of [
    ["delivered-late", "dead-lettered"],
    ["dead-lettered", "delivered-late"]
  ] as const)
    scenario(`is what became of a dead letter that was sent again: ${order.join(", ")}`, () =>
      Effect.gen(function* () {
        yield* tell("redelivered", 1, { dead: 4 })
        for (const kind of order) yield* tell(kind, 2, kind === "dead-lettered" ? { dead: 9 } : {})
        const fate = (yield* readFates({})).get(4)
        assert.strictEqual(fate?.outcome, "delivered-late")
        assert.strictEqual(fate?.dead, 9)
      })
    )
})
