import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { logTransitions, makeGate } from "../../src/broker/gate.ts"
import type { PubAck } from "../../src/broker/publication.ts"
import { PublishError } from "../../src/broker/publication.ts"
import { useTimers } from "../../src/time/timers.ts"
import { makeLog } from "../kit/log.ts"
import { clockEvents, movedTime, virtualTimers } from "../kit/moved-time.ts"

const stored: PubAck = { stream: "S", seq: 1, duplicate: false }
const full = new PublishError({
  subject: "s",
  reason: "rejected",
  code: 10077,
  detail: "it is full"
})

const silence = new PublishError({ subject: "s", reason: "timeout", code: 0, detail: "no answer" })

/** A broker that stores or fails as it is told, and counts how often it was asked. */
const makeBroker = () => {
  const state = { refuses: false, isSilent: false, asked: 0 }
  const publish = Effect.suspend((): Effect.Effect<PubAck, PublishError> => {
    state.asked++
    if (state.isSilent) return Effect.fail(silence)
    return state.refuses ? Effect.fail(full) : Effect.succeed(stored)
  })
  return { state, publish }
}

const closed = "it takes nothing"
const opened = "it takes everything again"

const setUp = () => {
  const log = makeLog()
  const texts = () => log.lines.map(({ text }) => text)
  return { ...makeBroker(), gate: makeGate(closed, opened), log, texts }
}

const forkAll = (count: number, work: Effect.Effect<unknown, unknown>) =>
  Effect.forEach(Array.from({ length: count }), () =>
    Effect.forkChild(work, { startImmediately: true })
  )

describe("a gate", () => {
  it.effect("is open while everything is stored, and says nothing", () => {
    const { gate, log, publish, state, texts } = setUp()
    return Effect.gen(function* () {
      assert.deepStrictEqual(yield* gate.untilStored(publish), stored)
      yield* gate.ready
      assert.isTrue(gate.isOpen())
      assert.strictEqual(state.asked, 1)
      assert.deepStrictEqual(texts(), [])
    }).pipe(Effect.provide(log.layer))
  })

  it.effect("closes at a refusal and opens when all is stored; says each once", () => {
    const { gate, log, publish, state, texts } = setUp()
    return Effect.gen(function* () {
      state.refuses = true
      const fibers = yield* forkAll(20, gate.untilStored(publish))
      const waiter = yield* Effect.forkChild(gate.ready, { startImmediately: true })
      assert.isFalse(gate.isOpen())
      yield* TestClock.adjust("10 seconds")
      assert.isAbove(state.asked, 100)
      assert.isFalse(gate.isOpen())
      assert.isUndefined(waiter.pollUnsafe())
      assert.deepStrictEqual(texts(), [closed])
      state.refuses = false
      yield* TestClock.adjust("1 second")
      yield* Fiber.joinAll(fibers)
      yield* Fiber.join(waiter)
      assert.isTrue(gate.isOpen())
      assert.deepStrictEqual(texts(), [closed, opened])
    }).pipe(Effect.provide(log.layer))
  })

  it.effect("may close and open again", () => {
    const { gate, log, publish, state, texts } = setUp()
    return Effect.gen(function* () {
      for (let round = 0; round < 2; round++) {
        state.refuses = true
        const fibers = yield* forkAll(2, gate.untilStored(publish))
        assert.isFalse(gate.isOpen())
        state.refuses = false
        yield* TestClock.adjust("1 second")
        yield* Fiber.joinAll(fibers)
        assert.isTrue(gate.isOpen())
      }
      assert.deepStrictEqual(texts(), [closed, opened, closed, opened])
    }).pipe(Effect.provide(log.layer))
  })

  it.effect(
    "is not held closed by one who has stopped waiting, and does not call that a success",
    () => {
      const { gate, log, publish, state, texts } = setUp()
      return Effect.gen(function* () {
        state.refuses = true
        const fibers = yield* forkAll(2, gate.untilStored(publish))
        yield* Fiber.interruptAll(fibers)
        assert.isTrue(gate.isOpen())
        yield* gate.ready
        assert.deepStrictEqual(texts(), [closed])
        const again = yield* forkAll(1, gate.untilStored(publish))
        assert.isFalse(gate.isOpen())
        assert.deepStrictEqual(texts(), [closed])
        state.refuses = false
        yield* TestClock.adjust("1 second")
        yield* Fiber.joinAll(again)
        assert.deepStrictEqual(texts(), [closed, opened])
      }).pipe(Effect.provide(log.layer))
    }
  )

  it.effect("gives up after a limit where there is one", () => {
    const { gate, log, publish, state, texts } = setUp()
    return Effect.gen(function* () {
      state.refuses = true
      const [fiber] = yield* forkAll(1, Effect.flip(gate.within(0, publish)))
      yield* TestClock.adjust("1 second")
      assert.isDefined(fiber)
      assert.strictEqual(yield* Fiber.join(fiber), full)
      assert.isTrue(gate.isOpen())
      state.refuses = false
      yield* gate.within(0, publish)
      assert.deepStrictEqual(texts(), [closed, opened])
    }).pipe(Effect.provide(log.layer))
  })

  it.effect("stays open where a refusal concerns one message", () => {
    const { gate, log, publish, state, texts } = setUp()
    return Effect.gen(function* () {
      state.refuses = true
      assert.strictEqual(yield* Effect.flip(gate.unlessRefused(60_000, publish)), full)
      assert.strictEqual(state.asked, 1)
      assert.isTrue(gate.isOpen())
      assert.deepStrictEqual(texts(), [])
    }).pipe(Effect.provide(log.layer))
  })

  it.effect("closes for such a message while the broker is silent, and until it refuses", () => {
    const { gate, log, publish, state, texts } = setUp()
    return Effect.gen(function* () {
      state.isSilent = true
      const refused = yield* forkAll(1, Effect.flip(gate.unlessRefused(60_000, publish)))
      yield* TestClock.adjust("10 seconds")
      assert.isFalse(gate.isOpen())
      state.isSilent = false
      state.refuses = true
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.joinAll(refused), [full])
      assert.isTrue(gate.isOpen())
      state.refuses = false
      yield* gate.unlessRefused(60_000, publish)
      assert.deepStrictEqual(texts(), [closed, opened])
    }).pipe(Effect.provide(log.layer))
  })
})

