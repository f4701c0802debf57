import { assert, describe, it } from "@effect/vitest"
import { HashMap, Schema } from "effect"
import type { Fact } from "../../src/domain/fact.ts"
import { Ledger } from "../../src/history/audit/ledger.ts"
import { Block } from "../../src/history/audit/ledger-memory.ts"
import { deliveryKey, viewOf } from "../../src/history/fold/delivery.ts"
import type { Step } from "../../src/history/fold/round.ts"
import {
  afterStep,
  endOf,
  isContradicted,
  isLate,
  isOutOfTurn,
  isRepeated,
  isSettled,
  reasonOf,
  unrecorded
} from "../../src/history/fold/round.ts"

const begun = afterStep(unrecorded, "begun")

/** The first attempt, as two workers made it, or the end of its round. */
const after = (steps: ReadonlyArray<Step>, from = begun) =>
  steps.reduce((round, step) => afterStep(round, step, 1, "permanent"), from)

const how = (round: number) => ({
  end: endOf(round),
  late: isLate(round),
  repeated: isRepeated(round),
  contradicted: isContradicted(round),
  outOfTurn: isOutOfTurn(round)
})

const late: ReturnType<typeof how> = {
  ...{ end: "delivered", late: true, repeated: false, contradicted: false },
  outOfTurn: false
}

/** An owner tells of an attempt before it ends the round. */
const isRecorded = (steps: ReadonlyArray<Step>): boolean =>
  !steps.includes("dead-lettered") ||
  steps.slice(0, steps.indexOf("dead-lettered")).includes("attempt-failed")

const orders = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  all.length < 2
    ? [all]
    : all.flatMap((one, index) => orders(all.toSpliced(index, 1)).map((rest) => [one, ...rest]))

describe("a round whose dead letter was discarded", () => {
  const discarded = { ...late, end: "discarded", late: false } as const

  it("ends so, though its dead letter was found before its fact was stored", () => {
    const early = after(["attempt-failed", "discarded"])
    assert.deepStrictEqual(how(early), { ...discarded, contradicted: true })
    assert.isFalse(isSettled(early))
    const told = afterStep(early, "dead-lettered", 1, "attempts")
    assert.deepStrictEqual(how(told), discarded)
    assert.isTrue(isSettled(told))
    assert.strictEqual(reasonOf(told), "attempts")
    const usual = after(["attempt-failed"])
    assert.strictEqual(
      afterStep(afterStep(usual, "dead-lettered", 1, "attempts"), "discarded"),
      told
    )
    // What a crash repeats.
    assert.deepStrictEqual(
      how(afterStep(afterStep(early, "discarded"), "dead-lettered", 1)),
      discarded
    )
    assert.deepStrictEqual(how(afterStep(told, "discarded")), discarded)
  })

  it("contradicts a delivery, in either order", () => {
    for (const steps of [
      ["discarded", "delivered"],
      ["delivered", "discarded"]
    ] as const)
      assert.isTrue(isContradicted(after(steps)), steps.join())
  })
})

