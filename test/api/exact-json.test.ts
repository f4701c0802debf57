import { assert, describe, it } from "@effect/vitest"
import { parseExact } from "../../src/api/exact-json.ts"

describe("parseExact", () => {
  for (const text of [
    "12345678901234567890",
    "1.10",
    "-0",
    "1e3",
    "0.1000000000000000055511151231257827",
    '{"a":[1,2.50,{"b":1E400}],"c":"1.10"}',
    '{"__proto__":{"n":1.0}}'
  ])
    it(`keeps ${text}`, () => {
      assert.strictEqual(JSON.stringify(parseExact(text)), text)
    })

  it("keeps all else as JSON.parse does", () => {
    const text = ' {"a" : [true, null, "\\u00e9\\n"], "b": 42} '
    assert.deepStrictEqual(parseExact(text), JSON.parse(text))
  })

  it("refuses what is no JSON", () => {
    for (const text of ["", "{", "1.", "01", "{'a':1}"]) assert.throws(() => parseExact(text))
  })
})
