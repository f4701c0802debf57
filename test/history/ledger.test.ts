import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Ledger } from "../../src/history/audit/ledger.ts"
import { Block, eventsPerBlock } from "../../src/history/audit/ledger-memory.ts"
import type { Scope } from "../../src/history/audit/reach.ts"
import {
  afterStep,
  attemptsOf,
  endOf,
  isBegun,
  isSettled,
  unrecorded
} from "../../src/history/fold/round.ts"

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** When every event was stored; the facts are stored at 0, which clocks may differ by. */
const eventAt = 1

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
  ...{ kind: "routed", tenant: "acme", endpoint: "_", eventSeq, eventAt },
  plan: plan(...ids)
})

const delivered = (eventSeq: number, endpoint: string, attempt = 1) => ({
  ...{ kind: "delivered", tenant: "acme", endpoint, eventSeq, eventAt, round: "0", attempt }
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
        block.set(offset, lane, afterStep(afterStep(unrecorded, "begun"), end, 0, "attempts"))
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
    block.set(0, 1, afterStep(unrecorded, "begun"))
    assert.isFalse(block.pack())
    block.set(0, 1, afterStep(afterStep(unrecorded, "begun"), "delivered", 3))
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
      const plain = afterStep(afterStep(unrecorded, "begun"), "delivered", attemptsOf(state))
      if ((state & 0xfff) !== (plain & 0xfff))
        odd.push(`${eventSeq} ${ledger.lanes.get(lane).endpoint}`)
    })
    assert.strictEqual(count, 2_000)
    assert.deepStrictEqual(odd.sort(), ["7 a", "8 b"])
  })

  it("takes the plan of an event from the end of its only delivery", () => {
    const ledger = new Ledger(scope)
    ledger.event(1, eventAt)
    ledger.event(2, eventAt)
    const told = { ...delivered(1, "a"), plan: plan("a") }
    assert.isUndefined(ledger.fact(told, 0))
    assert.deepStrictEqual(ledger.unplanned(), [{ eventSeq: 2, isBegun: false }])
    const about = { tenant: "acme", endpoint: "a", eventSeq: 1, eventAt, round: "0" }
    assert.isTrue(isSettled(ledger.stateOf(about)))
    // Another plan beside it, and what only looks like one.
    assert.strictEqual(ledger.fact(routed(1, "b"), 0), "plans-differ")
    assert.strictEqual(ledger.fact({ ...delivered(2, "a"), plan: {} }, 0), "unreadable-fact")
  })

  it("does not call missing what began after it was looked for", () => {
    const ledger = new Ledger(scope)
    ledger.fact(routed(1, "a"), 0)
    ledger.beginLooking()
    ledger.fact(routed(2, "a"), 0)
    assert.deepStrictEqual(
      ledger.open(() => false).lost.map(({ eventSeq }) => eventSeq),
      [1]
    )
    ledger.beginLooking()
    assert.isTrue(
      ledger.found({ tenant: "acme", endpoint: "a", eventSeq: 1, eventAt, round: "0" }),
      "it waits"
    )
    assert.deepStrictEqual(
      ledger.open(() => false).lost.map(({ eventSeq }) => eventSeq),
      [2]
    )
  })

  it("does not call missing what is with an event that the router has in hand", () => {
    const ledger = new Ledger(scope)
    const again = { tenant: "acme", endpoint: "a", eventAt, round: "d1" }
    for (const seq of [1, 2, 3]) {
      ledger.fact(routed(seq, "a", "b"), 0)
      ledger.fact(delivered(seq, "b"), 0)
    }
    // What begins a further round is stored nowhere but in the queue.
    for (const eventSeq of [1, 3]) ledger.fact({ ...again, kind: "redelivered", eventSeq }, 0)
    ledger.beginLooking()
    const openWhere = (mayBeUnderWay: (eventSeq: number) => boolean) => {
      const { found, lost } = ledger.open(({ eventSeq }) => mayBeUnderWay(eventSeq))
      return { found, lost: lost.map(({ eventSeq, round }) => `${eventSeq} ${round}`).sort() }
    }
    assert.deepStrictEqual(
      openWhere(() => false),
      { found: 0, lost: ["1 0", "1 d1", "2 0", "3 0", "3 d1"] }
    )
    assert.deepStrictEqual(
      openWhere((eventSeq) => eventSeq > 1),
      { found: 2, lost: ["1 0", "1 d1", "3 d1"] }
    )
    // It is counted once, though it was also seen in its queue.
    ledger.found({ tenant: "acme", endpoint: "a", eventSeq: 2, eventAt, round: "0" })
    assert.strictEqual(openWhere((eventSeq) => eventSeq > 1).found, 2)
    ledger.fact(delivered(2, "a"), 0)
    assert.strictEqual(openWhere((eventSeq) => eventSeq > 1).found, 1)
  })

  it("takes back what began before the facts that are left, and nothing else", () => {
    const ledger = new Ledger({ ...scope, isWhole: true })
    const again = (eventSeq: number) => ({ ...delivered(eventSeq, "a"), round: "d1" })
    for (let seq = 1; seq <= 300; seq++) {
      ledger.event(seq, eventAt)
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
    const { lost } = ledger.open(() => false)
    assert.deepStrictEqual(lost.map(({ eventSeq }) => eventSeq).sort(), [280, 50])
  })

  it("lets go of what ended well, and takes what is told of it later for what is over", () => {
    const ledger = new Ledger(scope)
    for (let seq = 1; seq < 3 * eventsPerBlock; seq++) {
      ledger.event(seq, eventAt)
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

  it("keeps what has no plan yet, or is wrong, and lets go of what is well beyond it", () => {
    const ledger = new Ledger(scope)
    const last = 6 * eventsPerBlock
    const [unplanned, wrong] = [eventsPerBlock + 5, 3 * eventsPerBlock + 5]
    for (let seq = 1; seq <= last; seq++) {
      ledger.event(seq, eventAt)
      if (seq === unplanned) continue
      // Events of the third block are for nobody.
      const isForNobody = Math.floor(seq / eventsPerBlock) === 2
      ledger.fact(isForNobody ? routed(seq) : routed(seq, "a"), 0)
      if (!isForNobody) ledger.fact(delivered(seq, "a", seq === wrong ? 3 : 1), 0)
    }
    const held = () => {
      const blocks = new Set<number>()
      ledger.each((eventSeq) => blocks.add(Math.floor(eventSeq / eventsPerBlock)))
      return [...blocks].sort()
    }
    fill(ledger, 200_000)
    ledger.forgetSettled()
    assert.deepStrictEqual(held(), [1, 3, 6])
    assert.deepStrictEqual(ledger.unplanned(), [{ eventSeq: unplanned, isBegun: false }])

    // What is told of what was let go is over, and what is told of what was kept is not.
    ledger.fact(delivered(4 * eventsPerBlock, "a"), 0)
    ledger.fact(routed(unplanned, "a"), 0)
    ledger.fact(delivered(unplanned, "a"), 0)
    assert.strictEqual(ledger.earlier, 1)
    assert.deepStrictEqual(ledger.unplanned(), [])
    fill(ledger, 200_000)
    ledger.forgetSettled()
    assert.deepStrictEqual(held(), [3, 6])
  })

  it("keeps no names of rounds and no dead letters of what it let go", () => {
    const ledger = new Ledger(scope)
    const last = 2 * eventsPerBlock
    for (let seq = 1; seq <= last; seq++) {
      ledger.event(seq, eventAt)
      ledger.fact(routed(seq, "a"), 0)
      const end = { ...delivered(seq, "a", 0), kind: "dead-lettered" }
      ledger.fact({ ...end, dead: 2 * seq }, 0)
      const again = { ...end, round: `d${2 * seq}` }
      ledger.fact({ ...again, kind: "redelivered" }, 0)
      ledger.fact({ ...again, dead: 2 * seq + 1 }, 0)
      if (seq % 2 === 0) ledger.fact({ ...end, kind: "discarded", dead: 2 * seq }, 0)
    }
    fill(ledger, 200_000)
    assert.strictEqual(ledger.lanes.size, 1 + last)
    ledger.forgetSettled()
    // The last event is in a block of which more may come.
    assert.strictEqual(ledger.lanes.size, 2)
    assert.deepStrictEqual(
      [...ledger.deadEnds.all()].map(({ dead }) => dead),
      [2 * last + 1]
    )
    const lane = ledger.lanes.find("acme", "a", "0") ?? 0
    const isDiscarded = (eventSeq: number) =>
      ledger.deadEnds.isDiscarded({ dead: 2 * eventSeq, eventSeq, lane })
    assert.isFalse(isDiscarded(2))
    assert.isTrue(isDiscarded(last))
    // What is named anew has nothing to do with what had its number.
    ledger.event(last + 1, eventAt)
    ledger.fact(routed(last + 1, "b"), 0)
    ledger.fact(routed(last + 2, "c"), 0)
    const named: Array<string> = []
    ledger.each((seq, lane) => named.push(`${seq} ${ledger.lanes.get(lane).endpoint}`))
    assert.includeMembers(named, [`${last + 1} b`, `${last + 2} c`])
  })
})
