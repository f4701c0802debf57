import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { firstRound } from "../../src/domain/delivery.ts"
import { allFacts, consistentRounds, noRecords } from "../kit/consistency.ts"
import { endpoint, history, nth, publish, quickRetry, worker } from "../kit/engine.ts"
import { tellMissing } from "../kit/missing-fact.ts"
import { assertNoneTooEarly, attempts, reasons } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { rival } from "../kit/rival.ts"
import { onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

describe.concurrent("a delivery that another router puts into its queue while it is attempted", () => {
  for (const [memory, topology] of [
    ["still knows its id", {}],
    ["has forgotten its id", { moveDedupe: 200 }]
  ] as const) {
    const failing = (status: number) =>
      Effect.gen(function* () {
        const answered = yield* Deferred.make<void>()
        const late = () => Effect.runPromise(Effect.as(Deferred.await(answered), { status }))
        const hook = yield* receiver({ answer: late })
        // Far longer than until it is redelivered.
        const retry = quickRetry({ backoff: { kind: "fixed", delay: "5 seconds" } })
        yield* endpoint({ url: hook.url, retry })
        const facts = yield* history
        yield* worker()
        yield* publish("a")
        yield* hook.received(1)
        yield* rival
        hook.answer({ status: 200 })
        yield* Deferred.succeed(answered, undefined)
        yield* consistentRounds
        yield* noRecords
        const { names } = yield* Broker
        const [first] = facts.of("attempt-failed")
        assert.strictEqual(first?.from?.stream, names.events)
        return { facts, hook }
      })

    scenario(
      `waits for its time where that fails, and the broker ${memory}`,
      () =>
        Effect.gen(function* () {
          const { facts, hook } = yield* failing(503)
          assert.deepStrictEqual(attempts(hook), [1, 2])
          assertNoneTooEarly(hook, facts.of("attempt-failed"))
        }),
      topology
    )

    scenario(
      `ends where it is refused for good, and the broker ${memory}`,
      () =>
        Effect.gen(function* () {
          const { facts, hook } = yield* failing(400)
          assert.deepStrictEqual(attempts(hook), [1])
          assert.deepStrictEqual(reasons(facts.of("attempt-failed", "dead-lettered")), [
            ["attempt-failed", 1, "permanent"],
            ["dead-lettered", 1, "permanent"]
          ])
        }),
      topology
    )
  }
})

describe.concurrent("a delivery that a watch has told of as missing", () => {
  scenario("is delivered nonetheless, when somebody routes its event at last", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      // With a second one, so that its plan is stored before anything is sent.
      yield* endpoint({ id: "other", url: (yield* receiver()).url })
      yield* crashAt(place, "plan-stored", 1, {}, publish("a"))
      const routed = (yield* allFacts).filter(({ kind }) => kind === "routed")
      yield* tellMissing({ ...nth(routed, 0), endpoint: "hook", round: firstRound })
      yield* worker({ id: "second" })
      yield* consistentRounds
      assert.deepStrictEqual(attempts(hook), [1])
    })
  )
})
