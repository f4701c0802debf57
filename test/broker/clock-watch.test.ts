import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import { watchClock } from "../../src/broker/clock-watch.ts"
import { makeNames } from "../../src/domain/names.ts"
import { clock, useTimers } from "../../src/time/timers.ts"
import { idle } from "../delivery/made-deliveries.ts"
import { makeLog } from "../kit/log.ts"
import { clockEvents, movedTime, virtualTimers } from "../kit/moved-time.ts"

/** A worker's clock, and a broker that tells the right time while it answers at all. */
const setUp = Effect.gen(function* () {
  const { runs, timers } = virtualTimers()
  const time = movedTime(timers)
  const state = { answers: true }
  yield* Effect.acquireRelease(
    Effect.sync(() => useTimers(time.timers)),
    (putBack) => Effect.sync(putBack)
  )
  const streamInfo = (operation: string) =>
    Effect.suspend(() =>
      state.answers
        ? Effect.succeed({ ts: new Date(time.brokerMs()).toISOString() })
        : Effect.fail(new BrokerError({ operation, cause: "no answer" }))
    )
  const broker = { names: makeNames(), streamInfo } as unknown as Broker["Service"]
  const watched = yield* watchClock.pipe(
    Effect.provideService(Broker, broker),
    Effect.provideService(Clock.Clock, clock)
  )
  /** Lets time pass, and what is due then. */
  const passes = Effect.fnUntraced(function* (ms: number) {
    for (let passed = 0; passed < ms; passed += 250) {
      runs(Math.min(250, ms - passed))
      yield* idle
    }
  })
  return { ...time, passes, runs, state, watched }
})

describe("a worker's clock that is compared with the broker's", () => {
  for (const [what, happens] of clockEvents)
    it.effect(`is not trusted from the moment that ${what}, until the broker has answered`, () =>
      Effect.gen(function* () {
        const time = yield* setUp
        const { passes, runs, setRight, state, watched } = time
        assert.isTrue(watched.isTrusted())
        yield* passes(60_000)
        assert.isTrue(watched.isTrusted())
        state.answers = false
        happens(time)
        runs(1)
        assert.isFalse(watched.isTrusted())
        yield* passes(60_000)
        assert.isFalse(watched.isTrusted())
        state.answers = true
        yield* passes(2_000)
        const isRight = time.timers.wallMs() === time.brokerMs()
        assert.strictEqual(watched.isTrusted(), isRight)
        setRight()
        yield* passes(2_000)
        assert.isTrue(watched.isTrusted())
      }).pipe(Effect.provide(makeLog().layer))
    )
})
