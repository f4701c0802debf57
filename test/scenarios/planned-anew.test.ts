import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { consistentRounds, isClean, quiet } from "../kit/consistency.ts"
import { endpoint, history, nth, publish, worker } from "../kit/engine.ts"
import { change, disable } from "../kit/live-endpoints.ts"
import { attempts } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const whose = { tenant: "acme", endpoint: "hook" }

/**
 * An endpoint gets an event, and its worker dies before it records the answer. An event before
 * shows that the history takes facts: only then may a plan be recorded with its outcome.
 */
const crashUnrecorded = Effect.fnUntraced(function* (
  place: Parameters<typeof crashAt>[0],
  others: ReadonlyArray<string>
) {
  const hook = yield* receiver()
  const prime = yield* receiver()
  yield* endpoint({ url: hook.url, types: ["a"] })
  for (const id of others) yield* endpoint({ id, url: prime.url, types: ["a"] })
  yield* endpoint({ id: "prime", url: prime.url, types: ["prime"] })
  const facts = yield* history
  const begin = Effect.gen(function* () {
    yield* publish("prime")
    yield* facts.count("delivered", 1)
    yield* publish("a")
    yield* hook.received(1)
  })
  yield* crashAt(place, "answered", 2, {}, begin)
  return { facts, hook }
})

const planOfA = (facts: Effect.Success<typeof history>) => {
  const plans = facts.plans().filter(({ type }) => type === "a")
  assert.lengthOf(plans, 1)
  const { endpoints = [], skipped = [] } = nth(plans, 0).plan ?? {}
  return { endpoints: endpoints.map(({ id }) => id), skipped }
}

describe.concurrent("an event whose only delivery was sent by a worker that died without a record", () => {
  for (const [what, changed, skipped] of [
    ["wants other types", change("hook", { types: ["other"] }), []],
    ["is removed", removeEndpoint("acme", "hook"), []],
    ["is disabled", disable("hook"), [{ id: "hook", reason: "endpoint-disabled" }]]
  ] as const)
    scenario(
      `is planned for nobody, where its endpoint ${what} before it is routed again`,
      (place) =>
        Effect.gen(function* () {
          const { facts, hook } = yield* crashUnrecorded(place, [])
          yield* changed
          yield* worker({ id: "second" })
          yield* quiet
          yield* facts.planned(2)
          assert.deepStrictEqual(planOfA(facts), { endpoints: [], skipped })
          yield* consistentRounds
          yield* isClean
          assert.deepStrictEqual(attempts(hook), [1])
          assert.isEmpty(facts.of("attempt-failed", "dead-lettered"))
        })
    )

  scenario("is planned for its endpoint where that is paused, and sent again afterwards", (place) =>
    Effect.gen(function* () {
      const { facts, hook } = yield* crashUnrecorded(place, [])
      yield* pauseEndpoint(whose, undefined, "test")
      yield* worker({ id: "second" })
      yield* facts.planned(2)
      assert.deepStrictEqual(planOfA(facts), { endpoints: ["hook"], skipped: [] })
      yield* resumeEndpoint(whose, "test")
      yield* facts.count("delivered", 2)
      yield* consistentRounds
      yield* isClean
      assert.deepStrictEqual(attempts(hook), [1, 1])
    })
  )

  scenario(
    "goes on by its plan where it had another delivery, whatever its endpoint wants",
    (place) =>
      Effect.gen(function* () {
        const { facts } = yield* crashUnrecorded(place, ["beside"])
        yield* change("hook", { types: ["other"] })
        yield* worker({ id: "second" })
        yield* facts.count("delivered", 3)
        assert.deepStrictEqual(planOfA(facts), { endpoints: ["beside", "hook"], skipped: [] })
        yield* consistentRounds
        yield* isClean
      })
  )
})
