import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import type { LeftDelivery } from "../../../src/delivery/bodies/left-bodies.ts"
import type { FailedAttempt } from "../../../src/delivery/execution/failed-attempt.ts"
import { judgeFailure } from "../../../src/delivery/execution/failed-attempt.ts"
import type { DirectHandle } from "../../../src/delivery/source/event-source.ts"
import { untried } from "../../../src/domain/delivery.ts"
import { keptBodies, key, live, now, outcomeOf } from "../made-deliveries.ts"
import type { World } from "./made-event-source.ts"
import { makeHandle, makePlan, makeSource } from "./made-event-source.ts"

const failedOf = (handle: DirectHandle, verdict: "retry" | "fail") =>
  judgeFailure(handle, untried, outcomeOf(verdict), live, "w1")

describe("a delivery that is only in its event", () => {
  it("is taken where it can be attempted promptly, and goes to the queue otherwise", () => {
    const worlds: ReadonlyArray<Partial<World>> = [
      {},
      { isTaking: false },
      { isClosed: false },
      { isQuick: false }
    ]
    const taken = worlds.map((world) => {
      const { entered, source } = makeSource(world)
      const isTaken = source.take(makeHandle().handle.direct)
      assert.lengthOf(entered, isTaken ? 1 : 0)
      return isTaken
    })
    assert.deepStrictEqual(taken, [true, false, false, false])
  })

  it("is not taken again after it has ended, though its event comes as if for the first time", () => {
    const { memory, source } = makeSource()
    const { handle } = makeHandle(undefined, { eventAt: now - 2_000 })
    memory.directDeliveries.add(key, handle.delivery)
    assert.isFalse(source.take(handle.direct))
  })

  it("begins where memory alone shows that it may be attempted", () => {
    const { memory, source } = makeSource()
    const { begun, ends, handle } = makeHandle()
    assert.strictEqual(source.begin(handle), live)
    assert.strictEqual(begun(), 1)
    assert.isTrue(memory.directDeliveries.isInFlight(handle.delivery))
    source.left(handle)
    assert.isFalse(memory.directDeliveries.isInFlight(handle.delivery))
    assert.deepStrictEqual(ends, [{ _tag: "Unknown" }])
  })

  it.effect("is left untried to the queue where it may not be attempted", () =>
    Effect.gen(function* () {
      const worlds: ReadonlyArray<Partial<World>> = [
        { isOpen: false },
        { mayAttempt: false },
        { isKnown: false }
      ]
      for (const world of worlds) {
        const { source } = makeSource(world)
        const { begun, ends, handle } = makeHandle()
        assert.isUndefined(source.begin(handle))
        assert.isUndefined(yield* source.decide())
        source.left(handle)
        assert.strictEqual(begun(), 0)
        assert.deepStrictEqual(ends, [{ _tag: "Untried" }])
      }
    })
  )

  it("is left to routing at its deadline, and where it has waited too long in line", () => {
    const { source } = makeSource()
    const late = makeHandle(undefined, { deadline: now })
    assert.isUndefined(source.begin(late.handle))
    const inLine = makeHandle()
    source.defer(key, inLine.handle)
    source.giveBack(key, inLine.handle)
    assert.deepStrictEqual(inLine.ends, [{ _tag: "Untried" }, { _tag: "Untried" }])
  })

  it.effect("is looked for first where another router may have its event meanwhile", () =>
    Effect.gen(function* () {
      const { source } = makeSource()
      const { begun, ends, handle } = makeHandle(undefined, {}, true)
      assert.isUndefined(source.begin(handle))
      assert.isUndefined(yield* source.decide())
      source.left(handle)
      assert.strictEqual(begun(), 0)
      assert.deepStrictEqual(ends, [{ _tag: "Unknown" }])
    })
  )

  it("is done for the queue once its success is recorded", () => {
    const { memory, source } = makeSource()
    const { ends, handle } = makeHandle()
    source.begin(handle)
    assert.strictEqual(source.complete(handle), Effect.void)
    assert.isTrue(memory.directDeliveries.isDone(key, handle.delivery))
    source.left(handle)
    assert.deepStrictEqual(ends, [{ _tag: "Delivered" }])
  })

  it.effect("is unknown after a defect: routing finds out", () =>
    Effect.gen(function* () {
      const { source } = makeSource()
      const { ends, handle } = makeHandle()
      source.begin(handle)
      yield* source.afterDefect(handle, Cause.die("broken"))
      source.left(handle)
      assert.deepStrictEqual(ends, [{ _tag: "Unknown" }])
    })
  )
})

