import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { CallbackWork, makeInFlight } from "../../src/broker/in-flight.ts"

const noDefect = () => Effect.die("there was no defect")

describe("work under way", () => {
  it.live("ends once, whoever says so first", () =>
    Effect.gen(function* () {
      const inFlightWork = yield* makeInFlight<never>()
      const ends: Array<boolean> = []
      const work = inFlightWork.begin((finished) => ends.push(finished), noDefect)
      work.done()
      work.done()
      work.continueInFiber(Effect.die("too late"))
      assert.deepStrictEqual(ends, [true])
      assert.strictEqual(yield* inFlightWork.size, 0)
    })
  )

  it.live("goes on as a fiber where it must, and is waited for throughout", () =>
    Effect.gen(function* () {
      const inFlightWork = yield* makeInFlight<never>()
      const gate = yield* Deferred.make<void>()
      const ends: Array<boolean> = []
      const work = inFlightWork.begin((finished) => ends.push(finished), noDefect)
      const none = yield* Effect.forkChild(inFlightWork.none, { startImmediately: true })
      assert.strictEqual(yield* inFlightWork.size, 1)
      work.continueInFiber(Deferred.await(gate))
      assert.strictEqual(yield* inFlightWork.size, 1)
      yield* Effect.yieldNow
      assert.isUndefined(none.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(none)
      assert.deepStrictEqual(ends, [true])
    })
  )

  it.live("goes on as it was told where a step throws", () =>
    Effect.gen(function* () {
      const inFlightWork = yield* makeInFlight<never>()
      const told: Array<unknown> = []
      const ends: Array<boolean> = []
      const work = inFlightWork.begin(
        (finished) => ends.push(finished),
        (defect) => Effect.sync(() => void told.push(defect))
      )
      work.step(() => {
        throw "a defect"
      })
      yield* inFlightWork.none
      assert.deepStrictEqual(told, ["a defect"])
      assert.deepStrictEqual(ends, [true])
    })
  )

  it.live("is cut off when the scope closes, with or without a fiber", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const inFlightWork = yield* Scope.provide(makeInFlight<never>(), scope)
      const ends: Array<string> = []
      class Work extends CallbackWork<never> {
        protected override ended(finished: boolean) {
          ends.push(`plain ${finished}`)
        }
        protected override cancelled() {
          ends.push("stopped")
        }
        protected override afterDefect() {
          return noDefect()
        }
      }
      const work = new Work()
      inFlightWork.add(work)
      inFlightWork.run(Effect.never, (finished) => ends.push(`fiber ${finished}`))
      yield* Scope.close(scope, Exit.void)
      work.step(() => ends.push("a step after the end"))
      work.done()
      assert.sameMembers(ends, ["stopped", "plain false", "fiber false"])
    })
  )
})
