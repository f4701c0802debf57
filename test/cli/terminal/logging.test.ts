import { execFileSync } from "node:child_process"
import { constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect } from "effect"
import { BrokerError } from "../../../src/broker/broker-error.ts"
import { loggingTo, makeLines } from "../../../src/cli/terminal/logging.ts"

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

  it.live("keeps 1 MiB for a reader that stands still, and says how many lines are lost", () =>
    Effect.gen(function* () {
      const directory = mkdtempSync(join(tmpdir(), "petrel-test-log-"))
      const pipe = join(directory, "pipe")
      execFileSync("mkfifo", [pipe])
      const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(directory, { recursive: true })))
      const lines = yield* makeLines(fd)
      const line = `${"x".repeat(1023)}\n`
      for (let n = 0; n < 3_000; n++) lines.write(line)
      let text = ""
      const buffer = Buffer.alloc(65_536)
      while (!text.includes("are lost")) {
        yield* Effect.sleep("20 millis")
        try {
          text += buffer.toString("latin1", 0, readSync(fd, buffer))
        } catch {
          // There is nothing to read yet.
        }
      }
      const kept = text.split("x\n").length - 1
      assert.isAtLeast(kept, 1_000)
      assert.isAtMost(kept, 1_100)
      assert.include(text, `"msg":"${3_000 - kept} lines of this log are lost: `)
    }).pipe(Effect.scoped)
  )
})
