import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import type { FailedAttempt } from "../../../src/delivery/execution/failed-attempt.ts"
import { judgeFailure } from "../../../src/delivery/execution/failed-attempt.ts"
import { SuccessLog } from "../../../src/delivery/execution/success-log.ts"
import type { TaskContext } from "../../../src/delivery/execution/task.ts"
import { DirectHandle, EventSource } from "../../../src/delivery/source/event-source.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import { untried } from "../../../src/domain/delivery.ts"
import type { Fact, Plan } from "../../../src/domain/fact.ts"
import type { DirectEnd, UncommittedPlan } from "../../../src/routing/partition-owner.ts"
import { MemoryBroker } from "../in-memory.ts"
import {
  deliveryOf,
  directoryOf,
  fixedClock,
  key,
  live,
  makeMemory,
  now,
  outcomeOf
} from "../made-deliveries.ts"

const planFor = (id: string): Plan => ({
  endpoints: [{ id, generation: "g", revision: 1, deadline: now }],
  ...{ part: 0, last: true, skipped: [] }
})
const plan = planFor("hook")

interface World {
  /** Whether this worker owns the partition, each time that it is asked; the last answer stays. */
  readonly holds: ReadonlyArray<boolean>
  readonly isOpen: boolean
  readonly mayAttempt: boolean
  readonly isKnown: boolean
}

/** A plan of the event that no fact holds yet, and what it is told. */
const makePlan = (changes: Partial<UncommittedPlan> = {}) => {
  const told: Array<string> = []
  const uncommitted: UncommittedPlan = {
    ...{ id: "plan", safeRepublishMs: 60_000, piggyback: () => plan },
    ...{ isCommitted: false, isUnsure: false, committed: Effect.succeed(1) },
    adoptExisting: (seq) => void told.push(`adopt ${seq}`),
    confirmOwn: () => void told.push("own"),
    ...changes
  }
  return { told, uncommitted }
}

const makeSource = (changes: Partial<World> = {}) => {
  const world = { ...{ holds: [true], isOpen: true, mayAttempt: true, isKnown: true }, ...changes }
  const answers = [...world.holds]
  const holds = () => (answers.length > 1 ? answers.shift() : answers[0]) === true
  const stillOwner = Effect.sync(holds)
  const asOwner = Effect.flatMap(stillOwner, (isOwner) =>
    isOwner ? Effect.void : Effect.interrupt
  )
  const fence = { holds, stillOwner, asOwner }
  const broker = new MemoryBroker()
  const { facts } = broker.history
  const memory = makeMemory()
  let ids = 0
  const context: TaskContext = {
    sender: { transport: { start: () => assert.fail() }, clock: fixedClock, answers: () => "none" },
    worker: "w1",
    ...{ inFlight: {} as TaskContext["inFlight"], logsDeliveries: false },
    successes: new SuccessLog(facts, fence, memory.settled),
    ...{ reached: () => undefined, answered: () => undefined, freed: () => undefined }
  }
  const source = new EventSource(
    {
      ...{ memory, context, fence, nextId: () => `id${ids++}` },
      settlement: { isOpen: world.isOpen },
      mayAttempt: () => world.mayAttempt
    },
    directoryOf({ liveNow: () => (world.isKnown ? live : undefined) }),
    facts
  )
  return { broker, history: broker.history, memory, source }
}

/** A delivery that is only in its event, and how it ended. */
const makeHandle = (uncommitted?: UncommittedPlan, changes: Partial<Delivery> = {}) => {
  const ends: Array<DirectEnd> = []
  let begun = 0
  const handle = new DirectHandle("EVENTS", {
    ...{ delivery: deliveryOf(changes), key, body: new Uint8Array(), uncommitted },
    begun: () => void begun++,
    ended: (end) => void ends.push(end)
  })
  return { handle, ends, begun: () => begun }
}

const sent = outcomeOf("delivered")

/** Stores a success as `SuccessLog.record` does: by one append, or else by the other way. */
const storeSuccess = Effect.fnUntraced(function* (
  { broker, history, source }: ReturnType<typeof makeSource>,
  handle: DirectHandle
) {
  const { fact, id, isSpecial, otherwise } = source.successOf(handle, untried, sent)
  if (isSpecial !== true) {
    const { duplicate, seq } = history.store(fact, id)
    if (!duplicate || otherwise === undefined) return { fact, seq }
  }
  return yield* broker.run(otherwise?.() ?? Effect.die("no other way"))
})

const failedOf = (handle: DirectHandle, verdict: "retry" | "fail") =>
  judgeFailure(handle, untried, outcomeOf(verdict), live, "w1")

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

describe("a delivery that is only in its event", () => {
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

  it("is left to the queue at its deadline, and where it was not begun", () => {
    const { source } = makeSource()
    const late = makeHandle(undefined, { deadline: now })
    assert.isUndefined(source.begin(late.handle))
    const inLine = makeHandle()
    source.defer(key, inLine.handle)
    source.giveBack(key, inLine.handle)
    assert.deepStrictEqual(inLine.ends, [{ _tag: "Untried" }, { _tag: "Untried" }])
  })

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

describe("the success of a direct delivery", () => {
  it("is a fact of its own where its plan is stored", () => {
    const { source } = makeSource()
    const committed = makePlan({ isCommitted: true, piggyback: () => undefined })
    for (const uncommitted of [undefined, committed.uncommitted]) {
      const success = source.successOf(makeHandle(uncommitted).handle, untried, sent)
      assert.deepStrictEqual([success.id.slice(0, 2), success.fact.plan], ["id", undefined])
      assert.isUndefined(success.otherwise)
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
    })
  )

  it.effect("is not sent again with its plan once the history may have forgotten the id", () =>
    Effect.gen(function* () {
      const { broker, history, source } = makeSource()
      const { uncommitted } = makePlan({ safeRepublishMs: 0 })
      const success = source.successOf(makeHandle(uncommitted).handle, untried, sent)
      const { fact } = yield* broker.run(success.otherwise?.() ?? Effect.die("no other way"))
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
      assert.deepStrictEqual(made.history.stored.map(idOf), ["id0"])
    })
  )

  it.effect("is late without its plan where the owner changed before the append is repeated", () =>
    Effect.gen(function* () {
      const { broker, history, source } = makeSource({ holds: [true, false] })
      const { uncommitted } = makePlan()
      const success = source.successOf(makeHandle(uncommitted).handle, untried, sent)
      assert.strictEqual(success.fact.plan, plan)
      const { fact } = yield* broker.run(success.otherwise?.() ?? Effect.die("no other way"))
      assert.deepStrictEqual([fact.kind, fact.plan], ["delivered-late", undefined])
      assert.deepStrictEqual(history.stored.map(idOf), ["id0"])
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
      assert.deepStrictEqual(ends, [{ _tag: "Failed", progress: progress ?? untried }])
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

  it.effect("is left to the new owner by a former one: nothing is recorded", () =>
    Effect.gen(function* () {
      const made = makeSource({ holds: [false] })
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
