import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { commonType, TypeFilter, TypeIndex } from "../../src/domain/type-filter.ts"
import { equalFilters, TypeChoice } from "../../src/policy/endpoint-policies.ts"

const choiceOf = (...filters: ReadonlyArray<string>) =>
  new TypeChoice(
    filters.map((filter) => [filter, filter] as const),
    "none"
  )

describe("the choice of a policy by event type", () => {
  it.each<[filters: ReadonlyArray<string>, type: string, chosen: string]>([
    [["invoice.>"], "invoice.paid", "invoice.>"],
    [["invoice.>"], "invoice", "none"],
    [["invoice.>"], "order.paid", "none"],
    [["invoice.>", "invoice.paid"], "invoice.paid", "invoice.paid"],
    [["invoice.>", "invoice.paid"], "invoice.sent", "invoice.>"],
    [[">", "*.paid", "invoice.*"], "invoice.paid", "invoice.*"],
    [[">", "*.paid", "invoice.*"], "order.paid", "*.paid"],
    [[">", "*.paid", "invoice.*"], "order.sent", ">"],
    // From the left: the first literal token that only one filter names decides.
    [["*.b.c.d", "a.>"], "a.b.c.d", "a.>"],
    [["a.*.c.d", "a.b.>"], "a.b.c.d", "a.b.>"],
    // As many from the left; further literal tokens decide.
    [["a.>", "a.*.c"], "a.b.c", "a.*.c"],
    [["a.*.*.d", "a.*.c.*"], "a.b.c.d", "a.*.c.*"],
    // As with subscriptions, Petrel's own types are selected only by name.
    [[">", "*.alert.>"], "petrel.alert.circuit-open", "none"],
    [["petrel.>", ">"], "petrel.alert.circuit-open", "petrel.>"]
  ])("of %j for %s is %s", (filters, type, chosen) => {
    assert.strictEqual(choiceOf(...filters).for(type), chosen)
    assert.strictEqual(choiceOf(...filters.toReversed()).for(type), chosen)
  })

  it("stays the same for more types than it remembers", () => {
    const choice = choiceOf("a.*", "b.*")
    for (let round = 0; round < 2; round++)
      for (let n = 0; n < 1_500; n++) {
        assert.strictEqual(choice.for(`a.${n}`), "a.*")
        assert.strictEqual(choice.for(`c.${n}`), "none")
      }
  })
})

describe("two filters", () => {
  it.each<[one: string, other: string, type: string | undefined]>([
    ["invoice.*", "invoice.>", "invoice.x"],
    [">", "*", "x"],
    [">", "*.*", "x.x"],
    ["*.>", ">", "x.x"],
    ["a.*.c", "a.*.c.>", undefined],
    ["a.*.>", "a.*", undefined],
    ["a.*.c.>", "a.*.c.*", "a.x.c.x"],
    ["a.>", "a.*.*", "a.x.x"],
    // One is more exact.
    ["a.>", "a.*.c", undefined],
    ["a.*", "*.b", undefined],
    ["a.>", "a", undefined],
    // Equally exact, and no type matches both.
    ["a.*", "b.*", undefined],
    ["*.a", "*.b", undefined],
    ["*", "*.*", undefined]
  ])("%s and %s win equally for %s", (one, other, type) => {
    for (const filters of [
      [one, other],
      [other, one]
    ])
      assert.strictEqual(equalFilters(["zz", ...filters])?.type, type)
  })

  it("are named in the order in which they are given", () => {
    assert.deepStrictEqual(equalFilters(["b", "a.>", "c.*", "a.*"])?.filters, ["a.>", "a.*"])
  })

  it("that never win equally leave one choice for every type, whatever their order", () => {
    const tokens = ["a", "b", "*"]
    const filters = ["", ".a", ".b", ".*", ".>"].flatMap((end) =>
      tokens.flatMap((token) => [`${token}${end}`, `${token}.a${end}`, `${token}.*${end}`])
    )
    const types = tokens
      .slice(0, 2)
      .flatMap((one) => [one, `${one}.a`, `${one}.b`, `${one}.a.b`, `${one}.b.a`, `${one}.b.a.b`])
    const decode = Schema.decodeUnknownSync(TypeFilter)
    let equal = 0
    for (const one of filters)
      for (const other of filters) {
        if (one === other) continue
        const found = equalFilters([decode(one), decode(other)])
        const differing = types.filter(
          (type) => choiceOf(one, other).for(type) !== choiceOf(other, one).for(type)
        )
        if (found === undefined) assert.deepStrictEqual(differing, [], `${one} ${other}`)
        else {
          equal++
          assert.notStrictEqual(
            choiceOf(one, other).for(found.type),
            choiceOf(other, one).for(found.type)
          )
        }
      }
    assert.isAbove(equal, 0)
  })
})

describe("a type that two filters have in common", () => {
  it.each<[one: string, other: string, type: string | undefined]>([
    [">", "petrel.alert.>", undefined],
    ["*.alert.*", "petrel.alert.>", undefined],
    ["petrel.>", "petrel.alert.*", "petrel.alert.x"],
    ["invoice.>", "*.paid.*", "invoice.paid.x"],
    ["a.b", "a.b", "a.b"],
    ["a.b", "a.c", undefined]
  ])("of %s and %s is %s", (one, other, type) => {
    assert.strictEqual(commonType(one, other), type)
    assert.strictEqual(commonType(other, one), type)
    if (type === undefined) return
    const index = new TypeIndex<string>()
    index.add([one], "one")
    index.add([other], "other")
    assert.sameMembers([...index.match(type)], ["one", "other"])
  })
})
