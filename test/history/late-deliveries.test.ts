import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import type { AckHandle } from "../../src/delivery/execution/ack-handle.ts"
import { findMoved } from "../../src/delivery/retry/applied-steps.ts"
import { roundKey, untried } from "../../src/domain/delivery.ts"
import type { Fact, FactKind } from "../../src/domain/fact.ts"
import { readFates } from "../../src/history/dead-fates.ts"
import { Facts } from "../../src/history/facts.ts"
import { readLateDeliveries } from "../../src/history/late-deliveries.ts"
import { findRounds } from "../../src/operations/rounds/round-search.ts"
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

  scenario("shows that a round was begun, and that what was to wait has gone on", () =>
    Effect.gen(function* () {
      const record = { ...about, v: 1, decidedAt: Date.now() } as const
      const progress = { attempts: 1 }
      const held: AckHandle = {
        place: { stream: "elsewhere", seq: 1, at: 1 },
        delivery: {
          ...{ ...about, event: "a", type: "paid", began: 1, deadline: 2, generation: "g" },
          ...{ revision: 1, content: {}, progress: untried }
        },
        body: new Uint8Array(),
        ...{ deliveryCount: 1, ack: () => Effect.void, nak: () => undefined }
      }
      const isFound = Effect.all([
        Effect.map(
          findRounds(about, 0, new Set([roundKey(about)]), 0),
          (found) => found.size === 1
        ),
        findMoved(held, 0, { ...record, progress, decision: { _tag: "Schedule", at: 1 } })
      ])
      assert.deepStrictEqual(yield* isFound, [false, false])
      yield* tell("delivered-late", 2)
      assert.deepStrictEqual(yield* isFound, [true, true])
    })
  )
})
