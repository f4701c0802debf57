import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { Broker } from "../../../src/broker/broker.ts"
import { CallbackWork, makeInFlight } from "../../../src/broker/in-flight.ts"
import { deliveredFact } from "../../../src/delivery/execution/delivery-fact.ts"
import type { SuccessRecord } from "../../../src/delivery/execution/success-log.ts"
import { SuccessLog } from "../../../src/delivery/execution/success-log.ts"
import {
  CompletedDeliveries,
  HistoryPosition
} from "../../../src/delivery/recovery/completed-deliveries.ts"
import { untried } from "../../../src/domain/delivery.ts"
import type { Fact } from "../../../src/domain/fact.ts"
import { MemoryBroker } from "../in-memory.ts"
import { idle, NotedHandle, outcomeOf } from "../made-deliveries.ts"

const fact = deliveredFact(new NotedHandle(), untried, outcomeOf("delivered"), "w1")

/** A delivery whose success is recorded; its release takes a fiber where `release` is given. */
class Work extends CallbackWork<Broker> {
  readonly steps: Array<string> = []
  readonly release: Effect.Effect<void>

  constructor(release: Effect.Effect<void> = Effect.void) {
    super()
    this.release = release
  }

  recorded({ kind }: Fact): Effect.Effect<void> {
    this.steps.push(`recorded ${kind}`)
    return this.release
  }

  protected override ended(finished: boolean): void {
    this.steps.push(`ended ${finished}`)
  }

  protected override afterDefect(defect: unknown): Effect.Effect<void> {
    return Effect.sync(() => this.steps.push(`defect ${defect}`))
  }
}

/** A log of a partition whose owner answers as told. */
const makeLog = Effect.fnUntraced(function* (stillOwner: () => boolean = () => true) {
  const broker = new MemoryBroker()
  const { history } = broker
  const inFlight = yield* broker.run(makeInFlight<Broker>())
  const position = new HistoryPosition(0)
  const completed = new CompletedDeliveries(position)
  const fence = { holds: stillOwner, stillOwner: Effect.sync(stillOwner) }
  const log = new SuccessLog(history.facts, fence, completed)
  return {
    ...{ broker, completed, history, log, position },
    /** Records a success, and returns the steps that followed once all work has ended. */
    record: Effect.fnUntraced(function* (
      success: Partial<SuccessRecord> = {},
      work: Work = new Work()
    ) {
      inFlight.add(work)
      log.record(work, { fact, id: "1", ...success })
      yield* inFlight.none
      return work.steps
    }),
    inFlight
  }
})

/** True while a fact is about to be appended, or its delivery is not released. */
const isPending = (completed: CompletedDeliveries, position: HistoryPosition) => {
  position.stored(1_000)
  const marks = Array.from({ length: 4 }, () => completed.rotate())
  return marks.at(-1) !== 1_000
}

