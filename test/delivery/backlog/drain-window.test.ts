import { assert, describe, it } from "@effect/vitest"
import { DrainWindow } from "../../../src/delivery/backlog/drain-window.ts"
import { slotOf } from "../../../src/domain/fact.ts"

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

  it("has room for 256 that have not ended, and for 16 times as many that are not purged", () => {
    const window = new DrainWindow()
    for (let seq = 1; seq <= 256; seq++) window.add(seq)
    assert.strictEqual(window.capacity, 0)
    for (let seq = 2; seq <= 11; seq++) window.finish(seq)
    assert.strictEqual(window.capacity, 10)
    for (let seq = 12; seq <= 256; seq++) window.finish(seq)
    for (let seq = 257; seq <= 16 * 256; seq++) {
      window.add(seq)
      window.finish(seq)
    }
    assert.strictEqual(window.capacity, 0)
    window.finish(1)
    window.purged(window.finishedBelow(window.below))
    assert.strictEqual(window.capacity, 256)
  })
})

describe("the entries of a message", () => {
  const slot = (seq: number, entry: number) => slotOf({ seq, entry })
  /** Reads entries of message 5, which has four, and message 8, which has one delivery. */
  const windowOf = (...entries: ReadonlyArray<number>) => {
    const window = new DrainWindow()
    for (const entry of entries) window.add(slot(5, entry), entry === 4 ? 6 : slot(5, entry + 1))
    return window
  }

  it("are read on within the message, and behind it", () => {
    const window = windowOf(1, 2)
    assert.strictEqual(window.next, slot(5, 3))
    window.add(slot(5, 3), slot(5, 4))
    window.add(slot(5, 4), 6)
    assert.strictEqual(window.next, 6)
  })

  it("keep the message until all of them have ended", () => {
    const window = windowOf(1, 2, 3, 4)
    window.add(8)
    for (const entry of [1, 3, 4]) window.finish(slot(5, entry))
    window.finish(8)
    assert.strictEqual(window.below, 5)
    assert.deepStrictEqual(window.finishedBelow(window.below), [])
    assert.deepStrictEqual([...window.finished], [[8, [8]]])
    assert.deepStrictEqual(window.begun, [5])
    assert.isTrue(window.isOpen(slot(5, 2)))
    window.finish(slot(5, 2))
    assert.strictEqual(window.below, 9)
    assert.lengthOf(window.finishedBelow(window.below), 5)
    assert.deepStrictEqual(window.begun, [])
  })

  it("keep it where it was read in part, or one of them was given back", () => {
    const part = windowOf(1, 2)
    for (const entry of [1, 2]) part.finish(slot(5, entry))
    assert.strictEqual(part.below, 5)
    assert.deepStrictEqual([...part.finished], [])
    assert.deepStrictEqual(part.begun, [5])
    const back = windowOf(1, 2, 3, 4)
    back.forget(slot(5, 2))
    for (const entry of [1, 3, 4]) back.finish(slot(5, entry))
    assert.strictEqual(back.next, slot(5, 2))
    assert.strictEqual(back.below, 5)
    assert.deepStrictEqual([...back.finished], [])
    assert.isFalse(back.isFinished)
  })

  it("keeps a message that was read in part, also while something before it is read again", () => {
    const window = new DrainWindow()
    window.add(3)
    window.add(slotOf({ seq: 7, entry: 1 }), slotOf({ seq: 7, entry: 2 }))
    window.finish(slotOf({ seq: 7, entry: 1 }))
    window.forget(3)
    assert.deepStrictEqual([...window.finished], [])
    assert.deepStrictEqual(window.begun, [7])
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
    assert.deepStrictEqual([...window.finishedBehindUnreadable], [[9, [9]]])
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
    assert.strictEqual(window.capacity, 256)
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
    assert.deepStrictEqual([...window.finishedBehindUnreadable], [[9, [9]]])
  })
})
