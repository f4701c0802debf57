import { assert, describe, it } from "@effect/vitest"
import {
  cutTo,
  labelled,
  screenHeight,
  screenWidth,
  sparkline
} from "../../../src/cli/format/screen.ts"

describe("the size of the screen", () => {
  for (const [isTTY, columns, rows, width, height] of [
    [true, 80, 24, 80, 23],
    [true, 0, 0, undefined, undefined],
    [false, undefined, undefined, undefined, undefined]
  ] as const)
    it(`is ${width} by ${height} where the terminal says ${columns} by ${rows}`, () => {
      const { stdout } = process
      const says = Object.entries({ isTTY, columns, rows })
      const before = says.map(([name]) => Object.getOwnPropertyDescriptor(stdout, name))
      for (const [name, value] of says)
        Object.defineProperty(stdout, name, { value, configurable: true })
      try {
        assert.strictEqual(screenWidth(), width)
        assert.strictEqual(screenHeight(), height)
      } finally {
        for (const [index, [name]] of says.entries()) {
          Reflect.deleteProperty(stdout, name)
          Object.defineProperty(stdout, name, { configurable: true, ...before[index] })
        }
      }
    })
})

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
