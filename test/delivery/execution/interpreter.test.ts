import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect } from "effect"
import { BrokerError } from "../../../src/broker/broker-error.ts"
import type { AckHandle } from "../../../src/delivery/execution/ack-handle.ts"
import type { Recalled } from "../../../src/delivery/execution/decisions.ts"
import type { InterpreterOptions } from "../../../src/delivery/execution/interpreter.ts"
import { Interpreter } from "../../../src/delivery/execution/interpreter.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import type { Decision } from "../../../src/domain/retry-record.ts"
import type { Standing } from "../../../src/endpoints/directory.ts"
import { MemoryBroker } from "../in-memory.ts"
import {
  deliveryOf,
  directoryOf,
  fixedClock,
  keptBodies,
  live,
  makeMemory,
  NotedHandle,
  now,
  placeOf,
  recordOf
} from "../made-deliveries.ts"

interface World {
  /** What is stored of the message. */
  readonly recalled: Recalled
  readonly standing: Standing | Effect.Effect<Standing, BrokerError>
  /** Whether this worker has the live endpoint in memory. */
  readonly isKnown: boolean
  readonly isOpen: boolean
  readonly holds: () => boolean
  readonly isClockTrusted: boolean
  readonly settlement: Partial<InterpreterOptions["settlement"]>
  readonly leftBodies: InterpreterOptions["leftBodies"]
}

const usual: World = {
  recalled: undefined,
  standing: { _tag: "Live", endpoint: live },
  ...{
    isKnown: true,
    isOpen: true,
    holds: () => true,
    isClockTrusted: true,
    settlement: {},
    leftBodies: keptBodies
  }
}

/** An interpreter in such a world, and the steps by which it carries decisions out. */
const makeInterpreter = (changes: Partial<World> = {}) => {
  const world = { ...usual, ...changes }
  const steps: Array<string> = []
  const noted = (step: string) => Effect.sync(() => void steps.push(step))
  let { isOpen } = world
  const { standing } = world
  let { recalled } = world
  const { poisonGuard } = makeMemory()
  const find = () => (world.isKnown ? live : undefined)
  const directory = directoryOf({
    ...{ find, liveNow: find },
    standing: () => (Effect.isEffect(standing) ? standing : Effect.succeed(standing))
  })
  const interpreter = new Interpreter(
    {
      memory: { poisonGuard },
      clock: fixedClock,
      leftBodies: world.leftBodies,
      mayAttempt: world.holds,
      isClockTrusted: () => world.isClockTrusted,
      settlement: {
        get isOpen() {
          return isOpen
        },
        ready: Effect.sync(() => {
          steps.push("ready")
          isOpen = true
        }),
        decisions: {
          has: () => recalled !== undefined,
          recall: () => Effect.succeed(recalled)
        },
        recordOutcome: (_, waiting) =>
          Effect.andThen(
            noted("record"),
            Effect.sync(() => {
              recalled = { ...waiting, isOutcomeRecorded: true }
            })
          ),
        release: () => noted("release"),
        resume: (_, { record }) => noted(`resume ${record.decision._tag}`),
        postpone: (_handle, { attempts }, at) => noted(`postpone ${attempts} until ${at - now}`),
        end: (_handle, { attempts }, reason) => noted(`end ${attempts} ${reason}`),
        mark: (_handle, progress, times) =>
          Effect.as(noted(`mark ${times}`), {
            record: recordOf({ _tag: "Trying", times }, { progress }),
            ...{ revision: 1, storedAt: now, isOutcomeRecorded: true }
          }),
        moved: (_, store) => Effect.andThen(Effect.ignore(store), noted("moved")),
        ...world.settlement
      }
    },
    directory
  )
  return { interpreter, poisonGuard, steps }
}

const storedAs = (decision: Decision): Recalled => ({
  record: recordOf(decision),
  ...{ revision: 1, storedAt: now, isOutcomeRecorded: true }
})

const run = <A, E, R>(work: Effect.Effect<A, E, R>) => new MemoryBroker().run(work)

const counted = () => true

/** Attempts a delivery. Returns the attempt's progress, the steps, and the message's answers. */
const attempt = Effect.fnUntraced(function* (
  changes: Partial<World> = {},
  delivery: Partial<Delivery> = {},
  deliveryCount = 1
) {
  const { interpreter, poisonGuard, steps } = makeInterpreter(changes)
  const handle = new NotedHandle(deliveryOf(delivery), placeOf(3), deliveryCount)
  const made = yield* run(interpreter.attempt(handle, counted))
  return { attempts: made?.progress.attempts, steps, answers: handle.answers, poisonGuard }
})

