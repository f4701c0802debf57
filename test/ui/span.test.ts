import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { SpanMs } from "../../src/domain/duration.ts"
import { spanMs } from "../../ui/span.ts"

describe("a duration as pages read it", () => {
  it.each([
    0, 1, 999, 1_000, 1_500, 60_000, 187_500, 3_600_000, 86_400_000, 172_800_000, 40_000_000_000,
    1.5
  ])("is that of the answer (%d ms)", (ms) => {
    assert.strictEqual(spanMs(Schema.encodeSync(SpanMs)(ms)), ms)
  })
})
