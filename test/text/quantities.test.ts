import { assert, describe, it } from "@effect/vitest"
import { rangesText } from "../../src/text/quantities.ts"

describe("numbers in ranges", () => {
  it("name each once", () => {
    assert.strictEqual(rangesText([0, 1, 2, 4, 6, 7]), "0-2, 4, 6-7")
    assert.strictEqual(rangesText([]), "")
  })
})
