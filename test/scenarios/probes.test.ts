import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { endpoint, history, nth, publish, quickRetry, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

/** Opens after 3 failures; its probes are 100 to 150 ms apart, and so about two thirds of a ladder. */
const circuit = {
  failures: 3,
  coolDown: "100 millis",
  maxCoolDown: "150 millis",
  successes: 1
} as const
/** 5 attempts within 200 ms. */
const retry = quickRetry({ window: "1 hour" })
const ladderMs = 200

const attemptsIn = (facts: ReadonlyArray<Fact>): ReadonlyArray<Fact> =>
  facts.filter(({ kind }) => kind === "attempt-failed" || kind === "delivered")

/** True where all attempts but the first three were probes, and none has the number of another. */
const isProbed = (attempts: ReadonlyArray<Fact>): boolean =>
  attempts.every(({ attempt, probe }, n) => attempt === n + 1 && (probe === true) === n >= 3)

describe.concurrent("an outage that is longer than the ladder", () => {
  scenario("uses up no attempts of the only delivery that waits", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ url: hook.url, retry, circuit })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* hook.received(16)
      const [first, last] = [nth(hook.requests, 0), nth(hook.requests, 15)]
      assert.isAtLeast(last.at - first.at, 6 * ladderMs)
      hook.answer({ status: 200 })
      yield* facts.count("delivered", 1)
      const attempts = attemptsIn(facts.facts)
      assert.strictEqual(attempts.length, hook.requests.length)
      assert.isTrue(isProbed(attempts))
      assert.lengthOf(facts.of("dead-lettered"), 0)
      yield* consistentRounds
    })
  )

  scenario("is probed by one delivery after the other, where two wait", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({
        url: hook.url,
        retry,
        circuit: { ...circuit, failures: 1 },
        maxInFlight: 1
      })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("circuit-opened", 1)
      yield* publish("b")
      yield* facts.planned(2)
      const before = attemptsIn(facts.facts).length
      yield* facts.until(() => attemptsIn(facts.facts).length >= before + 8)
      hook.answer({ status: 200 })
      yield* facts.count("delivered", 2)
      // The first may have probed alone, before the second was there.
      const both = attemptsIn(facts.facts).slice(before + 1)
      const repeated = both.filter(({ event }, n) => event === both[n - 1]?.event)
      assert.deepStrictEqual(repeated, [])
      yield* consistentRounds
    })
  )

  scenario("ends what waits at its deadline", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ url: hook.url, retry: quickRetry({ window: "2 seconds" }), circuit })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("dead-lettered", 1)
      const dead = nth(facts.of("dead-lettered"), 0)
      assert.strictEqual(dead.reason, "deadline")
      assert.isAbove(dead.attempt ?? 0, 5)
      assert.strictEqual(dead.probes, (dead.attempt ?? 0) - 3)
      const probes = facts.of("attempt-failed").filter(({ probe }) => probe === true)
      assert.lengthOf(probes, dead.probes ?? 0)
      yield* consistentRounds
    })
  )

  scenario("respects the Retry-After of a probe's answer", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ url: hook.url, retry, circuit: { ...circuit, failures: 1 } })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* hook.received(1)
      hook.answer({ status: 503, headers: { "retry-after": "2" } })
      yield* hook.received(2)
      hook.answer({ status: 200 })
      yield* facts.count("delivered", 1)
      const [probe, next] = [nth(hook.requests, 1), nth(hook.requests, 2)]
      assert.isAtLeast(next.at - probe.at, 1_950)
    })
  )
})
