import { assert, describe, it } from "@effect/vitest"
import { waitBy } from "../../src/policy/decide.ts"

describe("a retry", () => {
  it("waits as a NAK while few do", () => {
    assert.strictEqual(waitBy(0), "nak")
    assert.strictEqual(waitBy(19_999), "nak")
  })

  it("waits as a schedule of the broker once as many wait as NAKs as may", () => {
    assert.strictEqual(waitBy(20_000), "schedule")
    assert.strictEqual(waitBy(1_000_000), "schedule")
    assert.strictEqual(waitBy(2, 3), "nak")
    assert.strictEqual(waitBy(3, 3), "schedule")
  })
})
