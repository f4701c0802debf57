import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { readDuration } from "../../../src/cli/flags/shared.ts"
import { bytesText, readBytes } from "../../../src/text/quantities.ts"

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

describe("a size on the command line", () => {
  it.each([
    ["1048576", 1_048_576],
    ["512 B", 512],
    ["1KiB", 1_024],
    ["64MB", 67_108_864],
    ["1.5g", 1_610_612_736]
  ])("%s is %d bytes", (text, bytes) => {
    assert.strictEqual(readBytes(text), bytes)
  })

  it.each(["", "x", "0", "-1", "1.5", "1 PB"])("%s is none", (text) => {
    assert.isUndefined(readBytes(text))
  })

  it.each([
    [512, "512 B"],
    [983_040, "960 KiB"],
    [1_610_612_736, "1.5 GiB"]
  ])("%d bytes are shown as %s", (bytes, text) => {
    assert.strictEqual(bytesText(bytes), text)
  })
})
