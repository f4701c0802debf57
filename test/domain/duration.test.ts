import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { PositiveDuration } from "../../src/domain/duration.ts"

const decode = Schema.decodeUnknownResult(PositiveDuration)

describe("a duration", () => {
  it("is taken up to 366 days, and refused above", () => {
    for (const text of ["1 millis", "30 seconds", "366 days"])
      assert.isTrue(Result.isSuccess(decode(text)), text)
    for (const text of ["367 days", "8785 hours", "60 weeks"]) {
      const decoded = decode(text)
      assert.include(Result.isFailure(decoded) ? decoded.failure.message : "", "366 days", text)
    }
  })

  it.each([
    ["90000 millis", "90 seconds"],
    ["60 minutes", "1 hour"],
    ["72 hours", "3 days"],
    ["1500 millis", "1500 millis"]
  ])("%s is written as %s, which is the same", (text, words) => {
    const duration = Schema.decodeSync(PositiveDuration)(text)
    assert.strictEqual(Schema.encodeSync(PositiveDuration)(duration), words)
    assert.deepStrictEqual(Schema.decodeSync(PositiveDuration)(words), duration)
  })
})
