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

  it.each(["P1Y", "P1M", "P", "PT", "5", "5 parsecs", "-PT5M", ""])("%s is none", (text) => {
    assert.isTrue(Result.isFailure(decode(text)))
  })

  it.each([
    ["90000 millis", "90 seconds"],
    ["60 minutes", "1 hour"],
    ["72 hours", "3 days"],
    ["1500 millis", "1500 millis"],
    ["5m", "5 minutes"],
    ["1h 30m", "90 minutes"],
    ["1h30m", "90 minutes"],
    ["PT5M", "5 minutes"],
    ["P1DT12H", "36 hours"],
    ["P2W", "14 days"],
    ["PT0.25S", "250 millis"]
  ])("%s is written as %s, which is the same", (text, words) => {
    const duration = Schema.decodeSync(PositiveDuration)(text)
    assert.strictEqual(Schema.encodeSync(PositiveDuration)(duration), words)
    assert.deepStrictEqual(Schema.decodeSync(PositiveDuration)(words), duration)
  })
})