/** What follows where no attempt is made. */
const nothing = { attempts: undefined, steps: [], answers: [] }

const assertIs = (
  { poisonGuard: _, ...result }: Effect.Success<ReturnType<typeof attempt>>,
  expected: Partial<typeof result>
) => assert.deepStrictEqual(result, { ...nothing, ...expected })

describe("a delivery whose turn it is", () => {
  it.effect("is attempted", () =>
    Effect.gen(function* () {
      assertIs(yield* attempt(), { attempts: 0 })
    })
  )

  it.effect("is attempted with the progress that was stored", () =>
    Effect.gen(function* () {
      const recalled = storedAs({ _tag: "Nak", at: now })
      assertIs(yield* attempt({ recalled }), { attempts: 1 })
    })
  )

  it.effect("is not attempted where the partition was lost while it was marked", () =>
    Effect.gen(function* () {
      let holds = true
      const { interpreter } = makeInterpreter({
        holds: () => holds,
        settlement: {
          mark: (_handle, progress, times) =>
            Effect.sync(() => {
              holds = false
              const record = recordOf({ _tag: "Trying", times }, { progress })
              return { record, revision: 1, storedAt: now, isOutcomeRecorded: true }
            })
        }
      })
      const handle = new NotedHandle(deliveryOf({}), placeOf(3), 100)
      assert.isUndefined(yield* run(interpreter.attempt(handle, counted)))
      assert.deepStrictEqual(handle.answers, [1_000])
    })
  )

  it.effect(
    "comes back where its endpoint was enabled since its turn came, without being counted",
    () =>
      Effect.gen(function* () {
        const { interpreter } = makeInterpreter()
        const handle = new NotedHandle()
        assert.isUndefined(yield* run(interpreter.attempt(handle, () => false)))
        assert.deepStrictEqual(handle.answers, [250])
      })
  )

  it.effect("gets its body from its event where its message does not hold it", () =>
    Effect.gen(function* () {
      const body = new Uint8Array([1, 2, 3])
      const handle = new NotedHandle(deliveryOf({ leftBytes: 3 }))
      const { interpreter } = makeInterpreter({ leftBodies: { read: () => Effect.succeed(body) } })
      assert.isUndefined(interpreter.readyFor(handle))
      const attempt = yield* run(interpreter.attempt(handle, counted))
      assert.strictEqual(attempt?.body, body)
    })
  )

  it.effect("ends where its message does not hold its body and its event is gone", () =>
    Effect.gen(function* () {
      const leftBodies = { read: () => Effect.succeed("gone" as const) }
      const ended = yield* attempt({ leftBodies }, { leftBytes: 3 })
      assertIs(ended, { steps: ["end 0 event-gone"] })
    })
  )

  it.effect("is left alone where its body took so long that somebody else owns it", () =>
    Effect.gen(function* () {
      let holds = true
      const read = () =>
        Effect.sync(() => {
          holds = false
          return new Uint8Array(3)
        })
      const { interpreter } = makeInterpreter({ leftBodies: { read }, holds: () => holds })
      const handle = new NotedHandle(deliveryOf({ leftBytes: 3 }))
      assert.isUndefined(yield* run(interpreter.attempt(handle, counted)))
      assert.deepStrictEqual(handle.answers, [1_000])
    })
  )

  it.effect("is marked first where it may be poison", () =>
    Effect.gen(function* () {
      assertIs(yield* attempt({}, {}, 100), { attempts: 0, steps: ["mark 1"] })
    })
  )

  it.effect("waits until the stores are open", () =>
    Effect.gen(function* () {
      assertIs(yield* attempt({ isOpen: false }), { attempts: 0, steps: ["ready"] })
    })
  )

  it.effect("is released again where it was released before", () =>
    Effect.gen(function* () {
      assertIs(yield* attempt({ recalled: "released" }), { steps: ["release"] })
    })
  )

  it.effect("continues with the decision that was stored", () =>
    Effect.gen(function* () {
      const recalled = storedAs({ _tag: "Schedule", at: now + 1 })
      assertIs(yield* attempt({ recalled }), { steps: ["resume Schedule"] })
    })
  )

  it.effect("ends with its endpoint", () =>
    Effect.gen(function* () {
      const removed = yield* attempt({ standing: { _tag: "Removed" } })
      assertIs(removed, { steps: ["end 0 endpoint-removed"] })
      const disabled = yield* attempt({ standing: { _tag: "Disabled", endpoint: live } })
      assertIs(disabled, { steps: ["end 0 endpoint-disabled"] })
    })
  )

  it.effect("waits by a decision until the time that a direct attempt has set", () =>
    Effect.gen(function* () {
      const progress = { attempts: 1, nextAttemptAt: now + 5_000 }
      assertIs(yield* attempt({}, { progress }), { steps: ["postpone 1 until 5000"] })
    })
  )

  it.effect("is NAKed for a moment, which is no sign of poison", () =>
    Effect.gen(function* () {
      const progress = { attempts: 1, nextAttemptAt: now + 300 }
      const result = yield* attempt({}, { progress })
      assertIs(result, { answers: [300] })
      assert.isTrue(result.poisonGuard.isCleared(3))
    })
  )

  it.effect("is left to the next owner, which is no sign of poison", () =>
    Effect.gen(function* () {
      const result = yield* attempt({ holds: () => false })
      assertIs(result, { answers: [1_000] })
      assert.isTrue(result.poisonGuard.isCleared(3))
    })
  )

  it.effect("comes back later where this worker's clock may be wrong", () =>
    Effect.gen(function* () {
      assertIs(yield* attempt({ isClockTrusted: false }), { answers: [1_000] })
    })
  )

  it.effect("does not end for a defect by a clock that may be wrong", () =>
    Effect.gen(function* () {
      const after = Effect.fnUntraced(function* (isClockTrusted: boolean) {
        const { interpreter, steps } = makeInterpreter({ isClockTrusted })
        const handle = new NotedHandle(deliveryOf({ deadline: now - 1 }))
        yield* run(interpreter.afterDefect(handle, Cause.die("oops")))
        return { steps, isNaked: handle.answers.length === 1 }
      })
      assert.deepStrictEqual(yield* after(false), { steps: [], isNaked: true })
      assert.deepStrictEqual(yield* after(true), { steps: ["end 0 defect"], isNaked: false })
    })
  )

  it.effect("comes back soon where its endpoint is new to this worker", () =>
    Effect.gen(function* () {
      const result = yield* attempt({ isKnown: false })
      assertIs(result, { answers: [250] })
      assert.isTrue(result.poisonGuard.isCleared(3))
    })
  )

  it.effect("is paused once where an attempt was not survived", () =>
    Effect.gen(function* () {
      const result = yield* attempt({ recalled: storedAs({ _tag: "Trying", times: 1 }) })
      assertIs(result, { answers: [1_000] })
      assert.isTrue(result.poisonGuard.wasPaused(3))
    })
  )
})