describe("a round that a former owner delivered", () => {
  for (const [others, repeated] of [
    [[], false],
    [["attempt-failed"], false],
    [["attempt-failed", "dead-lettered"], false],
    [["attempt-failed", "dead-lettered", "dead-lettered"], false],
    [["delivered"], true],
    [["delivered-late"], true],
    [["attempt-failed", "dead-lettered", "delivered"], true],
    [["attempt-failed", "dead-lettered", "delivered-late"], true]
  ] as const)
    it(`is delivered late, in whatever order that is told beside ${others.join(", ") || "nothing"}`, () => {
      for (const order of orders<Step>(["delivered-late", ...others]).filter(isRecorded))
        assert.deepStrictEqual(how(after(order)), { ...late, repeated }, order.join())
    })

  it("stays delivered though its dead letter is discarded", () => {
    for (const order of [
      ["attempt-failed", "dead-lettered", "discarded", "delivered-late"],
      ["attempt-failed", "dead-lettered", "delivered-late", "discarded"],
      ["attempt-failed", "delivered-late", "dead-lettered", "discarded"]
    ] as const)
      assert.deepStrictEqual(how(after(order)), late, order.join())
  })

  it.prop(
    "is settled, whatever else of the kind is told",
    {
      before: Schema.Array(
        Schema.Literals(["attempt-failed", "delivered", "delivered-late", "dead-lettered"])
      ),
      rest: Schema.Array(
        Schema.Literals(["attempt-failed", "delivered", "dead-lettered", "discarded"])
      )
    },
    ({ before, rest }) => {
      const round = after(["attempt-failed", ...before, "delivered-late", ...rest])
      assert.isTrue(isSettled(round))
      assert.isTrue(isLate(round))
      assert.strictEqual(endOf(round), "delivered")
    }
  )

  it("still is when it is packed, and resolves what was packed", () => {
    const block = new Block(0)
    block.set(0, 1, after(["attempt-failed", "dead-lettered", "delivered-late"]))
    block.set(1, 1, after(["attempt-failed", "dead-lettered"]))
    assert.isTrue(block.pack())
    assert.deepStrictEqual(how(block.get(0, 1)), late)
    assert.deepStrictEqual(how(after(["dead-lettered"], block.get(0, 1))), late)
    assert.deepStrictEqual(how(after(["delivered-late"], block.get(1, 1))), late)
  })

  it("is no contradiction to the audit", () => {
    const ledger = new Ledger({
      ...{ firstEvent: 1, lastEvent: 10, firstKept: 1, since: 0 },
      ...{ until: Number.POSITIVE_INFINITY, isWhole: true }
    })
    const about = { tenant: "acme", endpoint: "hook", eventSeq: 1, eventAt: 1, round: "0" }
    const plan = { part: 0, last: true, endpoints: [{ id: "hook" }], skipped: [] }
    ledger.fact({ ...about, kind: "routed", endpoint: "_", plan }, 0)
    ledger.fact({ ...about, kind: "attempt-failed", attempt: 1 }, 0)
    ledger.fact({ ...about, kind: "dead-lettered", attempt: 1, reason: "permanent", dead: 1 }, 0)
    ledger.fact({ ...about, kind: "delivered-late", attempt: 1 }, 0)
    assert.deepStrictEqual(how(ledger.stateOf(about)), late)
    assert.strictEqual(ledger.attempts, 2)
  })
})

describe("the life of a delivery that a former owner made", () => {
  const fact = (kind: Fact["kind"], at: number, more: Partial<Fact>): Fact => ({
    v: 1,
    kind,
    at,
    tenant: "acme",
    endpoint: "hook",
    event: "acme.1",
    eventSeq: 1,
    eventAt: 1,
    round: "0",
    ...more
  })
  const planned = { id: "hook", generation: "g", revision: 1, deadline: 9_000 }
  const plan = { part: 0, last: true, endpoints: [planned], skipped: [] }
  const routed = fact("routed", 1, { endpoint: "_", plan })
  const failed = fact("attempt-failed", 4, { attempt: 1, status: 409, worker: "w2" })
  const dead = fact("dead-lettered", 5, { attempt: 1, reason: "permanent", dead: 7 })
  const lateSuccess = fact("delivered-late", 3, { attempt: 1, status: 200, worker: "w1" })
  const viewed = (...facts: ReadonlyArray<Fact>) => {
    const { deliveries, endpoints, totals } = viewOf([routed, ...facts])
    return {
      rounds: HashMap.getUnsafe(
        deliveries,
        deliveryKey({ eventSeq: 1, eventAt: 1 }, "acme", "hook")
      ).rounds,
      endpoint: HashMap.getUnsafe(endpoints, "acme.hook"),
      totals: HashMap.getUnsafe(totals, "acme.0")
    }
  }

  for (const [name, facts] of [
    ["after", [failed, dead, lateSuccess]],
    ["before", [lateSuccess, failed, dead]],
    ["between", [failed, lateSuccess, dead]]
  ] as const)
    it(`shows which dead letter the success resolves that is recorded ${name}`, () => {
      const [round] = viewed(...facts).rounds
      assert.deepStrictEqual(round?.end, { at: 3, dead: 7, late: true })
      assert.strictEqual(round?.repeats, 0)
      assert.deepStrictEqual(
        round?.attempts.map(({ isSuccess, worker }) => [isSuccess, worker]).toSorted(),
        [
          [false, "w2"],
          [true, "w1"]
        ]
      )
    })

  it("counts the success, and leaves the endpoint's health to its owner", () => {
    const { endpoint, totals } = viewed(failed, dead, lateSuccess)
    assert.strictEqual(endpoint.health.permanentInRow, 1)
    assert.deepInclude(totals, { delivered: 1, deliveredLate: 1, deadLettered: 1 })
  })
})
