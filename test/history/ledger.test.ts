import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Block, eventsPerBlock } from "../../src/history/audit/block.ts"
import type { Scope } from "../../src/history/audit/ledger.ts"
import { Ledger } from "../../src/history/audit/ledger.ts"
import { afterStep, attemptsOf, endOf, isBegun, untold } from "../../src/history/fold/round.ts"

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const scope: Scope = {
  firstEvent: 1,
  lastEvent: 1_000_000,
  firstKept: 1,
  since: 0,
  until: Number.POSITIVE_INFINITY,
  isWhole: true
}

const plan = (...ids: ReadonlyArray<string>) => ({
  part: 0,
  last: true,
  endpoints: ids.map((id) => ({ id })),
  skipped: []
})

const routed = (eventSeq: number, ...ids: ReadonlyArray<string>) => ({
  ...{ kind: "routed", tenant: "acme", endpoint: "_", eventSeq },
  plan: plan(...ids)
})

const delivered = (eventSeq: number, endpoint: string, attempt = 1) => ({
  ...{ kind: "delivered", tenant: "acme", endpoint, eventSeq, round: "0", attempt }
})

const fill = (ledger: Ledger, facts: number) => {
  for (let n = 0; n < facts; n++) ledger.fact({ kind: "endpoint-paused" }, 0)
}

describe("a block of rounds", () => {
  it.prop(
    "holds what was put into it, as a table and packed",
    {
      puts: Schema.Array(
        Schema.Struct({
          offset: between(0, eventsPerBlock - 1),
          lane: between(1, 300),
          end: Schema.Literals(["delivered", "dead-lettered"])
        })
      )
    },
    ({ puts }) => {
      const block = new Block(0)
      const wanted = new Map<string, string>()
      for (const { end, lane, offset } of puts) {
        const key = `${offset}.${lane}`
        if (wanted.has(key)) continue
        wanted.set(key, end)
        block.set(offset, lane, afterStep(afterStep(untold, "begun"), end, 0, "attempts"))
      }
      const held = () => {
        const found = new Map<string, string>()
        block.each((offset, lane, state) => found.set(`${offset}.${lane}`, endOf(state)))
        return [...found].sort()
      }
      const all = [...wanted].sort()
      assert.deepStrictEqual(held(), all)
      assert.isTrue(block.pack())
      assert.deepStrictEqual(held(), all)
      for (const { lane, offset } of puts)
        assert.strictEqual(endOf(block.get(offset, lane)), wanted.get(`${offset}.${lane}`))
      assert.deepStrictEqual(held(), all)
    }
  )

  it("is not packed while anything in it is open or wrong", () => {
    const block = new Block(0)
    block.set(0, 1, afterStep(untold, "begun"))
    assert.isFalse(block.pack())
    block.set(0, 1, afterStep(afterStep(untold, "begun"), "delivered", 3))
    assert.isFalse(block.pack(), "an attempt is told of out of its turn")
  })
})

describe("a ledger", () => {
  it("knows a repeat and a contradiction of what ended long ago", () => {
    const ledger = new Ledger(scope)
    for (let seq = 1; seq <= 1_000; seq++) {
      ledger.fact(routed(seq, "a", "b"), 0)
      for (const id of ["a", "b"]) ledger.fact(delivered(seq, id), 0)
    }
    fill(ledger, 200_000)
    ledger.fact(delivered(7, "a"), 0)
    ledger.fact({ ...delivered(8, "b"), kind: "dead-lettered" }, 0)
    const odd: Array<string> = []
    let count = 0
    ledger.each((eventSeq, lane, state) => {
      count++
      const plain = afterStep(afterStep(untold, "begun"), "delivered", attemptsOf(state))
      if ((state & 0xfff) !== (plain & 0xfff))
        odd.push(`${eventSeq} ${ledger.lanes.get(lane).endpoint}`)
    })
    assert.strictEqual(count, 2_000)
    assert.deepStrictEqual(odd.sort(), ["7 a", "8 b"])
  })

  it("does not call missing what began after it was looked for", () => {
    const ledger = new Ledger(scope)
    ledger.fact(routed(1, "a"), 0)
    ledger.beginLooking()
    ledger.fact(routed(2, "a"), 0)
    assert.deepStrictEqual(
      ledger.open().lost.map(({ eventSeq }) => eventSeq),
      [1]
    )
    ledger.beginLooking()
    assert.isTrue(
      ledger.found({ tenant: "acme", endpoint: "a", eventSeq: 1, round: "0" }),
      "it waits"
    )
    assert.deepStrictEqual(
      ledger.open().lost.map(({ eventSeq }) => eventSeq),
      [2]
    )
  })

  it("takes back what began before the facts that are left, and nothing else", () => {
    const ledger = new Ledger({ ...scope, isWhole: true })
    const again = (eventSeq: number) => ({ ...delivered(eventSeq, "a"), round: "d1" })
    for (let seq = 1; seq <= 300; seq++) {
      ledger.event(seq)
      if (seq > 100) ledger.fact(routed(seq, "a"), 0)
      ledger.fact(delivered(seq, "a"), 0)
    }
    ledger.fact({ ...again(50), kind: "redelivered" }, 0)
    ledger.fact({ ...again(60), kind: "attempt-failed" }, 0)
    ledger.fact(routed(280, "a", "b"), 0)
    ledger.beginAt(270)
    ledger.fact(delivered(20, "a"), 0)
    const left: Array<string> = []
    ledger.each((eventSeq, lane) => {
      const { endpoint, round } = ledger.lanes.get(lane)
      left.push(`${eventSeq} ${endpoint} ${round}`)
    })
    const whole = Array.from({ length: 31 }, (_, index) => `${270 + index} a 0`)
    assert.deepStrictEqual(left.sort(), ["280 b 0", "50 a d1", ...whole].sort())
    assert.deepStrictEqual(ledger.unplanned(), [])
    const { lost } = ledger.open()
    assert.deepStrictEqual(lost.map(({ eventSeq }) => eventSeq).sort(), [280, 50])
  })

  it("lets go of what ended well, and takes what is told of it later for what is over", () => {
    const ledger = new Ledger(scope)
    for (let seq = 1; seq < 3 * eventsPerBlock; seq++) {
      ledger.event(seq)
      ledger.fact(routed(seq, "a"), 0)
      if (seq < 2 * eventsPerBlock) ledger.fact(delivered(seq, "a"), 0)
    }
    fill(ledger, 200_000)
    ledger.forgetSettled()
    ledger.fact(delivered(5, "a"), 0)
    let [count, open] = [0, 0]
    ledger.each((_, __, state) => {
      count++
      if (isBegun(state) && endOf(state) === "none") open++
    })
    assert.deepStrictEqual([count, open], [eventsPerBlock, eventsPerBlock])
    assert.strictEqual(ledger.earlier, 1)
  })
})
