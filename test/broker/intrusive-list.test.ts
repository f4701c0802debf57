import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Linked } from "../../src/broker/intrusive-list.ts"
import { IntrusiveList } from "../../src/broker/intrusive-list.ts"

interface Link extends Linked<Link> {
  readonly name: number
}

const link = (name: number): Link => ({ name, before: undefined, after: undefined })

/** A chain of so many, and its links by their numbers. */
const chainOf = (count: number) => {
  const chain = new IntrusiveList<Link>()
  const links = Array.from({ length: count }, (_, name) => link(name))
  for (const each of links) chain.add(each)
  const at = (name: number): Link => links[name] ?? link(name)
  return { chain, at }
}

const namesIn = (chain: IntrusiveList<Link>) => [...chain].map(({ name }) => name)

describe("a chain", () => {
  it("shows what was added in the order in which it was, and how many there are", () => {
    const { at, chain } = chainOf(3)
    assert.deepStrictEqual(namesIn(chain), [0, 1, 2])
    assert.strictEqual(chain.size, 3)
    assert.strictEqual(chain.first, at(0))
    assert.isTrue(chain.has(at(2)))
    assert.isFalse(chain.has(link(2)))
  })

  it("is empty at first, and again when its only one was taken out", () => {
    const { at, chain } = chainOf(1)
    assert.isTrue(chain.remove(at(0)))
    for (const empty of [chain, new IntrusiveList<Link>()]) {
      assert.strictEqual(empty.size, 0)
      assert.isUndefined(empty.first)
      assert.deepStrictEqual(namesIn(empty), [])
      assert.deepStrictEqual(empty.takeAll(), [])
    }
  })

  const places: ReadonlyArray<readonly [where: string, name: number]> = [
    ["front", 0],
    ["middle", 1],
    ["end", 3]
  ]
  for (const [where, name] of places)
    it(`closes where one was taken out of its ${where}, and takes more at its end`, () => {
      const { at, chain } = chainOf(4)
      const left = [0, 1, 2, 3].filter((other) => other !== name)
      assert.isTrue(chain.remove(at(name)))
      assert.isFalse(chain.has(at(name)))
      assert.deepStrictEqual(namesIn(chain), left)
      assert.strictEqual(chain.size, 3)
      chain.add(link(4))
      chain.add(at(name))
      assert.deepStrictEqual(namesIn(chain), [...left, 4, name])
    })

  it("loses nothing by what is taken out twice, or was never in it", () => {
    const { at, chain } = chainOf(3)
    assert.isTrue(chain.remove(at(1)))
    assert.isFalse(chain.remove(at(1)))
    assert.isFalse(chain.remove(link(0)))
    assert.deepStrictEqual(namesIn(chain), [0, 2])
    assert.strictEqual(chain.size, 2)
  })

  it("keeps nothing that was taken out alive through another", () => {
    const { at, chain } = chainOf(3)
    chain.remove(at(1))
    assert.deepInclude(at(1), { before: undefined, after: undefined })
    assert.strictEqual(at(0).after, at(2))
    assert.strictEqual(at(2).before, at(0))
  })

  it("goes on to the next when the one that was shown is taken out", () => {
    const { chain } = chainOf(5)
    const shown: Array<number> = []
    for (const each of chain) {
      shown.push(each.name)
      if (each.name % 2 === 0) chain.remove(each)
    }
    assert.deepStrictEqual(shown, [0, 1, 2, 3, 4])
    assert.deepStrictEqual(namesIn(chain), [1, 3])
  })

  it("gives all of them at once, each of which may be added again", () => {
    const { at, chain } = chainOf(3)
    const all = chain.takeAll()
    assert.deepStrictEqual(
      all.map(({ name }) => name),
      [0, 1, 2]
    )
    assert.strictEqual(chain.size, 0)
    assert.isFalse(all.some((each) => chain.has(each)))
    chain.add(at(2))
    chain.add(at(0))
    assert.deepStrictEqual(namesIn(chain), [2, 0])
  })

  const most = 8
  const name = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: most - 1 }))
  // Each step adds one or takes it out, or takes out all, or every other one while they are shown.
  const Step = Schema.Union([
    Schema.Struct({ does: Schema.Literals(["add", "remove"]), name }),
    Schema.Struct({ does: Schema.Literals(["take all", "take every other"]) })
  ])

  it.prop(
    "holds what a list would hold",
    { steps: Schema.Array(Step).check(Schema.isMinLength(20)) },
    ({ steps }) => {
      const chain = new IntrusiveList<Link>()
      const links = Array.from({ length: most }, (_, name) => link(name))
      let list: Array<number> = []
      for (const step of steps) {
        if ("name" in step) {
          const each = links[step.name] ?? link(step.name)
          const isIn = list.includes(step.name)
          if (step.does === "remove") {
            assert.strictEqual(chain.remove(each), isIn)
            list = list.filter((other) => other !== step.name)
          } else if (!isIn) {
            chain.add(each)
            list.push(step.name)
          }
        } else if (step.does === "take all") {
          assert.deepStrictEqual(
            chain.takeAll().map(({ name }) => name),
            list
          )
          list = []
        } else {
          let index = 0
          for (const each of chain) if (index++ % 2 === 0) chain.remove(each)
          list = list.filter((_, index) => index % 2 === 1)
        }
        assert.deepStrictEqual(namesIn(chain), list)
        assert.strictEqual(chain.size, list.length)
        assert.strictEqual(chain.first?.name, list[0])
        for (const each of links) assert.strictEqual(chain.has(each), list.includes(each.name))
      }
    }
  )
})
