import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { itemsOfArray, itemsUnder } from "../../src/providers/json-items.ts"

const texts = (items: ReadonlyArray<Uint8Array>) =>
  items.map((item) => Buffer.from(item).toString())

/** Any space that JSON allows between its parts. */
const spaced = (text: string): string => {
  let [inside, made] = [false, ""]
  for (let place = 0; place < text.length; place += 1) {
    const one = text[place] ?? ""
    if (inside && one === "\\") {
      made += one + (text[place + 1] ?? "")
      place += 1
      continue
    }
    if (one === '"') inside = !inside
    made += !inside && "[]{},:".includes(one) ? ` ${one}\n\t` : one
  }
  return made
}

describe("items of an array in JSON", () => {
  it("are those that JSON.parse finds, whatever they are", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 4 })), fc.boolean(), (items, wide) => {
        const text = JSON.stringify(items)
        const found = itemsOfArray(Buffer.from(wide ? spaced(text) : text))
        assert.deepStrictEqual(
          texts(found).map((one) => JSON.parse(one)),
          JSON.parse(text)
        )
      })
    )
  })

  it("are found under a name of an object, the last one if there are several", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
        fc.array(fc.jsonValue({ maxDepth: 3 })),
        fc.boolean(),
        (others, items, wide) => {
          const { entry: _, ...rest } = others
          const text = JSON.stringify({ ...rest, entry: items, after: ["]", "}"] })
          const found = itemsUnder(Buffer.from(wide ? spaced(text) : text), "entry")
          assert.deepStrictEqual(
            texts(found).map((one) => JSON.parse(one)),
            JSON.parse(text).entry
          )
        }
      )
    )
    const twice = Buffer.from('{"entry":[1],"entry":[2,3]}')
    assert.deepStrictEqual(texts(itemsUnder(twice, "entry")), ["2", "3"])
    assert.deepStrictEqual(itemsUnder(Buffer.from('{"entry":{"a":[1]}}'), "entry"), [])
  })

  it("keep the sender's own text", () => {
    const text = '[ {"id":12345678901234567890, "a":"\\u00e4"} ,1.10]'
    assert.deepStrictEqual(texts(itemsOfArray(Buffer.from(text))), [
      '{"id":12345678901234567890, "a":"\\u00e4"}',
      "1.10"
    ])
  })
})
