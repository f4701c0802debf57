import { assert, describe, it } from "@effect/vitest"
import {
  type FilteredReading,
  isFasterUnfiltered,
  subjectMatcher
} from "../../src/broker/filters.ts"

const two = ["h.*._.ok.routed", "h.*.*.ok.delivered"]
const many: FilteredReading = { filters: two, matches: 90_000, total: 120_000, subjects: 10_000 }

describe("a reading through filters", () => {
  for (const [what, reading, faster] of [
    ["is faster without them where most match", {}, true],
    ["is faster without them where some match, and subjects are many", { matches: 2_000 }, true],
    ["is faster with them where few match", { matches: 100 }, false],
    ["is faster with them where subjects are few", { matches: 2_000, subjects: 40 }, false],
    ["is faster without a wildcard that most match", { filters: ["h.bench.>"] }, true],
    ["is faster with a wildcard that few match", { filters: ["h.a.>"], matches: 5_000 }, false],
    ["is faster with one subject, however many match", { filters: ["h.a._.ok.routed"] }, false],
    ["is the same without a filter", { filters: [">"], matches: 120_000 }, false]
  ] satisfies ReadonlyArray<readonly [string, Partial<FilteredReading>, boolean]>)
    it(what, () => assert.strictEqual(isFasterUnfiltered({ ...many, ...reading }), faster))
})

describe("a subject", () => {
  for (const [filters, subject, matches] of [
    [two, "h.acme._.ok.routed", true],
    [two, "h.acme.hook.ok.delivered", true],
    [two, "h.acme.hook.ok.delivered-late", false],
    [two, "h.acme.hook.ok", false],
    [two, "xh.acme.hook.ok.delivered", false],
    [["h.acme.>"], "h.acme.hook.ok.delivered", true],
    [["h.acme.>"], "h.acme", false],
    [["h.a-c$me+.*"], "h.a-c$me+.x", true],
    [["h.a.b"], "h.aXb", false],
    [[">"], "h", true],
    [[], "h", false]
  ] satisfies ReadonlyArray<readonly [ReadonlyArray<string>, string, boolean]>)
    it(`${subject} ${matches ? "matches" : "does not match"} ${filters.join(", ") || "nothing"}`, () =>
      assert.strictEqual(subjectMatcher(filters)(subject), matches))
})
