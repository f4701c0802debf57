import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { DirectHandle } from "../../../src/delivery/source/event-source.ts"
import { untried } from "../../../src/domain/delivery.ts"
import type { Fact } from "../../../src/domain/fact.ts"
import { now, outcomeOf } from "../made-deliveries.ts"
import { makeHandle, makePlan, makeSource, plan, planFor } from "./made-event-source.ts"

const sent = outcomeOf("delivered")

/** Stores a success as `SuccessLog.record` does: by one append, or else by the other way. */
const storeSuccess = Effect.fnUntraced(function* (
  { broker, history, source }: ReturnType<typeof makeSource>,
  handle: DirectHandle
) {
  const { fact, id, isFallbackOnly, fallback } = source.successOf(handle, untried, sent)
  if (isFallbackOnly !== true) {
    const { duplicate, seq } = history.store(fact, id)
    if (!duplicate || fallback === undefined) return { fact, seq }
  }
  return yield* broker.run(fallback?.() ?? Effect.die("no other way"))
})

const idOf = ({ id }: { readonly id: string }) => id
const planned = (changes: Partial<Fact> = {}): Fact => ({
  ...{
    v: 1,
    kind: "routed",
    at: now,
    tenant: "acme",
    endpoint: "hook",
    eventSeq: 7,
    eventAt: now,
    plan
  },
  ...changes
})

describe("the success of a direct delivery", () => {
  it("is a fact of its own where its plan is stored", () => {
    const { source } = makeSource()
    const committed = makePlan({ isCommitted: true, piggyback: () => undefined })
    for (const uncommitted of [undefined, committed.uncommitted]) {
      const success = source.successOf(makeHandle(uncommitted).handle, untried, sent)
      assert.deepStrictEqual([success.id.slice(0, 2), success.fact.plan], ["id", undefined])
      assert.isUndefined(success.fallback)
    }
  })

  it.effect("carries a plan that no fact holds", () =>
    Effect.gen(function* () {
      const made = makeSource()
      const { told, uncommitted } = makePlan()
      const { fact } = yield* storeSuccess(made, makeHandle(uncommitted).handle)
      assert.strictEqual(fact.plan, plan)
      assert.deepStrictEqual(made.history.stored.map(idOf), ["plan"])
      assert.deepStrictEqual(told, [])
    })
  )

  it.effect(
    "is beside the plan that another router stored meanwhile, which names its endpoint",
    () =>
      Effect.gen(function* () {
        const made = makeSource()
        made.history.store(planned(), "plan")
        const { told, uncommitted } = makePlan({ isUnsure: true })
        const { fact } = yield* storeSuccess(made, makeHandle(uncommitted).handle)
        assert.deepStrictEqual(
          [fact.kind, fact.plan, fact.reason],
          ["delivered", undefined, undefined]
        )
        assert.deepStrictEqual(made.history.kinds, ["routed", "delivered"])
        assert.deepStrictEqual(told, ["adopt 1"])
        assert.deepStrictEqual(made.history.confirmed, [])
      })
  )

  it.effect("is marked where that plan does not name its endpoint", () =>
    Effect.gen(function* () {
      const made = makeSource()
      made.history.store(planned({ plan: planFor("other") }), "plan")
      const { uncommitted } = makePlan({ isUnsure: true })
      const { fact } = yield* storeSuccess(made, makeHandle(uncommitted).handle)
      assert.strictEqual(fact.reason, "planned-otherwise")
    })
  )

  it.effect("is not marked where another part of that plan may name its endpoint", () =>
    Effect.gen(function* () {
      const made = makeSource()
      made.history.store(planned({ plan: { ...plan, endpoints: [], last: false } }), "plan")
      const { uncommitted } = makePlan({ isUnsure: true })
      const { fact } = yield* storeSuccess(made, makeHandle(uncommitted).handle)
      assert.isUndefined(fact.reason)
    })
  )

  it.effect("is its own plan's fact where only the acknowledgement was lost", () =>
    Effect.gen(function* () {
      const made = makeSource()
      const { told, uncommitted } = makePlan({ isUnsure: true })
      const { handle } = makeHandle(uncommitted)
      const first = made.source.successOf(handle, untried, sent)
      made.history.store(first.fact, first.id)
      yield* storeSuccess(made, handle)
      assert.lengthOf(made.history.stored, 1)
      assert.deepStrictEqual(told, ["adopt 1", "own"])
      assert.deepStrictEqual(
        made.history.confirmed.map(({ kind, plan }) => [kind, plan]),
        [["delivered", first.fact.plan]]
      )
    })
  )

  it.effect("is not sent again with its plan once the history may have forgotten the id", () =>
    Effect.gen(function* () {
      const { broker, history, source } = makeSource()
      const { uncommitted } = makePlan({ safeRepublishMs: 0 })
      const success = source.successOf(makeHandle(uncommitted).handle, untried, sent)
      const { fact } = yield* broker.run(success.fallback?.() ?? Effect.die("no other way"))
      assert.isUndefined(fact.plan)
      assert.deepStrictEqual(history.stored.map(idOf), ["id0"])
    })
  )

  it.effect("waits for its plan where that is being stored already", () =>
    Effect.gen(function* () {
      const made = makeSource()
      const order: Array<string> = []
      const { uncommitted } = makePlan({
        piggyback: () => undefined,
        committed: Effect.sync(() => {
          order.push("committed", ...made.history.stored.map(idOf))
          return 1
        })
      })
      const { fact } = yield* storeSuccess(made, makeHandle(uncommitted).handle)
      assert.deepStrictEqual([fact.kind, fact.plan], ["delivered", undefined])
      assert.deepStrictEqual(order, ["committed"])
      assert.deepStrictEqual(made.history.stored.map(idOf), ["id0"])
    })
  )

  it.effect("stores the plan separately, and is late, where this worker is a former owner", () =>
    Effect.gen(function* () {
      const made = makeSource({ holds: [false] })
      const { uncommitted } = makePlan()
      const { fact } = yield* storeSuccess(made, makeHandle(uncommitted).handle)
      assert.deepStrictEqual([fact.kind, fact.plan], ["delivered-late", undefined])
      assert.deepStrictEqual(made.history.stored.map(idOf), ["id0.late"])
    })
  )

  it.effect("is late without its plan where the owner changed before the append is repeated", () =>
    Effect.gen(function* () {
      const { broker, history, source } = makeSource({ holds: [true, false] })
      const { uncommitted } = makePlan()
      const success = source.successOf(makeHandle(uncommitted).handle, untried, sent)
      assert.strictEqual(success.fact.plan, plan)
      const { fact } = yield* broker.run(success.fallback?.() ?? Effect.die("no other way"))
      assert.deepStrictEqual([fact.kind, fact.plan], ["delivered-late", undefined])
      assert.deepStrictEqual(history.stored.map(idOf), ["id0.late"])
    })
  )
})
