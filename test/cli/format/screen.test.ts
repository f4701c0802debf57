import { assert, describe, it } from "@effect/vitest"
import { cutTo, labelled } from "../../../src/cli/format/screen.ts"
import { percentText, plural } from "../../../src/text/quantities.ts"

describe("a text under a label", () => {
  it("is one line where there is room", () => {
    assert.deepStrictEqual(labelled("label  ", "what is said", 80), ["label  what is said"])
    const long = "word ".repeat(100).trim()
    assert.deepStrictEqual(labelled("l ", long, undefined), [`l ${long}`])
  })

  it("goes on below where it began, and words stay whole", () => {
    assert.deepStrictEqual(labelled("label  ", "one two three four five six", 27), [
      "label  one two three four",
      "       five six"
    ])
    const word = "x".repeat(40)
    assert.deepStrictEqual(labelled("l ", `a ${word} b`, 30), ["l a", `  ${word}`, "  b"])
  })
})

describe("a line", () => {
  it("is cut where the screen ends, which its last column says", () => {
    assert.strictEqual(cutTo(5, "12345"), "12345")
    assert.strictEqual(cutTo(5, "123456"), "1234…")
    assert.strictEqual(cutTo(undefined, "x".repeat(200)), "x".repeat(200))
  })
})

describe("a share in percent", () => {
  it("is 100% of all and 0% of none, and of nothing else", () => {
    const texts = [
      [0, 7],
      [7, 7],
      [9_999, 10_000],
      [1, 100_000],
      [1, 3]
    ].map(([part = 0, whole = 0]) => percentText(part, whole))
    assert.deepStrictEqual(texts, ["0%", "100%", "99.9%", "<0.1%", "33.3%"])
  })
})

describe("a count", () => {
  it("goes with its word", () => {
    assert.deepStrictEqual(
      [plural(1, "delivery", "deliveries"), plural(1_200, "delivery", "deliveries")],
      ["1 delivery", "1,200 deliveries"]
    )
  })
})
