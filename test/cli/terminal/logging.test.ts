import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect } from "effect"
import { BrokerError } from "../../../src/broker/broker-error.ts"
import { loggingTo } from "../../../src/cli/terminal/logging.ts"

const failure = Cause.fail(
  new BrokerError({ operation: "read the history", cause: new Error("timeout") })
)
const defect = Cause.die(new TypeError("x is not a function"))

const logged = (cause: Cause.Cause<unknown>) => {
  const lines: Array<string> = []
  return Effect.logWarning("cannot go on", cause).pipe(
    Effect.provide(loggingTo({ write: (line) => lines.push(line) })),
    Effect.map(() => String(JSON.parse(lines[0] ?? "").cause))
  )
}

describe("the log", () => {
  it.effect("says why something failed that may fail, without a stack", () =>
    Effect.gen(function* () {
      const expected = "BrokerError: read the history: timeout"
      assert.strictEqual(yield* logged(failure), expected)
      assert.strictEqual(
        yield* logged(Cause.combine(failure, Cause.interrupt())),
        expected,
        "what was interrupted with it is no reason"
      )
      assert.strictEqual(
        yield* logged(Cause.combine(failure, Cause.fail(new RangeError("too far")))),
        `${expected}\nRangeError: too far`
      )
    })
  )

  it.effect("shows the stack of a defect", () =>
    Effect.gen(function* () {
      assert.match(yield* logged(defect), /TypeError: x is not a function\n +at /)
      assert.match(yield* logged(Cause.combine(failure, defect)), /\n +at /)
      assert.match(yield* logged(Cause.interrupt()), /interrupt/i)
    })
  )
})
