import { assert, describe, it } from "@effect/vitest"
import { makeNames, readRestart } from "../../src/domain/names.ts"
import {
  channelOf,
  isBroughtAgain,
  originName,
  Repeats,
  readOrigin,
  readRepeat,
  repeatOf
} from "../../src/domain/origin.ts"

const restart = { number: 2, start: 4, lostThrough: 6, copiedThrough: 9 }

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

  it("names the last restart of the source", () => {
    const { restart: subjectOf } = makeNames("P_A_").subjects
    assert.deepStrictEqual(readRestart(subjectOf(restart)), restart)
    const header = `EVENTS 5 events.acme.>\f${subjectOf(restart)} events.acme.>\f> events.acme.a x`
    assert.deepStrictEqual(readOrigin(header), { stream: "EVENTS", seq: 5, restart })
    for (const none of ["", "p.restarted.1.2.3", `${subjectOf(restart)}.4`, "restarted.1.2.3.4"])
      assert.isUndefined(readRestart(none))
  })

  it("is another where a lost sequence was given again, and a repeat beyond", () => {
    const brought = [3, 4, 6, 7, 9, 10].map((seq) => {
      const origin = { stream: "A", seq, restart }
      const isNamedAnew = originName("acme", origin) !== originName("acme", { stream: "A", seq })
      return [seq, isNamedAnew, isBroughtAgain(origin)]
    })
    assert.deepStrictEqual(brought, [
      [3, true, false],
      [4, true, false],
      [6, true, false],
      [7, false, true],
      [9, false, true],
      [10, false, false]
    ])
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

  it("shows what a restarted source brings again, though the first is not shown", () => {
    const repeats = new Repeats()
    const brought = [
      [4, undefined],
      [5, undefined],
      [4, restart],
      [4, restart],
      [5, restart],
      [7, restart],
      [10, restart]
    ] as const
    assert.deepStrictEqual(
      brought.map(([seq, restart]) =>
        repeats.isRepeat("acme", {
          stream: "A",
          seq,
          ...(restart === undefined ? {} : { restart })
        })
      ),
      [false, false, false, true, false, true, false]
    )
  })

  it("is named in the plan of a repeat, by the first of the two events", () => {
    const first = { eventSeq: 12, eventAt: 1_700_000_000_000 }
    assert.deepStrictEqual(readRepeat(repeatOf(first)), first)
    assert.strictEqual(readRepeat(repeatOf("restart")), "restart")
    for (const other of [undefined, "", "planned-otherwise", "repeats-", 3])
      assert.isUndefined(readRepeat(other))
  })
})

const channelIn = (headers: Readonly<Record<string, string>>) => channelOf((name) => headers[name])

describe("how an event came", () => {
  it.each([
    [{ "nats-stream-source": "ORDERS 12 > > orders.>" }, "stream:ORDERS"],
    [{ "nats-stream-source": "ORDERS 12", "petrel-channel": "http" }, "stream:ORDERS"],
    [{ "petrel-channel": "http" }, "http"],
    [{ "petrel-channel": "nats-api" }, "nats-api"],
    [{ "petrel-channel": "something else" }, undefined],
    [{}, undefined]
  ])("is told by %j: %s", (headers, channel) => {
    assert.strictEqual(channelIn(headers), channel)
  })
})