describe("a success", () => {
  it.live("is appended by its owner, then released, in the same turn", () =>
    Effect.gen(function* () {
      const { history, inFlight, log } = yield* makeLog()
      const work = new Work()
      inFlight.add(work)
      log.record(work, { fact, id: "1" })
      assert.deepStrictEqual(work.steps, ["recorded delivered", "ended true"])
      assert.deepStrictEqual(history.stored, [{ id: "1", fact }])
    })
  )

  it.live("is late where nobody owns the partition any more", () =>
    Effect.gen(function* () {
      const { history, record } = yield* makeLog(() => false)
      assert.deepStrictEqual(yield* record(), ["recorded delivered-late", "ended true"])
      assert.deepStrictEqual(history.kinds, ["delivered-late"])
    })
  )

  it.live("is late where the owner changed while its first append was refused", () =>
    Effect.gen(function* () {
      const answers = [true, false]
      const { history, record } = yield* makeLog(() => answers.shift() ?? false)
      history.answer = "refused"
      assert.deepStrictEqual(yield* record(), ["recorded delivered-late", "ended true"])
      assert.deepStrictEqual(history.kinds, ["delivered-late"])
      // The first try may be on its way still, and must not meet the late one.
      assert.strictEqual(history.stored[0]?.id, "1.late")
    })
  )

  it.live("is appended again where the first append was refused", () =>
    Effect.gen(function* () {
      const { history, record } = yield* makeLog()
      history.answer = "refused"
      assert.deepStrictEqual(yield* record(), ["recorded delivered", "ended true"])
      assert.deepStrictEqual(history.kinds, ["delivered"])
    })
  )

  it.live("counts once where only its acknowledgement was lost", () =>
    Effect.gen(function* () {
      const { history, record } = yield* makeLog()
      history.answer = "lost"
      assert.deepStrictEqual(yield* record(), ["recorded delivered", "ended true"])
      assert.deepStrictEqual(history.kinds, ["delivered"])
    })
  )

  it.live("is told as late beside itself where it was stored after the owner had changed", () =>
    Effect.gen(function* () {
      const answers = [true, false]
      const { history, record } = yield* makeLog(() => answers.shift() ?? false)
      history.answer = "lost"
      assert.deepStrictEqual(yield* record(), ["recorded delivered-late", "ended true"])
      assert.deepStrictEqual(
        history.stored.map(({ fact, id }) => [id, fact.kind]),
        [
          ["1", "delivered"],
          ["1.late", "delivered-late"]
        ]
      )
    })
  )

  it.live("is told as late, too, where its acknowledgement came after the owner had changed", () =>
    Effect.gen(function* () {
      const answers = [true, false]
      const { history, record } = yield* makeLog(() => answers.shift() ?? false)
      assert.deepStrictEqual(yield* record(), ["recorded delivered-late", "ended true"])
      assert.deepStrictEqual(
        history.stored.map(({ fact, id }) => [id, fact.kind]),
        [
          ["1", "delivered"],
          ["1.late", "delivered-late"]
        ]
      )
    })
  )

  it.live("is told as late, too, where that happened to a later try", () =>
    Effect.gen(function* () {
      const answers = [true, true, false]
      const { history, record } = yield* makeLog(() => answers.shift() ?? false)
      history.answer = "refused"
      assert.deepStrictEqual(yield* record(), ["recorded delivered-late", "ended true"])
      assert.deepStrictEqual(history.kinds, ["delivered", "delivered-late"])
    })
  )

  it.live("is released in a fiber where its release asks the broker", () =>
    Effect.gen(function* () {
      const { record } = yield* makeLog()
      const steps: Array<string> = []
      const work = new Work(Effect.sync(() => void steps.push("erased")))
      assert.deepStrictEqual(yield* record({}, work), ["recorded delivered", "ended true"])
      assert.deepStrictEqual(steps, ["erased"])
    })
  )
})

describe("a success with another way to store it", () => {
  const other = { fact: { ...fact, reason: "other" }, seq: 9 }

  it.live("does not need it where its id is new", () =>
    Effect.gen(function* () {
      const { history, record } = yield* makeLog()
      const fallback = () => Effect.die("not needed")
      assert.deepStrictEqual(yield* record({ fallback }), ["recorded delivered", "ended true"])
      assert.lengthOf(history.stored, 1)
    })
  )

  it.live("goes that way where the history holds its id already", () =>
    Effect.gen(function* () {
      const { history, record } = yield* makeLog()
      history.store({ ...fact, kind: "attempt-failed" }, "1")
      let asked = 0
      const fallback = () => Effect.sync(() => ({ ...other, seq: 9 + asked++ }))
      assert.deepStrictEqual(yield* record({ fallback }), ["recorded delivered", "ended true"])
      assert.strictEqual(asked, 1)
    })
  )

  it.live("is as good as new under a known id where there is no other way", () =>
    Effect.gen(function* () {
      const { history, record } = yield* makeLog()
      history.store(fact, "1")
      assert.deepStrictEqual(yield* record(), ["recorded delivered", "ended true"])
      assert.deepStrictEqual(history.kinds, ["delivered"])
    })
  )

  it.live("goes only that way where it is special", () =>
    Effect.gen(function* () {
      const { history, record } = yield* makeLog()
      const fallback = () => Effect.succeed(other)
      const steps = yield* record({ fallback, isFallbackOnly: true })
      assert.deepStrictEqual(steps, ["recorded delivered", "ended true"])
      assert.deepStrictEqual(history.stored, [])
    })
  )
})

describe("the watermark", () => {
  it.live("stays below a success until it is stored", () =>
    Effect.gen(function* () {
      const { completed, history, inFlight, log, position } = yield* makeLog()
      history.answer = "none yet"
      const work = new Work()
      inFlight.add(work)
      log.record(work, { fact, id: "1" })
      assert.isTrue(isPending(completed, position))
      assert.deepStrictEqual(work.steps, [])
    })
  )

  it.live("stays below it until its release has ended, and rises then", () =>
    Effect.gen(function* () {
      const { completed, inFlight, log, position } = yield* makeLog()
      const gate = yield* Deferred.make<void>()
      const special = { isFallbackOnly: true, fallback: () => Effect.succeed({ fact, seq: 1 }) }
      const work = new Work(Deferred.await(gate))
      inFlight.add(work)
      log.record(work, { fact, id: "1", ...special })
      yield* idle
      assert.isTrue(isPending(completed, position))
      yield* Deferred.succeed(gate, undefined)
      yield* inFlight.none
      assert.isFalse(isPending(completed, position))
    })
  )
})
