import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { readDuration } from "../../../src/cli/flags/shared.ts"

describe("a length of time on the command line", () => {
  it.each([
    ["30 seconds", 30_000],
    ["30s", 30_000],
    [" 1.5 h ", 5_400_000],
    ["2 min", 120_000],
    ["250ms", 250],
    ["7d", 604_800_000],
    ["0s", 0]
  ])("%s is %d ms", (text, ms) => {
    const duration = readDuration(text)
    assert.isDefined(duration)
    assert.strictEqual(Duration.toMillis(duration), ms)
  })

  it.each(["", "30", "30 secnds", "Infinity", "-5 seconds", "5 s s"])("%s is none", (text) => {
    assert.isUndefined(readDuration(text))
  })
})
