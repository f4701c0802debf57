import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Table } from "../../../src/domain/settings/setting.ts"
import {
  always,
  byName,
  changeProblems,
  column,
  emptied,
  hides,
  initialOf,
  maskedOf,
  namesOfChanged,
  removable,
  settingsAfter,
  textsOf,
  toldOf,
  withoutSettings
} from "../../../src/domain/settings/setting.ts"

const Policy = Schema.Struct({
  limit: Schema.optionalKey(Schema.Int),
  mode: Schema.optionalKey(Schema.Literals(["a", "b"]))
})
const Login = Schema.Struct({ user: Schema.String, password: Schema.String })

const lowerCase = (name: string): string | undefined =>
  /^[a-z]+$/i.test(name) ? undefined : "must be letters"

const settings = {
  size: always(Schema.Int, 3, { text: "How large it is.", usual: "3" }),
  label: removable(Schema.String, { text: "Its label." }),
  hosts: removable(Schema.Array(Schema.String), { text: "Where from.", usual: "anywhere" }),
  policy: emptied(Policy, { text: "What happens.", usual: "{}" }),
  tags: {
    ...emptied(Schema.Record(Schema.String, Schema.Int), { text: "Tags." }),
    ...byName({
      value: Schema.Int,
      nameProblem: lowerCase,
      fold: (name) => name.toLowerCase(),
      unknown: "is no tag",
      most: { count: 2, sentence: "at most 2 are kept" }
    })
  },
  login: {
    ...removable(Login, { text: "How it logs in." }),
    ...hides(
      "that it is set",
      Schema.optionalKey(Schema.Literal(true)),
      (_: typeof Login.Type) => true as const,
      ({ user }) => ({ user, password: "****" })
    )
  }
} as const satisfies Table

const before = { size: 5, label: "old", policy: { limit: 1 }, tags: { A: 1, b: 2 } }
const login = { user: "ana", password: "hush" }

describe("a table of settings", () => {
  it("says what a new thing has, and what else a thing has", () => {
    assert.deepStrictEqual(initialOf(settings), { size: 3 })
    assert.deepStrictEqual(withoutSettings(settings, { ...before, id: "x" }), { id: "x" })
  })

  it("says what may be asked for: null only where it removes something", () => {
    const patch = Schema.decodeUnknownOption(Schema.Struct(column(settings, "patch")))
    for (const [value, isAllowed] of [
      [{ label: null, tags: { a: null }, login: null, policy: {} }, true],
      [{ size: null }, false],
      [{ policy: null }, false],
      [{ tags: { "a.b": 1 } }, false]
    ] as const)
      assert.strictEqual(patch(value)._tag === "Some", isAllowed, JSON.stringify(value))
    const given = Schema.decodeUnknownOption(Schema.Struct(column(settings, "given")))
    assert.strictEqual(given({ label: null })._tag, "None")
    assert.strictEqual(given({ tags: { a: null } })._tag, "None")
  })

  it.each<
    [patch: Parameters<typeof settingsAfter<typeof settings>>[2], after: Record<string, unknown>]
  >([
    [{}, before],
    [
      { size: 7, label: undefined },
      { ...before, size: 7 }
    ],
    [{ label: null }, { size: 5, policy: { limit: 1 }, tags: { A: 1, b: 2 } }],
    [{ hosts: [] }, { ...before, hosts: [] }],
    [{ policy: { mode: "a" } }, { ...before, policy: { mode: "a" } }],
    [{ policy: {} }, { size: 5, label: "old", tags: { A: 1, b: 2 } }],
    [{ tags: { b: 3 } }, { ...before, tags: { A: 1, b: 3 } }],
    [{ tags: { a: 4 } }, { ...before, tags: { b: 2, a: 4 } }],
    [{ tags: { a: null, B: null } }, { size: 5, label: "old", policy: { limit: 1 } }],
    [{ login }, { ...before, login }]
  ])("applies a change, setting by setting: %o", (patch, after) => {
    assert.deepStrictEqual(settingsAfter(settings, before, patch), after)
  })

  it("keeps the order of entries, whose values are replaced in place", () => {
    const { tags = {} } = settingsAfter(settings, before, { tags: { A: 9 } })
    assert.deepStrictEqual(Object.entries(tags), [
      ["A", 9],
      ["b", 2]
    ])
  })

  it("changes tens of thousands of entries in a moment", () => {
    const tags = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`T${at}`, at]))
    const began = performance.now()
    const after = settingsAfter(settings, before, { tags })
    // Each with each took a minute.
    assert.isBelow(performance.now() - began, 5_000)
    assert.lengthOf(Object.keys(after.tags ?? {}), 50_002)
  })

  it("refuses to remove what is not there, and more than is kept", () => {
    const patch = { tags: { c: 1, d: null } }
    assert.deepStrictEqual(changeProblems(settings, before, patch), [
      { field: "tags.d", message: "is no tag" },
      { field: "tags", message: "would be 3, and at most 2 are kept" }
    ])
    assert.deepStrictEqual(changeProblems(settings, before, { tags: { a: null, c: 1 } }), [])
  })

  it("tells the history and shows people no credentials", () => {
    const stored = { ...before, login }
    assert.deepStrictEqual(toldOf(settings, stored), { ...before, login: true })
    assert.deepStrictEqual(maskedOf(settings, stored), {
      ...{ ...before, login: { user: "ana", password: "****" } }
    })
  })

  it("says what each does, and its default", () => {
    assert.deepInclude(textsOf(settings), {
      size: "How large it is. (Default: 3)",
      label: "Its label."
    })
  })

  it("names what differs, whatever the order of its parts", () => {
    const after = { size: 5, policy: { limit: 2 }, tags: { b: 2, A: 1 } }
    assert.deepStrictEqual(namesOfChanged(before, after), ["label", "policy"])
  })
})
