import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readInput } from "../../src/operations/input.ts"
import { wholeNumber } from "../../src/operations/parameters.ts"

const read = (maximum: number | undefined, n: string) =>
  readInput(Schema.Struct({ n: wholeNumber(maximum) }), { n })

describe("a whole number in a path or query", () => {
  it.each([
    ["1", 1],
    ["200", 200],
    ["007", 7]
  ])("is %s", (text, value) => {
    assert.deepStrictEqual(Result.getOrThrow(read(200, text)), { n: value })
  })

  it.each(["0x10", "0b1", "1e2", " 5", "+5", "5.0", "", "abc"])("is not '%s'", (text) => {
    const message = `${JSON.stringify(text)} must be a whole number from 1`
    assert.deepStrictEqual(Result.getOrThrow(Result.flip(read(200, text))), [
      { field: "n", message: `${message} to 200` }
    ])
    assert.deepStrictEqual(Result.getOrThrow(Result.flip(read(undefined, text))), [
      { field: "n", message: `${message} on` }
    ])
  })

  it.each(["0", "201", "999999999"])("is not %s, which is out of its range", (text) => {
    assert.deepStrictEqual(Result.getOrThrow(Result.flip(read(200, text))), [
      { field: "n", message: `"${text}" must be between 1 and 200` }
    ])
  })
})
