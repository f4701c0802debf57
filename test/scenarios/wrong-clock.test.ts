import { assert, describe } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import { storeSystemThresholds } from "../../src/alerts/alert-store.ts"
import { readEndpointNow } from "../../src/delivery/introspection/endpoint-activity.ts"
import { pauseEndpoint } from "../../src/endpoints/endpoint-state.ts"
import type { AuditRange } from "../../src/history/audit/reach.ts"
import { runAudit } from "../../src/operations/audit/run-audit.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { clock, systemTimers, useTimers } from "../../src/time/timers.ts"
import { isClean } from "../kit/consistency.ts"
import { endpoint, eventually, history, publishMany, worker } from "../kit/engine.ts"
import { movedTime } from "../kit/moved-time.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { replayTo } from "./replaying.ts"

const hour = 3_600_000

/** Moves the clocks of this process, which is the worker's, until the scope closes. */
const movedMachine = Effect.gen(function* () {
  const time = movedTime(systemTimers)
  yield* Effect.acquireRelease(
    Effect.sync(() => useTimers(time.timers)),
    (putBack) => Effect.sync(putBack)
  )
  return time
})

describe("a worker whose clock is wrong", () => {
  for (const [what, shift] of [
    ["ahead", hour],
    ["behind", -hour]
  ] as const)
    outage(
      `sends nothing while it is an hour ${what}, says so, and goes on when it is right`,
      (_, __, log) =>
        Effect.gen(function* () {
          const hook = yield* receiver()
          yield* endpoint({ url: hook.url })
          const facts = yield* history
          const wall = yield* movedMachine
          wall.step(shift)
          const { problems } = yield* Effect.provideService(worker(), Clock.Clock, clock)
          yield* publishMany(20)
          yield* eventually(
            Effect.sync(() =>
              log.count(`${what === "ahead" ? "ahead of" : "behind"} the broker's: nothing`)
            ),
            (count) => count === 1
          )
          assert.lengthOf(hook.requests, 0)
          assert.lengthOf(facts.facts, 0)
          const codes = Effect.map(readStatus, ({ problems }) => problems.map(({ code }) => code))
          assert.include(yield* codes, "clock-wrong")
          assert.match(problems().join(), /^this machine's clock is .*nothing is routed or sent/)
          const { answer } = yield* readEndpointNow("acme", "hook")
          assert.approximately(answer?.clockSkewMs ?? 0, shift, 60_000)
          wall.setRight()
          yield* facts.count("delivered", 20)
          assert.strictEqual(log.count("agrees with the broker's again"), 1)
          assert.deepStrictEqual(problems(), [])
          yield* eventually(codes, (all) => !all.includes("clock-wrong"))
          yield* isClean
        })
    )

  outage(
    "stops within a second of the step, and ends nothing by the time that it shows",
    (_, __, log) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        const wall = yield* movedMachine
        yield* Effect.provideService(worker(), Clock.Clock, clock)
        yield* publishMany(5)
        yield* facts.count("delivered", 5)
        // Beyond every deadline.
        wall.step(100 * 24 * hour)
        yield* eventually(
          Effect.sync(() => log.count("nothing is sent until they agree")),
          (count) => count === 1
        )
        yield* publishMany(20)
        wall.setRight()
        yield* facts.count("delivered", 20)
        assert.isTrue(facts.facts.every(({ kind }) => kind !== "dead-lettered"))
        yield* isClean
      })
  )

  outage("says how long events have waited by the broker's clock", () =>
    Effect.gen(function* () {
      yield* endpoint()
      yield* storeSystemThresholds({
        unroutedTime: Duration.seconds(1),
        window: Duration.seconds(2)
      })
      const facts = yield* history
      const wall = yield* movedMachine
      wall.step(hour)
      yield* Effect.provideService(worker({ alertEvery: 200 }), Clock.Clock, clock)
      yield* publishMany(3)
      yield* facts.count("alert-raised", 1)
      const [raised] = facts.of("alert-raised")
      assert.strictEqual(raised?.alert?.name, "events-unrouted")
      assert.isBelow(raised?.alert?.value ?? hour, 60_000)
    })
  )

  outage("is told of a few seconds, and delivers all the same", (_, __, log) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      const wall = yield* movedMachine
      wall.step(-5_000)
      yield* Effect.provideService(worker(), Clock.Clock, clock)
      assert.strictEqual(log.count("behind the broker's: correct the wrong clock"), 1)
      yield* publishMany(3)
      yield* facts.count("delivered", 3)
    })
  )
})

describe("a machine whose clock is wrong", () => {
  for (const shift of [hour, -hour])
    outage(`begins no rounds while it is an hour ${shift > 0 ? "ahead" : "behind"}`, () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* worker()
        yield* publishMany(3)
        yield* facts.count("delivered", 3)
        const wall = yield* movedMachine
        wall.step(shift)
        const again = Effect.provideService(
          replayTo("hook", { until: Number.MAX_SAFE_INTEGER }),
          Clock.Clock,
          clock
        )
        const { message } = yield* Effect.flip(again)
        const side = shift > 0 ? "ahead of" : "behind"
        assert.match(
          message,
          new RegExp(`^this machine's clock is 3[56]..\\.. s ${side} the broker's`)
        )
        assert.lengthOf(facts.of("replayed"), 0)
        wall.setRight()
        assert.strictEqual((yield* again).begun, 3)
        yield* facts.count("delivered", 6)
      })
    )

  outage("audits by the broker's clock: nothing that waits is overdue, and no range is empty", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* pauseEndpoint({ tenant: "acme", endpoint: "hook" }, undefined, "test")
      yield* worker()
      yield* publishMany(1)
      yield* eventually(readStatus, ({ deliveries }) => deliveries.backlog === 1)
      const wall = yield* movedMachine
      // Beyond every deadline.
      wall.step(100 * 24 * hour)
      const audited = (range: AuditRange) =>
        Effect.provideService(runAudit(range), Clock.Clock, clock)
      const { problems, report } = yield* audited({})
      assert.deepStrictEqual([problems, report.verdict], [[], "clean"])
      // "An hour ago", as this machine takes it.
      const refused = yield* Effect.flip(audited({ since: systemTimers.wallMs() + 99 * 24 * hour }))
      assert.include(refused.message, "is in the future: there are no events yet")
    })
  )
})
