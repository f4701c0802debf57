import { assert, describe, it } from "@effect/vitest"
import { lagText } from "../../../src/cli/commands/projection.ts"

describe("what commands say of a delivery log", () => {
  it("is that it is level with the history, unless nobody has looked lately", () => {
    assert.strictEqual(lagText({ facts: 0, ms: 0 }), "level with")
    assert.strictEqual(lagText({ facts: 12, ms: 3_000 }), "12 facts (3 s) behind")
    assert.strictEqual(lagText({ facts: 0, ms: 14_000 }), "not compared for 14 s with")
  })
})
