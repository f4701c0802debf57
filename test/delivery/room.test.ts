import { assert, describe, it } from "@effect/vitest"
import type { Pace, Use } from "../../src/delivery/room.ts"
import { Room } from "../../src/delivery/room.ts"

const kilobyte = 1024

/** Uses room for one request. */
const begin = (room: Room, slow = false): Use => {
  const use = { requests: 0, bytes: 0, slow }
  room.take(use, 1, 0)
  return use
}

const mayStart = (room: Room, inFlight = 0) =>
  (["quick", "unknown", "slow"] satisfies Array<Pace>).filter((pace) =>
    room.mayStart(pace, inFlight, false)
  )

describe("the room of a worker", () => {
  it("is everybody's up to half; then slow ones wait, and unknown ones have one request each", () => {
    const room = new Room({ requests: 16, bytes: 1_024 * kilobyte })
    const uses: Array<Use> = []
    const fill = (count: number, slow: boolean) => {
      while (uses.length < count) uses.push(begin(room, slow))
    }
    fill(7, true)
    assert.deepStrictEqual(mayStart(room, 5), ["quick", "unknown", "slow"])
    fill(8, true)
    assert.deepStrictEqual(mayStart(room, 0), ["quick", "unknown"])
    assert.deepStrictEqual(mayStart(room, 1), ["quick"])
    fill(14, false)
    assert.deepStrictEqual(mayStart(room, 0), ["quick"])
    fill(16, false)
    assert.deepStrictEqual(mayStart(room, 0), [])
    for (const use of uses) room.give(use)
    assert.deepStrictEqual(mayStart(room, 5), ["quick", "unknown", "slow"])
  })

  it("counts what turns out to be slow with the slow ones, once", () => {
    const room = new Room({ requests: 8, bytes: 1_024 * kilobyte })
    const uses = Array.from({ length: 5 }, () => begin(room))
    assert.deepStrictEqual(mayStart(room, 0), ["quick", "unknown", "slow"])
    for (const use of [...uses, ...uses].slice(0, 9)) room.slows(use)
    assert.deepStrictEqual(mayStart(room, 0), ["quick", "unknown"])
    for (const use of uses.slice(0, 2)) room.give(use)
    assert.deepStrictEqual(mayStart(room, 0), ["quick", "unknown", "slow"])
  })

  it("has bytes for what is worth reading, half of them for slow ones", () => {
    const room = new Room({ requests: 8, bytes: 1_024 * kilobyte })
    const use = { requests: 0, bytes: 0, slow: true }
    room.take(use, 0, 400 * kilobyte)
    assert.strictEqual(room.bytesFor("slow"), 112 * kilobyte)
    assert.strictEqual(room.bytesFor("quick"), 624 * kilobyte)
    assert.strictEqual(room.bytesFor("unknown"), 496 * kilobyte)
    room.take(use, 0, 100 * kilobyte)
    assert.strictEqual(room.bytesFor("slow"), 0)
    assert.isFalse(room.mayStart("slow", 0, true))
    assert.isTrue(room.mayStart("slow", 0, false))
    room.give(use)
    assert.strictEqual(room.bytesFor("slow"), 512 * kilobyte)
  })

  it("is offered to those that wait in their order, and to the next where one has no use for it", () => {
    const room = new Room({ requests: 1, bytes: 1_024 * kilobyte })
    const told: Array<string> = []
    const waiting = (name: string, uses: boolean) => ({
      turn: () => {
        told.push(name)
        return uses
      }
    })
    const use = begin(room)
    room.wait("quick", waiting("gone", false))
    room.wait("quick", waiting("first", true))
    room.wait("quick", waiting("second", true))
    assert.deepStrictEqual(told, [])
    room.give(use)
    assert.deepStrictEqual(told, ["gone", "first"])
    room.next()
    assert.deepStrictEqual(told, ["gone", "first", "second"])
    room.next()
    assert.strictEqual(told.length, 3)
  })
})
