import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import { makeNames } from "../../src/domain/names.ts"
import { watchBypass } from "../../src/routing/bypass-watch.ts"
import { bypassWay, mainWay } from "../../src/routing/event-way.ts"
import { clock, useTimers } from "../../src/time/timers.ts"
import { idle } from "../delivery/made-deliveries.ts"
import { makeLog } from "../kit/log.ts"
import { movedTime, virtualTimers } from "../kit/moved-time.ts"

const names = makeNames()
const open = { v: 1, state: "open", tenants: ["calm"], consumer: "bypass-7-1", from: 100 }

/** What a worker knows of a bypass, and a broker that tells of it while it answers at all. */
const setUp = Effect.gen(function* () {
  const { runs, timers } = virtualTimers()
  const time = movedTime(timers)
  const state = {
    answers: true,
    /** How long an answer takes, ms. */
    takes: 0,
    /** What is asked is lost with its connection. */
    isCutOff: false,
    stored: open as object | undefined,
    /** Of the consumer: where it begins, and up to where it is acknowledged. */
    begins: 100,
    floor: 120
  }
  const listeners = new Set<() => void>()
  yield* Effect.acquireRelease(
    Effect.sync(() => useTimers(time.timers)),
    (putBack) => Effect.sync(putBack)
  )
  const answer = <A>(operation: string, value: () => A) =>
    Effect.suspend(() => {
      if (state.isCutOff) return Effect.never
      const told: Effect.Effect<A, BrokerError> = state.answers
        ? Effect.succeed(value())
        : Effect.fail(new BrokerError({ operation, cause: "no answer" }))
      return state.takes === 0 ? told : Effect.andThen(Effect.sleep(state.takes), told)
    })
  const broker = {
    names,
    onReconnect: (listener: () => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    readMessage: (operation: string) =>
      answer(operation, () =>
        state.stored === undefined
          ? null
          : { seq: 7, time: new Date(1_000), string: () => JSON.stringify(state.stored) }
      ),
    consumerInfo: (operation: string) =>
      answer(operation, () => ({
        config: {
          opt_start_seq: state.begins,
          filter_subjects: [names.subjects.eventsOf("calm"), names.subjects.alertEvent("calm", ">")]
        },
        ack_floor: { stream_seq: state.floor }
      }))
  } as unknown as Broker["Service"]
  const watch = yield* watchBypass.pipe(
    Effect.provideService(Broker, broker),
    Effect.provideService(Clock.Clock, clock)
  )
  yield* idle
  const passes = Effect.fnUntraced(function* (ms: number) {
    for (let passed = 0; passed < ms; passed += 250) {
      runs(Math.min(250, ms - passed))
      yield* idle
    }
  })
  const main = mainWay(names, 15_000, watch)
  const decide = (seq: number, tenant = "calm") => main.decide({ tenant, seq, at: 1_000 })
  const reconnect = () => {
    for (const listener of listeners) listener()
  }
  return { ...time, decide, passes, reconnect, runs, state, watch }
})

describe("what a worker knows of a bypass", () => {
  it.effect("is relied on for 7 s after it was read", () =>
    Effect.gen(function* () {
      const { decide, passes, state, watch } = yield* setUp
      yield* passes(60_000)
      assert.isTrue(watch.isKnown())
      assert.deepStrictEqual([decide(99), decide(100, "flood")], ["route", "route"])
      state.answers = false
      yield* passes(5_500)
      assert.isTrue(watch.isKnown())
      yield* passes(2_000)
      assert.isFalse(watch.isKnown())
      // A bypass may have been announced meanwhile, for any tenant.
      assert.deepStrictEqual([decide(99), decide(100, "flood")], ["undecided", "undecided"])
      state.answers = true
      yield* passes(2_000)
      assert.deepStrictEqual([decide(99), decide(100, "flood")], ["route", "route"])
    }).pipe(Effect.provide(makeLog().layer))
  )

  it.effect(
    "is always known where the broker takes seconds for an answer, as the last one tells",
    () =>
      Effect.gen(function* () {
        const { decide, passes, state, watch } = yield* setUp
        // A bypass that is open takes two questions.
        state.takes = 2_300
        for (let passed = 0; passed < 30_000; passed += 250) {
          yield* passes(250)
          assert.isTrue(watch.isKnown(), `after ${passed} ms`)
        }
        state.floor = 121
        yield* passes(6_500)
        assert.strictEqual(decide(121), "finished")
        // What was asked before is no longer believed once a later answer is there.
        state.floor = 110
        state.takes = 0
        yield* passes(500)
        for (let passed = 0; passed < 5_000; passed += 250) {
          assert.strictEqual(decide(121), "passes")
          yield* passes(250)
        }
      })
  )

  it.effect("is read at once after a reconnect, though what was asked before has no answer", () =>
    Effect.gen(function* () {
      const { passes, reconnect, state, watch } = yield* setUp
      state.isCutOff = true
      yield* passes(1_500)
      for (const _ of ["once", "and once more, while it is read"]) {
        reconnect()
        yield* passes(250)
        assert.isFalse(watch.isKnown())
      }
      state.isCutOff = false
      reconnect()
      yield* idle
      yield* passes(250)
      assert.isTrue(watch.isKnown())
      yield* passes(60_000)
      assert.isTrue(watch.isKnown())
    })
  )

  it.effect("is not relied on after the machine was suspended", () =>
    Effect.gen(function* () {
      const { passes, runs, suspend, watch } = yield* setUp
      assert.isTrue(watch.isKnown())
      suspend(600_000)
      runs(1)
      assert.isFalse(watch.isKnown())
      yield* passes(2_000)
      assert.isTrue(watch.isKnown())
    })
  )

  it.effect("lets go of what is routed there, and of nothing else", () =>
    Effect.gen(function* () {
      const { decide, passes, reconnect, state } = yield* setUp
      assert.deepStrictEqual([decide(120), decide(121)], ["finished", "passes"])
      state.floor = 121
      yield* passes(1_500)
      assert.strictEqual(decide(121), "finished")
      // A broker that came back may have lost the end of the events, and give sequences again.
      state.answers = false
      reconnect()
      assert.strictEqual(decide(121), "undecided")
      state.answers = true
      state.floor = 110
      yield* passes(1_500)
      assert.deepStrictEqual([decide(110), decide(121)], ["finished", "passes"])
      // Of a consumer that begins elsewhere, nothing follows.
      state.begins = 200
      state.floor = 300
      yield* passes(1_500)
      assert.strictEqual(decide(121), "passes")
    }).pipe(Effect.provide(makeLog().layer))
  )

  it.effect("tells that a bypass is gone that had not ended, and not that one ended", () =>
    Effect.gen(function* () {
      const { passes, state, watch } = yield* setUp
      let lost = 0
      const stop = watch.onLost(() => {
        lost++
      })
      state.stored = { ...open, state: "closing" }
      yield* passes(1_500)
      state.stored = { ...open, state: "none" }
      yield* passes(1_500)
      assert.strictEqual(lost, 0)
      state.stored = open
      yield* passes(1_500)
      state.stored = undefined
      yield* passes(1_500)
      assert.strictEqual(lost, 1)
      stop()
    })
  )

  it.effect("has the router of the bypass take its events alone", () =>
    Effect.gen(function* () {
      const { passes, state, watch } = yield* setUp
      const bypass = watch.bypass()
      assert.isDefined(bypass)
      if (bypass === undefined) return
      const way = bypassWay(bypass, 15_000, watch)
      const decide = (seq: number, at = 1_000) => way.decide({ tenant: "calm", seq, at })
      assert.deepStrictEqual([decide(99), decide(100)], ["finished", "route"])
      state.stored = { ...open, state: "closing" }
      yield* passes(1_500)
      // It ends 75 s after that was stored.
      assert.deepStrictEqual([decide(100, 75_999), decide(101, 76_000)], ["route", "finished"])
      state.stored = { ...open, consumer: "bypass-9-2" }
      yield* passes(1_500)
      assert.strictEqual(decide(100), "undecided")
    })
  )
})
