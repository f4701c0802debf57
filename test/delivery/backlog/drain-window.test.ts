import { assert, describe, it } from "@effect/vitest"
import { DrainWindow } from "../../../src/delivery/backlog/drain-window.ts"

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

  it("reads again what was given back while more was being read, and purges nothing past it", () => {
    const window = new DrainWindow()
    for (const seq of [5, 9, 12]) window.add(seq)
    window.forget(9)
    window.add(15)
    for (const seq of [5, 12, 15]) window.finish(seq)
    assert.strictEqual(window.next, 9)
    assert.strictEqual(window.below, 9)
    assert.isFalse(window.isFinished)
    assert.isTrue(window.add(9))
    assert.strictEqual(window.next, 16)
    window.forget(9)
    window.gone(9)
    assert.isTrue(window.isFinished)
    assert.strictEqual(window.below, 16)
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

describe("what was to be read again", () => {
  it("is gone where it is not among what was found, and only there", () => {
    const window = new DrainWindow()
    for (const seq of [3, 5, 7, 9]) window.add(seq)
    for (const seq of [5, 7]) window.forget(seq)
    assert.strictEqual(window.next, 5)
    window.forget(3)
    window.found(5, [7, 9, 11])
    assert.strictEqual(window.next, 3)
    for (const seq of [3, 7, 11]) window.add(seq)
    assert.strictEqual(window.next, 12)
  })

  it("is read again where it is given back while what was found is begun", () => {
    const window = new DrainWindow()
    window.found(1, [1, 2, 3])
    for (const seq of [1, 2]) window.add(seq)
    window.forget(1)
    window.add(3)
    assert.strictEqual(window.next, 1)
  })
})

describe("what is unreadable", () => {
  it("is kept: nothing is purged past the lowest, and what is behind it is to be removed alone", () => {
    const window = new DrainWindow()
    for (const seq of [3, 5, 7, 9]) window.add(seq)
    assert.isTrue(window.keep(5))
    for (const seq of [3, 9]) window.finish(seq)
    assert.strictEqual(window.below, 5)
    assert.deepStrictEqual(window.finishedBelow(window.below), [3])
    assert.deepStrictEqual(window.finishedBehindUnreadable, [9])
    assert.strictEqual(window.passed, 7)
    window.finish(7)
    window.purged([3, 7, 9])
    assert.strictEqual(window.below, 5)
    assert.strictEqual(window.passed, 10)
    assert.deepStrictEqual(window.unreadable, { count: 1, lowest: 5, highest: 5 })
  })

  it("is not unfinished, and takes up no room however much there is", () => {
    const window = new DrainWindow()
    for (let seq = 1; seq <= 5_000; seq++) {
      window.add(seq)
      window.keep(seq)
    }
    assert.strictEqual(window.room, 256)
    assert.isTrue(window.isFinished)
    assert.strictEqual(window.finishedCount, 0)
    assert.deepStrictEqual(window.unreadable, { count: 5_000, lowest: 1, highest: 5_000 })
  })

  it("is counted once where it is found before it is read, or read again", () => {
    const window = new DrainWindow()
    window.add(2)
    // A look for deadlines goes ahead of what is read.
    assert.isTrue(window.keep(8))
    assert.strictEqual(window.below, 2)
    window.forget(2)
    for (const seq of [2, 8]) window.add(seq)
    assert.isFalse(window.keep(8))
    window.finish(2)
    assert.isTrue(window.isFinished)
    assert.strictEqual(window.below, 8)
    assert.strictEqual(window.unreadable.count, 1)
  })

  it("is known where reading goes on in a backlog that was done with", () => {
    const before = new DrainWindow()
    for (const seq of [4, 6]) before.add(seq)
    before.keep(4)
    before.finish(6)
    const { next: from, unreadable } = before
    const window = new DrainWindow({ from, unreadable })
    assert.strictEqual(window.next, 7)
    window.add(9)
    window.finish(9)
    assert.strictEqual(window.below, 4)
    assert.deepStrictEqual(window.finishedBehindUnreadable, [9])
  })
})