describe("memory alone", () => {
  const isReady = (changes: Partial<World>, handle: AckHandle = new NotedHandle()) =>
    makeInterpreter(changes).interpreter.readyFor(handle) !== undefined
  const early = { attempts: 1, nextAttemptAt: now + 2 }

  it("shows that an ordinary delivery may be attempted", () => {
    assert.isTrue(isReady({}))
    assert.isTrue(isReady({}, new NotedHandle(deliveryOf({ deadline: now + 1 }))))
  })

  it("shows it for no other", () => {
    assert.isFalse(isReady({ recalled: storedAs({ _tag: "Nak", at: now }) }))
    assert.isFalse(isReady({ isOpen: false }))
    assert.isFalse(isReady({ holds: () => false }))
    assert.isFalse(isReady({ isKnown: false }))
    assert.isFalse(isReady({}, new NotedHandle(deliveryOf({ deadline: now }))))
    assert.isFalse(isReady({}, new NotedHandle(deliveryOf({ progress: early }))))
    const final = { attempts: 1, ends: "permanent" as const }
    assert.isFalse(isReady({}, new NotedHandle(deliveryOf({ progress: final }))))
    assert.isFalse(isReady({}, new NotedHandle(deliveryOf(), placeOf(3), 3)))
  })
})

describe("a delivery that cannot wait in memory", () => {
  const store = () => Effect.succeed({ stream: "BACKLOG", seq: 1, duplicate: false })

  it.effect("is stored elsewhere with its progress", () =>
    Effect.gen(function* () {
      const recalled = storedAs({ _tag: "Nak", at: now })
      const { interpreter, steps } = makeInterpreter({ recalled })
      const move = (_: AckHandle, { attempts }: { readonly attempts: number }) => {
        steps.push(`store ${attempts}`)
        return store()
      }
      assert.isUndefined(yield* run(interpreter.relocate(new NotedHandle(), move)))
      assert.deepStrictEqual(steps, ["store 1", "moved"])
    })
  )

  it.effect("goes on with its decision instead", () =>
    Effect.gen(function* () {
      const recalled = storedAs({ _tag: "Dead", reason: "attempts" })
      const { interpreter, steps } = makeInterpreter({ recalled })
      yield* run(interpreter.relocate(new NotedHandle(), store))
      assert.deepStrictEqual(steps, ["resume Dead"])
    })
  )

  it.effect("is dead-lettered where it may wait nowhere", () =>
    Effect.gen(function* () {
      const { interpreter, steps } = makeInterpreter()
      yield* run(interpreter.reject(new NotedHandle(), "backlog-full"))
      assert.deepStrictEqual(steps, ["end 0 backlog-full"])
    })
  )
})

