import { assert, describe, it } from "@effect/vitest"
import { RecentEvents } from "../../src/projection/recent-events.ts"

const million = 1_000_000

describe("the events that facts have told of", () => {
  it("are known from their first fact on, in any order", () => {
    const recent = new RecentEvents(0)
    for (const seq of [5, 3, 9]) assert.isFalse(recent.mayBeKnown(seq))
    for (const seq of [9, 5, 3]) assert.isTrue(recent.mayBeKnown(seq))
    for (const seq of [4, 8, 10]) assert.isFalse(recent.mayBeKnown(seq))
    assert.strictEqual(recent.newest, 10)
  })

  it("may be any that were there before it was asked", () => {
    const recent = new RecentEvents(100)
    assert.isTrue(recent.mayBeKnown(7))
    assert.isFalse(recent.mayBeKnown(101))
  })

  it("may be any that are too old to be known one by one", () => {
    const recent = new RecentEvents(0)
    recent.mayBeKnown(1)
    recent.mayBeKnown(2 * million)
    assert.isFalse(recent.mayBeKnown(2))
    recent.mayBeKnown(30 * million)
    assert.isTrue(recent.mayBeKnown(3))
    assert.isFalse(recent.mayBeKnown(30 * million - 1))
    assert.isTrue(recent.mayBeKnown(30 * million))
  })

  it("forgets what stood at the place of a newer one", () => {
    const recent = new RecentEvents(0)
    const span = 8 * 1_024 * 1_024
    recent.mayBeKnown(1)
    recent.mayBeKnown(span - 10)
    assert.isFalse(recent.mayBeKnown(span + 1))
  })
})
