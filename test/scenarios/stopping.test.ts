import { assert, describe } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber } from "effect"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A receiver whose answers wait until `open` has run. */
const held = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const made = yield* receiver({
    answer: () => Effect.runPromise(Effect.as(Deferred.await(gate), {}))
  })
  return { ...made, open: Deferred.succeed(gate, undefined) }
})

const took = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    yield* work
    return (yield* Clock.currentTimeMillis) - start
  })

describe.concurrent("a worker that is asked to stop", () => {
  scenario(
    "finishes what is in flight and gives back the rest, so that nothing is sent twice",
    () =>
      Effect.gen(function* () {
        const slow = yield* held
        yield* endpoint({ url: slow.url, maxInFlight: 2 })
        const facts = yield* history
        const first = yield* worker({ stopWithin: 25_000 })
        yield* Effect.forEach(Array.from({ length: 20 }), () => publish("a"), { concurrency: 5 })
        yield* slow.received(2)
        const stopping = yield* Effect.forkChild(first.stop, { startImmediately: true })
        yield* slow.open
        yield* Fiber.join(stopping)
        assert.strictEqual(slow.requests.length, 2)
        assert.strictEqual(facts.of("delivered").length, 2)
        yield* worker({ id: "w2" })
        yield* facts.count("delivered", 20)
        assert.strictEqual(slow.requests.length, 20)
        assert.deepStrictEqual(
          new Set(facts.of("delivered").map(({ attempt }) => attempt)),
          new Set([1])
        )
        assert.strictEqual(facts.of("delivered").filter(({ worker }) => worker === "w1").length, 2)
        yield* eventually(waitingMessages, (count) => count === 0)
      })
  )

  scenario("takes nothing new, though there is much to do", () =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const first = yield* worker()
      yield* publish("a", "first")
      yield* facts.count("delivered", 1)
      const stopping = yield* Effect.forkChild(first.stop, { startImmediately: true })
      yield* Effect.forEach(Array.from({ length: 50 }), () => publish("a"), { concurrency: 5 })
      yield* Fiber.join(stopping)
      assert.strictEqual(requests.length, 1)
      yield* worker({ id: "w2" })
      yield* facts.count("delivered", 51)
      assert.strictEqual(requests.length, 51)
    })
  )

  scenario("has stopped within moments when it is idle", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const idle = yield* worker({ stopWithin: 25_000 })
      yield* publish("a")
      yield* facts.count("delivered", 1)
      assert.isBelow(yield* took(idle.stop), 5_000)
      assert.isBelow(yield* took(idle.stop), 1_000)
    })
  )

  scenario(
    "cuts off what takes too long, which comes back to the next worker at once",
    () =>
      Effect.gen(function* () {
        const silent = yield* receiver({ answer: () => undefined })
        yield* endpoint({ url: silent.url, maxInFlight: 1 })
        const facts = yield* history
        const first = yield* worker({ stopWithin: 300 })
        yield* Effect.forEach([1, 2, 3], (number) => publish("a", String(number)))
        yield* silent.received(1)
        assert.isBelow(yield* took(first.stop), 5_000)
        yield* silent.quiet
        silent.answer({ status: 200 })
        yield* worker({ id: "w2" })
        // Not only after ack_wait.
        assert.isBelow(yield* took(facts.count("delivered", 3)), 15_000)
        assert.strictEqual(silent.requests.length, 4)
        assert.deepStrictEqual(
          facts.facts
            .filter(({ kind }) => kind !== "routed")
            .map(({ attempt, kind, worker }) => [kind, attempt, worker]),
          [1, 2, 3].map(() => ["delivered", 1, "w2"])
        )
        const again = silent.requests.filter(({ body }) =>
          body.equals(nth(silent.requests, 0).body)
        )
        assert.strictEqual(again.length, 2)
      }),
    { ackWait: 25_000 }
  )
})
