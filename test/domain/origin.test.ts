import { assert, describe, it } from "@effect/vitest"
import { originName, Repeats, readOrigin, readRepeat, repeatOf } from "../../src/domain/origin.ts"

describe("where a source took an event", () => {
  it("is read from what servers of before and now write", () => {
    assert.deepStrictEqual(readOrigin("EVENTS:vtwkJJ7r 12 events.acme.> > events.acme.a xP9e"), {
      stream: "EVENTS:vtwkJJ7r",
      seq: 12
    })
    assert.deepStrictEqual(readOrigin("OWN 7"), { stream: "OWN", seq: 7 })
    for (const none of [undefined, "", "OWN", "OWN x", "OWN 7x"])
      assert.isUndefined(readOrigin(none))
  })

  it("is another for each tenant", () => {
    const origin = { stream: "EVENTS", seq: 1 }
    assert.notStrictEqual(originName("acme", origin), originName("globex", origin))
  })

  it("shows what a source brings again, by tenant and stream", () => {
    const repeats = new Repeats()
    const brought = [
      ["acme", "A", 1],
      ["acme", "A", 2],
      ["globex", "A", 1],
      ["acme", "B", 1],
      ["acme", "A", 1],
      ["acme", "A", 2],
      ["acme", "A", 4]
    ] as const
    assert.deepStrictEqual(
      brought.map(([tenant, stream, seq]) => repeats.isRepeat(tenant, { stream, seq })),
      [false, false, false, false, true, true, false]
    )
  })

  it("is named in the plan of a repeat, by the first of the two events", () => {
    const first = { eventSeq: 12, eventAt: 1_700_000_000_000 }
    assert.deepStrictEqual(readRepeat(repeatOf(first)), first)
    for (const other of [undefined, "", "planned-otherwise", "repeats-", 3])
      assert.isUndefined(readRepeat(other))
  })
})
