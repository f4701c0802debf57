import { assert, describe, it } from "@effect/vitest"
import { sparkline } from "../../../src/cli/format/screen.ts"

describe("a line of bars", () => {
  for (const [counts, line] of [
    [[], ""],
    [[0, 0], ""],
    [[1], "█"],
    [[0, 1, 4, 8, 0], " ▁▄█"],
    [[1, 1_000_000], "▁█"]
  ] as const)
    it(`is "${line}" for ${JSON.stringify(counts)}`, () =>
      assert.strictEqual(sparkline(counts), line))

  it("puts counts together where there are too many", () => {
    const line = sparkline(Array.from({ length: 744 }, () => 1))
    assert.isAtMost(line.length, 72)
    assert.match(line, /^█+▆?$/)
  })
})
