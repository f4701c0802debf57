import { assert, describe, it } from "@effect/vitest"
import { BacklogIndex } from "../../../src/delivery/backlog/backlog-index.ts"
import { Drain } from "../../../src/delivery/backlog/drain.ts"
import { deliveryOf, key, makeMemory } from "../made-deliveries.ts"

const drainOf = (changes: Partial<Pick<Drain, "count" | "last">> = {}) =>
  Object.assign(
    new Drain(
      { tenant: "acme", endpoint: "hook" },
      makeMemory().backlog,
      undefined,
      0,
      () => undefined
    ),
    changes
  )

const emptyFrom = (from: number, count = 0) => ({
  ...{ from, at: 0, last: 0 },
  unreadable: { count, lowest: 1, highest: count }
})

describe("what is known of the backlogs of a partition", () => {
  it("is nothing at first", () => {
    const index = new BacklogIndex(2)
    assert.isFalse(index.hasBacklog(key))
    assert.isFalse(index.isFull(key, deliveryOf()))
    assert.deepStrictEqual([index.highest(), index.unreadableCount()], [0, 0])
  })

  it("tells that deliveries wait, until the backlog is done with", () => {
    const index = new BacklogIndex(2)
    index.drains.set(key, drainOf())
    assert.isTrue(index.hasBacklog(key))
    assert.isFalse(index.hasBacklog("acme.other"))
    index.drains.delete(key)
    index.empty.set(key, emptyFrom(9))
    assert.isFalse(index.hasBacklog(key))
  })

  it("tells that a backlog is full from its maximum on", () => {
    const index = new BacklogIndex(2)
    const drain = drainOf({ count: 1 })
    index.drains.set(key, drain)
    assert.isFalse(index.isFull(key, deliveryOf()))
    drain.count = 2
    assert.isTrue(index.isFull(key, deliveryOf()))
    assert.isFalse(index.isFull("acme.other", deliveryOf()))
  })

  it("tells that it has no room for a delivery, whatever it holds", () => {
    const index = new BacklogIndex(2, (_, { deadline }) => deadline > 100)
    assert.isFalse(index.isFull(key, deliveryOf({ deadline: 100 })))
    assert.isTrue(index.isFull(key, deliveryOf({ deadline: 101 })))
  })

  it("says how many wait only where it knows of each", () => {
    const index = new BacklogIndex(9)
    const found = (messages: number) =>
      Object.assign(
        new Drain(
          { tenant: "acme", endpoint: "hook" },
          makeMemory().backlog,
          undefined,
          messages,
          () => undefined
        ),
        { count: 3 }
      )
    assert.deepStrictEqual([index.countedIn(key), index.countedInAll()], [undefined, 0])
    index.drains.set(key, found(0))
    index.drains.set("acme.other", found(0))
    assert.deepStrictEqual([index.countedIn(key), index.countedInAll()], [3, 6])
    const before = found(2)
    index.drains.set("acme.other", before)
    const both = () => [index.countedIn(key), index.countedIn("acme.other"), index.countedInAll()]
    assert.deepStrictEqual(both(), [3, undefined, undefined], "its last message is not read")
    Object.assign(before, { isUnseen: false, storedInAll: 9 })
    assert.deepStrictEqual(both(), [3, undefined, undefined], "its first message is not read")
    before.storedInAll = undefined
    assert.deepStrictEqual(both(), [3, 3, 6])
    before.keep(4)
    assert.deepStrictEqual(both(), [3, undefined, undefined], "one of them is unreadable")
    index.drains.delete("acme.other")
    index.empty.set("acme.other", emptyFrom(5, 1))
    assert.deepStrictEqual(both(), [3, undefined, undefined])
  })

  it("has the highest sequence of those stored, read, and found empty", () => {
    const index = new BacklogIndex(2)
    index.empty.set("acme.a", emptyFrom(5))
    assert.strictEqual(index.highest(), 4)
    const drain = drainOf({ last: 6 })
    index.drains.set(key, drain)
    assert.strictEqual(index.highest(), 6)
    drain.window.add(8)
    assert.strictEqual(index.highest(), 8)
    index.empty.set("acme.b", emptyFrom(11))
    assert.strictEqual(index.highest(), 10)
    // It was stored, and a power cut took it before it was read.
    index.empty.set("acme.b", { ...emptyFrom(11), last: 12 })
    assert.strictEqual(index.highest(), 12)
  })

  it("counts unreadable messages once, where their backlog has others again", () => {
    const index = new BacklogIndex(2)
    index.empty.set("acme.a", emptyFrom(5, 3))
    index.empty.set(key, emptyFrom(5, 2))
    assert.strictEqual(index.unreadableCount(), 5)
    const drain = drainOf()
    for (const seq of [1, 2, 7]) drain.keep(seq)
    index.drains.set(key, drain)
    assert.strictEqual(index.unreadableCount(), 6)
  })
})
