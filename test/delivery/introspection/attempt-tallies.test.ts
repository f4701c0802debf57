import { assert, describe, it } from "@effect/vitest"
import { AttemptTallies } from "../../../src/delivery/introspection/attempt-tallies.ts"
import { blankEndpoint } from "../../../src/operations/endpoints/endpoint-change.ts"

const hour = 3_600_000
const start = 1_000_000 * hour

const endpoint = (id: string, generation = "g") => ({
  key: `acme.${id}`,
  config: blankEndpoint({ tenant: "acme", id }, generation, start)
})

describe("the attempts of a partition", () => {
  it("are counted by endpoint, and all together", () => {
    const book = new AttemptTallies()
    book.note(endpoint("a"), true, 20, start)
    book.note(endpoint("a"), false, 20, start)
    book.note(endpoint("b"), true, 900, start)
    const told = (key?: string) => {
      const { attempts, delivered } = book.read(start, key)
      return [attempts, delivered]
    }
    assert.deepStrictEqual(told("acme.a"), [2, 1])
    assert.deepStrictEqual(told("acme.b"), [1, 1])
    assert.deepStrictEqual(told("acme.c"), [0, 0])
    assert.deepStrictEqual(told(), [3, 2])
  })

  it("of an endpoint that had its name before do not count for one made again", () => {
    const book = new AttemptTallies()
    book.note(endpoint("a", "old"), false, 20, start)
    book.note(endpoint("a", "new"), true, 20, start)
    assert.deepInclude(book.read(start, "acme.a"), { attempts: 1, delivered: 1 })
  })

  it("take no memory once they are more than an hour ago", () => {
    const book = new AttemptTallies()
    book.note(endpoint("a"), true, 20, start)
    book.note(endpoint("b"), true, 20, start + hour / 2)
    assert.deepStrictEqual([...book.keys()], ["acme.a", "acme.b"])
    book.note(endpoint("c"), true, 20, start + hour)
    assert.deepStrictEqual([...book.keys()], ["acme.b", "acme.c"])
  })
})
