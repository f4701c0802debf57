import { assert, describe, it } from "@effect/vitest"
import { fileErrorIn } from "../../src/broker/broker-error.ts"

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
