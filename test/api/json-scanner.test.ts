import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { JsonScanner, maxJsonDepth, withoutSpace } from "../../src/api/json-scanner.ts"

const most = { elements: 1_000, members: 64 }

/** Scans a text in steps of so many bytes. */
const scan = (text: string, step = 7) => {
  const bytes = Buffer.from(text)
  const scanner = new JsonScanner(bytes, most)
  while (!scanner.run(step));
  const slice = (start: number, end: number) => bytes.subarray(start, end).toString()
  return {
    problem: scanner.problem,
    isList: scanner.isList,
    elements: scanner.elements.map(({ end, members, start }) => ({
      text: slice(start, end),
      members: members.map((one) => [
        JSON.parse(slice(one.keyStart, one.keyEnd)),
        slice(one.start, one.end),
        one.hasSpace
      ])
    }))
  }
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Texts that are JSON but for a letter or two, and some that are. */
const nearlyJson = fc
  .tuple(
    fc.json({ maxDepth: 4 }),
    fc.constantFrom(undefined, 1, 2, "\t"),
    fc.array(
      fc.tuple(fc.nat(), fc.constantFrom("", ...'{}[]",:\\ue+-.0159tfn \n\u0001é', "\\u00", "1.")),
      { maxLength: 2 }
    )
  )
  .map(([text, space, changes]) =>
    changes.reduce(
      (changed, [at, letter]) => {
        const place = at % (changed.length + 1)
        return changed.slice(0, place) + letter + changed.slice(place + (at % 2))
      },
      JSON.stringify(JSON.parse(text), null, space)
    )
  )

describe("a scan of JSON", () => {
  it("takes and refuses what JSON.parse does", () => {
    fc.assert(
      fc.property(nearlyJson, fc.integer({ min: 1, max: 9 }), (text, step) => {
        const { problem } = scan(text.toWellFormed(), step)
        assert.strictEqual(problem === undefined, isJson(text.toWellFormed()), text)
      }),
      { numRuns: 20_000, seed: 20_261_123 }
    )
  })

  it.each([
    ...[
      "",
      " ",
      "{",
      "}",
      "[",
      "]",
      "[1",
      "[1,",
      "[1,]",
      "[,1]",
      '{"a"',
      '{"a":',
      '{"a":1',
      "{a:1}"
    ],
    ...['{"a":1,}', "{,}", '{"a" 1}', '{"a"}', "[1}", '{"a":1]', "1 2", "[] []", "tru", "nulL"],
    ...["01", "1.", ".5", "+1", "-", "1e", "1e+", "0x1", "NaN", "-Infinity", "'a'", '"a', '"\n"'],
    ...['"\\x"', '"\\u12g4"', '"\\u12"', '"\\', "\ufeff1", "/* */1", "[1 2]", '{"a":1 "b":2}']
  ])("refuses %j", (text) => {
    assert.isFalse(isJson(text))
    assert.isDefined(scan(text).problem)
  })

  it("finds the values of a list with their members, and where there is space", () => {
    assert.deepStrictEqual(scan(' [ {"a" : 1,"b":[ {"c":{}} ] , "d":"] }"} , 5,[{"e":1}], {} ] '), {
      problem: undefined,
      isList: true,
      elements: [
        {
          text: '{"a" : 1,"b":[ {"c":{}} ] , "d":"] }"}',
          members: [
            ["a", "1", false],
            ["b", '[ {"c":{}} ]', true],
            ["d", '"] }"', false]
          ]
        },
        { text: "5", members: [] },
        { text: '[{"e":1}]', members: [] },
        { text: "{}", members: [] }
      ]
    })
    assert.deepStrictEqual(scan('{"a\\u0062":{"x": 1},"c":null}'), {
      problem: undefined,
      isList: false,
      elements: [
        {
          text: '{"a\\u0062":{"x": 1},"c":null}',
          members: [
            ["ab", '{"x": 1}', true],
            ["c", "null", false]
          ]
        }
      ]
    })
  })

  it("ends where there is more than is wanted, or it is nested deeper than anybody does", () => {
    const bytes = Buffer.from(`[${"0,".repeat(5_000_000)}0]`)
    const scanner = new JsonScanner(bytes, most)
    assert.isTrue(scanner.run(100_000))
    assert.lengthOf(scanner.elements, most.elements + 1)
    const nested = (depth: number) => scan(`${"[".repeat(depth)}${"]".repeat(depth)}`).problem
    assert.isUndefined(nested(maxJsonDepth))
    assert.match(nested(maxJsonDepth + 1) ?? "", /deeper/)
    const members = `{${Array.from({ length: 100 }, (_, at) => `"${at}":1`).join(",")}}`
    assert.lengthOf(scan(members).elements[0]?.members ?? [], most.members + 1)
  })

  it("gives JSON without white space, letter by letter as it was", () => {
    const text = ' { "a b" : [ 1.10 , -0,1E400, "\\u00e9 \\" x" ],\n"é":\t12345678901234567890 } '
    assert.strictEqual(
      Buffer.from(withoutSpace(Buffer.from(text))).toString(),
      '{"a b":[1.10,-0,1E400,"\\u00e9 \\" x"],"é":12345678901234567890}'
    )
  })
})