describe("an end without an attempt", () => {
  it.effect("keeps the reason of a final attempt", () =>
    Effect.gen(function* () {
      const { interpreter, steps } = makeInterpreter()
      const final = deliveryOf({ progress: { attempts: 1, ends: "permanent" } })
      yield* run(interpreter.end(new NotedHandle(final), "deadline"))
      assert.deepStrictEqual(steps, ["end 1 permanent"])
    })
  )

  it.effect("releases what was released before", () =>
    Effect.gen(function* () {
      const { interpreter, steps } = makeInterpreter({ recalled: "released" })
      yield* run(interpreter.end(new NotedHandle(), "deadline"))
      assert.deepStrictEqual(steps, ["release"])
    })
  )
})

describe("a defect", () => {
  const broken = { recalled: undefined, standing: Effect.die(new Error("broken")) }
  const silent = Effect.fail(new BrokerError({ operation: "read", cause: new Error("silent") }))

  it.effect("is none where the broker does not answer: the message comes back soon", () =>
    Effect.gen(function* () {
      const result = yield* attempt({ standing: silent })
      assertIs(result, { answers: [1_000] })
      assert.isFalse(result.poisonGuard.isCleared(3))
    })
  )

  it.effect("brings the message back after pauses that grow", () =>
    Effect.gen(function* () {
      const { interpreter } = makeInterpreter(broken)
      const handle = new NotedHandle()
      for (let n = 0; n < 3; n++) yield* run(interpreter.attempt(handle, counted))
      assert.deepStrictEqual(handle.answers, [1_000, 2_000, 4_000])
    })
  )

  it.effect("ends a delivery whose deadline has passed", () =>
    Effect.gen(function* () {
      assertIs(yield* attempt(broken, { deadline: now }), { steps: ["end 0 defect"] })
    })
  )

  it.effect("brings it back where it cannot even be ended", () =>
    Effect.gen(function* () {
      const settlement = { end: () => Effect.die("broken too") }
      const result = yield* attempt({ ...broken, settlement }, { deadline: now })
      assertIs(result, { answers: [1_000] })
    })
  )

  it.effect("of another part is handled alike", () =>
    Effect.gen(function* () {
      const { interpreter } = makeInterpreter()
      const handle = new NotedHandle()
      yield* run(interpreter.afterDefect(handle, Cause.die("broken")))
      assert.deepStrictEqual(handle.answers, [1_000])
    })
  )
})

describe("a delivery that is wanted now, whose last attempt may not be recorded", () => {
  const unrecorded: Recalled = {
    record: recordOf({ _tag: "Nak", at: now + 60_000 }),
    ...{ revision: 1, storedAt: now, isOutcomeRecorded: false }
  }
  const hurry = Effect.fnUntraced(function* (settlement: World["settlement"] = {}) {
    const { interpreter, steps } = makeInterpreter({ recalled: unrecorded, settlement })
    const handle = new NotedHandle(deliveryOf({}), placeOf(3), 1)
    yield* run(interpreter.hurry(handle, () => Effect.void))
    return steps
  })

  it.effect("is recorded, then moves", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* hurry(), ["record", "moved"])
    })
  )

  it.effect("stays where the history does not take it", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* hurry({ recordOutcome: () => Effect.void }), [])
    })
  )
})
