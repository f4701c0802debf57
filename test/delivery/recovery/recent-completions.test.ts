import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { RecentCompletions } from "../../../src/delivery/recovery/recent-completions.ts"

const Entry = Schema.Struct({
  key: Schema.Literals(["acme.a", "acme.b", "zeta.a"]),
  eventSeq: Schema.Literals([1, 2, 64, 65, 129, 2 ** 32 + 1, 2 ** 53 - 1]),
  at: Schema.Int
})

describe("the table of deliveries that have ended", () => {
  it.prop(
    "knows each one's time as a Map would",
    [Schema.Array(Entry), Schema.Array(Entry)],
    ([entries, asked]) => {
      const table = new RecentCompletions()
      const model = new Map<string, number>()
      for (const { at, eventSeq, key } of entries) {
        table.set(key, eventSeq, at)
        model.set(`${key} ${eventSeq}`, at)
      }
      assert.strictEqual(table.size, model.size)
      for (const { eventSeq, key } of [...entries, ...asked])
        assert.strictEqual(table.get(key, eventSeq), model.get(`${key} ${eventSeq}`))
    }
  )

  it("keeps as many as come, for few endpoints and for many", () => {
    for (const endpoints of [1, 7, 5_000]) {
      const table = new RecentCompletions(100)
      for (let seq = 1; seq <= 10_000; seq++) table.set(`acme.${seq % endpoints}`, seq, -seq)
      assert.strictEqual(table.size, 10_000)
      for (let seq = 1; seq <= 10_000; seq++) {
        assert.strictEqual(table.get(`acme.${seq % endpoints}`, seq), -seq)
        assert.isUndefined(table.get(`acme.${seq % endpoints}`, seq + 10_000))
        assert.isUndefined(table.get(`acme.${(seq % endpoints) + 1}`, seq))
      }
    }
  })

  it("is empty once it was emptied, and is used again where it has the size for it", () => {
    const table = new RecentCompletions(1_000)
    for (let seq = 1; seq <= 1_000; seq++) table.set("acme.a", seq, seq)
    const again = table.emptied(900)
    assert.strictEqual(again, table)
    assert.strictEqual(again.size, 0)
    for (let seq = 1; seq <= 1_000; seq++) assert.isUndefined(again.get("acme.a", seq))
    again.set("acme.b", 1, 7)
    assert.strictEqual(again.get("acme.b", 1), 7)
    assert.isUndefined(again.get("acme.a", 1))
    assert.notStrictEqual(table.emptied(100), table)
    assert.notStrictEqual(table.emptied(10_000), table)
  })

  it("keeps one event's deliveries to many endpoints apart", () => {
    const table = new RecentCompletions()
    for (let number = 0; number < 10_000; number += 2) table.set(`acme.${number}`, 7, number)
    for (let number = 0; number < 10_000; number++)
      assert.strictEqual(table.get(`acme.${number}`, 7), number % 2 === 0 ? number : undefined)
  })
})
