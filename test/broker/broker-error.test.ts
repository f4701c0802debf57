import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { ask, askForState, fileErrorIn } from "../../src/broker/broker-error.ts"

describe("the error of a file", () => {
  it.each([
    ["write /data/$G/streams/A/msgs/9.blk: no space left on device", "no space left on device"],
    ["open /data/msgs/2.blk: read-only file system", "read-only file system"],
    ["stream store EOF", undefined],
    ["message delete not permitted", undefined],
    ["no message found", undefined],
    ['Permissions Violation for Publish to "$JS.API.STREAM.MSG.DELETE.A"', undefined]
  ])("is told from other answers: %s", (text, reason) => {
    assert.strictEqual(fileErrorIn(text), reason)
  })
})

describe("a question that changes nothing", () => {
  it.effect("is asked again while nobody answers, and answered where anybody does", () =>
    Effect.gen(function* () {
      const answers: Array<PromiseWithResolvers<number>> = []
      const asked = yield* Effect.forkChild(
        askForState(
          ask("look", () => {
            const answer = Promise.withResolvers<number>()
            answers.push(answer)
            return answer.promise
          })
        )
      )
      yield* TestClock.adjust("1999 millis")
      assert.strictEqual(answers.length, 1)
      yield* TestClock.adjust("2001 millis")
      assert.strictEqual(answers.length, 3)
      answers[1]?.resolve(7)
      assert.strictEqual(yield* Fiber.join(asked), 7)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(answers.length, 3)
    })
  )

  it.effect("fails where the first of them does, and is not asked for ever", () =>
    Effect.gen(function* () {
      const first = Promise.withResolvers<number>()
      let times = 0
      const asked = yield* Effect.forkChild(
        Effect.flip(
          askForState(
            ask("look", () => (++times === 1 ? first.promise : new Promise(() => undefined)))
          )
        )
      )
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(times, 5)
      first.reject(new Error("timeout"))
      assert.strictEqual((yield* Fiber.join(asked)).message, "look: timeout")
    })
  )
})
