import { assert, describe, it } from "@effect/vitest"
import { DrainWindow } from "../../src/delivery/drain-window.ts"

describe("the window of a drain", () => {
  it("reads on after the last, and knows what it has read", () => {
    const window = new DrainWindow()
    assert.strictEqual(window.next, 1)
    assert.isTrue(window.add(5))
    assert.isTrue(window.add(9))
    assert.isFalse(window.add(5))
    assert.strictEqual(window.next, 10)
    assert.isFalse(window.isFinished)
  })

  it("may be purged up to the lowest that is unfinished, and no further", () => {
    const window = new DrainWindow()
    for (const seq of [5, 9, 12]) window.add(seq)
    assert.strictEqual(window.below, 5)
    window.finish(9)
    assert.deepStrictEqual(window.finishedBelow(window.below), [])
    window.finish(5)
    assert.strictEqual(window.below, 12)
    assert.deepStrictEqual(window.finishedBelow(window.below), [5, 9])
    window.purged([5, 9])
    window.finish(12)
    assert.isTrue(window.isFinished)
    assert.strictEqual(window.below, 13)
    assert.deepStrictEqual(window.finishedBelow(13), [12])
  })

  it("reads again what was not begun, but not what is finished", () => {
    const window = new DrainWindow()
    for (const seq of [5, 9, 12]) window.add(seq)
    window.finish(9)
    window.forget(9)
    window.forget(5)
    assert.strictEqual(window.next, 5)
    assert.strictEqual(window.below, 5)
    assert.isTrue(window.add(5))
    assert.isFalse(window.add(9))
    assert.isFalse(window.add(12))
    assert.strictEqual(window.next, 13)
  })

  it("has room for 256 that are not purged", () => {
    const window = new DrainWindow()
    for (let seq = 1; seq <= 256; seq++) window.add(seq)
    assert.strictEqual(window.room, 0)
    for (let seq = 1; seq <= 10; seq++) window.finish(seq)
    assert.strictEqual(window.room, 0)
    window.purged(window.finishedBelow(window.below))
    assert.strictEqual(window.room, 10)
  })
})
