import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { PendingAppend } from "../../../src/delivery/recovery/completed-deliveries.ts"
import {
  CompletedDeliveries,
  HistoryPosition
} from "../../../src/delivery/recovery/completed-deliveries.ts"

/** When messages were stored. */
const at = Date.UTC(2026, 2, 1)

describe("what an owner remembers of messages that have ended", () => {
  it("lasts for two whole waits after the one in which they ended, and not for ever", () => {
    const completed = new CompletedDeliveries(new HistoryPosition(0))
    completed.add(7, at)
    completed.rotate()
    completed.rotate()
    assert.isTrue(completed.has(7, at))
    assert.isFalse(completed.has(8, at))
    // A truncated stream has given the sequence to another message.
    assert.isFalse(completed.has(7, at + 1))
    completed.rotate()
    assert.isFalse(completed.has(7, at))
  })

  it("begins anew where one is redelivered, and ends with the redeliveries", () => {
    const completed = new CompletedDeliveries(new HistoryPosition(0))
    completed.add(7, at)
    for (let n = 0; n < 5; n++) {
      completed.rotate()
      completed.rotate()
      completed.renew(7, at)
    }
    assert.isTrue(completed.has(7, at))
    completed.renew(8, at)
    assert.isFalse(completed.has(8, at))
    for (let n = 0; n < 3; n++) completed.rotate()
    completed.renew(7, at)
    assert.isFalse(completed.has(7, at))
  })
})

describe("the floor of the history", () => {
  it("is not told before what lies below it has had two whole waits to come back", () => {
    const completed = new CompletedDeliveries(new HistoryPosition(0))
    completed.stored(10)
    assert.isUndefined(completed.rotate())
    completed.stored(20)
    assert.isUndefined(completed.rotate())
    completed.stored(30)
    assert.strictEqual(completed.rotate(), 10)
    assert.strictEqual(completed.rotate(), 20)
  })

  it("falls back where the history may have lost its end, for what is open and for what waits", () => {
    const historyPosition = new HistoryPosition(10)
    const completed = new CompletedDeliveries(historyPosition)
    completed.stored(50)
    const early = completed.open()
    completed.rotate()
    historyPosition.doubt()
    completed.stored(60)
    assert.strictEqual(historyPosition.floor.seq, 50)
    historyPosition.fallBack(20)
    completed.rotate()
    completed.stored(21)
    assert.strictEqual(completed.rotate(), 20)
    assert.strictEqual(completed.rotate(), 20)
    completed.close(early)
    completed.rotate()
    completed.rotate()
    assert.strictEqual(completed.rotate(), 21)
  })

  it("rises with what any of a worker's partitions has told", () => {
    const historyPosition = new HistoryPosition(5)
    const busy = new CompletedDeliveries(historyPosition)
    const idle = new CompletedDeliveries(historyPosition)
    busy.stored(50)
    for (const completed of [busy, idle]) {
      completed.rotate()
      completed.rotate()
      assert.strictEqual(completed.rotate(), 50)
    }
  })

  it("stays below what was redelivered, and rises when that ends", () => {
    const completed = new CompletedDeliveries(new HistoryPosition(0))
    for (const seq of [10, 20, 30]) {
      completed.stored(seq)
      completed.rotate()
    }
    completed.stored(40)
    completed.add(7, at)
    for (let n = 0; n < 4; n++) {
      completed.rotate()
      completed.renew(7, at)
    }
    assert.deepStrictEqual(
      Array.from({ length: 4 }, () => completed.rotate()),
      [30, 30, 40, 40]
    )
  })

  it("stays where it is while what a former owner ended is redelivered", () => {
    const completed = new CompletedDeliveries(new HistoryPosition(50))
    completed.add(7, at)
    for (let n = 0; n < 5; n++) {
      assert.isUndefined(completed.rotate())
      completed.renew(7, at)
    }
  })

  // Each step is a fact that is begun, stored, or let go of, a message that is redelivered after
  // that, or a wait that has passed.
  const Step = Schema.Literals(["begin", "store", "let go", "redeliver", "wait"])

  it.prop(
    "never reaches a fact whose message was let go of, or redelivered, less than two waits ago",
    [Schema.Array(Step).check(Schema.isMinLength(30))],
    ([steps]) => {
      const completed = new CompletedDeliveries(new HistoryPosition(0))
      const begun: Array<PendingAppend> = []
      const stored: Array<{ readonly mark: PendingAppend; readonly seq: number }> = []
      const released: Array<{ readonly seq: number; wait: number }> = []
      let seq = 0
      let wait = 0
      for (const step of steps) {
        if (step === "begin") begun.push(completed.open())
        else if (step === "store") {
          const mark = begun.shift()
          if (mark === undefined) continue
          stored.push({ mark, seq: ++seq })
          completed.stored(seq)
        } else if (step === "let go") {
          const fact = stored.pop()
          if (fact === undefined) continue
          completed.add(fact.seq, at)
          completed.close(fact.mark)
          released.push({ seq: fact.seq, wait })
        } else if (step === "redeliver") {
          const remembered = released.find((fact) => fact.wait > wait - 3)
          if (remembered === undefined) continue
          completed.renew(remembered.seq, at)
          remembered.wait = wait
        } else {
          wait++
          const floor = completed.rotate() ?? 0
          for (const fact of stored) assert.isBelow(floor, fact.seq)
          for (const fact of released) {
            const { seq } = fact
            if (fact.wait <= wait - 3) continue
            assert.isBelow(floor, seq)
            assert.isTrue(completed.has(seq, at))
          }
        }
      }
    }
  )
})