describe("the failure of a direct delivery", () => {
  const retry = ({ broker, source }: ReturnType<typeof makeSource>, handle: DirectHandle) =>
    Effect.gen(function* () {
      const failed: FailedAttempt = yield* failedOf(handle, "retry")
      return yield* Effect.exit(broker.run(source.retry(handle, failed)))
    })

  it.effect("is recorded, and the delivery goes to the queue with its progress", () =>
    Effect.gen(function* () {
      const made = makeSource()
      const { ends, handle } = makeHandle()
      made.source.begin(handle)
      yield* retry(made, handle)
      made.source.left(handle)
      assert.deepStrictEqual(made.history.kinds, ["attempt-failed"])
      const progress = made.memory.directDeliveries.progressOf(handle.delivery)
      assert.strictEqual(progress?.nextAttemptAt, now + 5_000)
      assert.deepStrictEqual(ends, [
        { _tag: "Failed", progress: progress ?? untried, leavesBody: false }
      ])
    })
  )

  it.effect("leaves its body in its event where that is kept long enough", () =>
    Effect.gen(function* () {
      const leave = ({ delivery }: LeftDelivery) => ({
        delivery: { ...delivery, leftBytes: 9 },
        body: new Uint8Array()
      })
      const made = makeSource({ leftBodies: { ...keptBodies, leave } })
      const { ends, handle } = makeHandle()
      made.source.begin(handle)
      yield* retry(made, handle)
      made.source.left(handle)
      assert.isTrue(ends.every((end) => end._tag === "Failed" && end.leavesBody))
      assert.deepStrictEqual(made.failed, [0])
    })
  )

  it.effect("ends the delivery in the queue where it is final", () =>
    Effect.gen(function* () {
      const made = makeSource()
      const { ends, handle } = makeHandle()
      made.source.begin(handle)
      const failed = yield* failedOf(handle, "fail")
      yield* made.broker.run(made.source.deadLetter(handle, failed, "permanent"))
      made.source.left(handle)
      assert.deepStrictEqual(
        made.history.stored.map(({ fact }) => [fact.kind, fact.reason]),
        [["attempt-failed", "permanent"]]
      )
      const [end] = ends
      assert.strictEqual(end?._tag === "Failed" ? end.progress.ends : end, "permanent")
    })
  )

  it.effect("is recorded after its plan", () =>
    Effect.gen(function* () {
      const made = makeSource()
      let isCommitted = false
      const { uncommitted } = makePlan({
        committed: Effect.sync(() => {
          isCommitted = made.history.stored.length === 0
          return 1
        })
      })
      const { handle } = makeHandle(uncommitted)
      made.source.begin(handle)
      yield* retry(made, handle)
      assert.isTrue(isCommitted)
      assert.deepStrictEqual(made.history.kinds, ["attempt-failed"])
      assert.isUndefined(made.history.stored[0]?.fact.plan)
    })
  )

  it.effect.each([
    ["by a former one", [false]],
    ["by one that lost the partition while the history took nothing", [true, false]]
  ] as const)("is left to the new owner %s: nothing is recorded", ([, holds]) =>
    Effect.gen(function* () {
      const made = makeSource({ holds })
      const { ends, handle } = makeHandle()
      made.source.begin(handle)
      const exit = yield* retry(made, handle)
      assert.isTrue(Exit.hasInterrupts(exit))
      made.source.left(handle)
      assert.deepStrictEqual(made.history.stored, [])
      assert.deepStrictEqual(ends, [{ _tag: "Unknown" }])
    })
  )
})