describe("a gate with a limit, whose machine's clocks move between two tries", () => {
  const rows = [
    ["forward", false],
    ["back", true],
    ["suspended", false]
  ] as const
  for (const [index, [what, isTriedAgain]] of rows.entries())
    it.effect(`tries ${isTriedAgain ? "" : "nothing "}again: ${what}`, () => {
      const { gate, log, publish, state } = setUp()
      const [, happens] = clockEvents[index] ?? assert.fail()
      return Effect.gen(function* () {
        const { runs, timers } = virtualTimers()
        const time = movedTime(timers)
        const putBack = useTimers(time.timers)
        yield* Effect.addFinalizer(() => Effect.sync(putBack))
        state.isSilent = true
        yield* forkAll(1, Effect.ignore(gate.within(60_000, publish)))
        assert.strictEqual(state.asked, 1)
        runs(500)
        happens(time)
        runs(1)
        yield* TestClock.adjust(500)
        assert.strictEqual(state.asked, isTriedAgain ? 2 : 1)
        // No later than by its limit of the time that passes.
        runs(60_000)
        yield* TestClock.adjust(500)
        assert.strictEqual(state.asked, isTriedAgain ? 2 : 1)
        assert.isTrue(gate.isOpen())
      }).pipe(Effect.provide(log.layer))
    })
})

describe("what is said once", () => {
  it.effect("is said at the first failure and at the first success after it", () => {
    const { log, publish, state, texts } = setUp()
    const say = logTransitions(closed, opened)
    return Effect.gen(function* () {
      yield* say(publish)
      state.refuses = true
      for (let time = 0; time < 3; time++)
        assert.strictEqual(yield* Effect.flip(say(publish)), full)
      state.refuses = false
      for (let time = 0; time < 3; time++) yield* say(publish)
      assert.deepStrictEqual(texts(), [closed, opened])
    }).pipe(Effect.provide(log.layer))
  })
})
