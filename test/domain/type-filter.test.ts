import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { eventTypeProblem, TypeFilter, TypeIndex } from "../../src/domain/type-filter.ts"

/** Matches as NATS does, by a regular expression: nothing in common with a tree of tokens. */
const matches = (filter: string, type: string): boolean => {
  const pattern = filter
    .split(".")
    .map((token) => (token === "*" ? "[^.]+" : token === ">" ? ".+" : token))
    .join("\\.")
  return new RegExp(`^${pattern}$`).test(type)
}

const tokens = (words: ReadonlyArray<string>) =>
  Schema.Array(Schema.Literals(words)).check(Schema.isMinLength(1), Schema.isMaxLength(4))
const Type = tokens(["a", "b", "ab"])
const Filter = Schema.Struct({
  tokens: tokens(["a", "b", "ab", "*"]),
  end: Schema.Literals(["", ".>", "only >"])
})
const filterText = ({ tokens, end }: typeof Filter.Type): string =>
  end === "only >" ? ">" : `${tokens.join(".")}${end}`

const Change = Schema.Struct({
  value: Schema.Literals(["one", "two", "three", "four"]),
  remove: Schema.Boolean,
  filters: Schema.Array(Filter).check(Schema.isMinLength(1), Schema.isMaxLength(3))
})

describe("an index of type filters", () => {
  it.prop(
    "finds what looking at each filter finds, whatever was added and removed before",
    [Schema.Array(Change), Schema.Array(Type)],
    ([changes, types]) => {
      const index = new TypeIndex<string>()
      const kept = new Map<string, ReadonlyArray<string>>()
      for (const { remove, filters, value } of changes) {
        index.remove(kept.get(value) ?? [], value)
        kept.delete(value)
        if (remove) continue
        const texts = filters.map(filterText)
        index.add(texts, value)
        kept.set(value, texts)
      }
      for (const tokens of types) {
        const type = tokens.join(".")
        const expected = [...kept]
          .filter(([, filters]) => filters.some((filter) => matches(filter, type)))
          .map(([value]) => value)
        assert.sameDeepMembers([...index.match(type)], expected, type)
      }
    },
    { arbitrary: { runs: 500 } }
  )

  const found = (filters: ReadonlyArray<string>, type: string) => {
    const index = new TypeIndex<string>()
    for (const filter of filters) index.add([filter], filter)
    return [...index.match(type)].sort()
  }

  it("gives Petrel's own events to filters that name them only", () => {
    const filters = [">", "*.>", "*.alert.*", "petrel.>", "petrel.alert.*", "petrel", "petrels.>"]
    assert.deepStrictEqual(found(filters, "petrel.alert.x"), ["petrel.>", "petrel.alert.*"])
    assert.deepStrictEqual(found(filters, "petrel"), ["petrel"])
    assert.deepStrictEqual(found(filters, "petrels.alert.x"), [
      "*.>",
      "*.alert.*",
      ">",
      "petrels.>"
    ])
  })

  it("lets * stand for exactly one token and > for one or more", () => {
    const filters = ["invoice", "invoice.*", "invoice.>", "*.paid", "*.*", ">", "*"]
    assert.deepStrictEqual(found(filters, "invoice"), ["*", ">", "invoice"])
    assert.deepStrictEqual(found(filters, "invoice.paid"), [
      "*.*",
      "*.paid",
      ">",
      "invoice.*",
      "invoice.>"
    ])
    assert.deepStrictEqual(found(filters, "invoice.paid.late"), [">", "invoice.>"])
  })

  it("gives a value once however many of its filters match", () => {
    const index = new TypeIndex<number>()
    index.add(["a.*", "*.b", ">", "a.b"], 7)
    assert.deepStrictEqual([...index.match("a.b")], [7])
  })

  it("keeps the others' filters when one is removed", () => {
    const index = new TypeIndex<number>()
    index.add(["a.b", "a.>"], 1)
    index.add(["a.b"], 2)
    index.remove(["a.b", "a.>"], 1)
    index.remove(["a.b", "x.y.z"], 3)
    assert.deepStrictEqual([...index.match("a.b")], [2])
  })

  it("does not confuse tokens with the names that every object has", () => {
    assert.deepStrictEqual(found(["constructor", "__proto__.*"], "__proto__.x"), ["__proto__.*"])
    assert.deepStrictEqual(found(["a"], "toString"), [])
  })
})

describe("a type filter", () => {
  const isFilter = Schema.is(TypeFilter)

  it("is tokens and wildcards, > last", () => {
    for (const filter of [
      "invoice.paid",
      "invoice",
      "invoice.>",
      "*.created",
      "a.*.b.>",
      "*",
      ">",
      "A-b_9",
      "x".repeat(64)
    ])
      assert.isTrue(isFilter(filter), filter)
  })

  it("is nothing else", () => {
    for (const filter of [
      "",
      ".",
      "a.",
      ".a",
      "a..b",
      ">.a",
      "a.>.b",
      ">.>",
      "a*",
      "a.b>",
      "**",
      "a b",
      "a.b ",
      "é",
      "a/b",
      "x".repeat(65),
      `${"x.".repeat(100)}y`
    ])
      assert.isFalse(isFilter(filter), filter)
  })

  const Text = tokens(["a", "b-", "_", "*", ">", "", "a b", "x".repeat(64), "x".repeat(65)])
  it.prop("may be any event type, and a wildcard is no event type", [Text], ([words]) => {
    const text = words.join(".")
    const isType = eventTypeProblem(text) === undefined
    assert.strictEqual(isType, isFilter(text) && !/[*>]/.test(text), text)
  })
})

describe("an event type", () => {
  it("is fine as tokens separated by dots", () => {
    for (const type of ["invoice", "invoice.paid", "a.b.c.d", "A-b_9", "x".repeat(64)])
      assert.isUndefined(eventTypeProblem(type), type)
  })

  it("that is missing or too long is told so", () => {
    assert.strictEqual(eventTypeProblem(""), "the type is missing")
    assert.isUndefined(eventTypeProblem(`${"x.".repeat(99)}xx`))
    assert.strictEqual(
      eventTypeProblem(`${"x.".repeat(100)}x`),
      "the type is longer than 200 characters"
    )
  })

  it("with a token that is none is told which", () => {
    const cases = { "a.b c": "b c", "a..b": "", "a.*": "*", "invoice.>": ">", "ü.a": "ü", "a.": "" }
    for (const [type, token] of Object.entries(cases))
      assert.strictEqual(
        eventTypeProblem(type),
        `the type's token ${JSON.stringify(token)} must be 1 to 64 letters, digits, - or _`
      )
    const long = "x".repeat(120)
    assert.include(eventTypeProblem(long) ?? "", JSON.stringify("x".repeat(80)))
  })
})
