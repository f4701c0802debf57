import { assert, describe, it } from "@effect/vitest"
import type { Reservation, SpeedClass } from "../../../src/delivery/scheduling/capacity-pool.ts"
import { CapacityPool } from "../../../src/delivery/scheduling/capacity-pool.ts"

const kilobyte = 1024

/** Uses room for one request. */
const begin = (room: CapacityPool, slow = false): Reservation => {
  const use = { requests: 0, bytes: 0, slow }
  room.take(use, 1, 0)
  return use
}

const paces = ["quick", "slow"] satisfies ReadonlyArray<SpeedClass>

const mayStart = (room: CapacityPool, inFlight = 0) =>
  paces.filter((pace) => room.mayStart(pace, inFlight, true))

describe("the room of a worker", () => {
  it("is everybody's up to half; from then on there is none for more slow ones", () => {
    const room = new CapacityPool({ requests: 16, bytes: 1_024 * kilobyte })
    const uses = Array.from({ length: 7 }, () => begin(room, true))
    assert.deepStrictEqual(mayStart(room, 5), ["quick", "slow"])
    uses.push(begin(room, true))
    assert.deepStrictEqual(mayStart(room, 5), ["quick"])
    for (const use of uses) room.giveBack(use)
    assert.deepStrictEqual(mayStart(room, 5), ["quick", "slow"])
  })

  it("is shared in equal parts once half is used, and the last eighth is for those with nothing under way", () => {
    const room = new CapacityPool({ requests: 16, bytes: 1_024 * kilobyte })
    for (let lane = 0; lane < 4; lane++) room.lane(1)
    const uses = Array.from({ length: 8 }, () => begin(room))
    // 14 in four parts are 3.5 each.
    assert.deepStrictEqual([mayStart(room, 2), mayStart(room, 3)], [["quick", "slow"], ["slow"]])
    while (uses.length < 14) uses.push(begin(room))
    assert.deepStrictEqual([mayStart(room, 0), mayStart(room, 1)], [["quick"], []])
    while (uses.length < 16) uses.push(begin(room))
    assert.deepStrictEqual(mayStart(room, 0), [])
  })

  it("counts what turns out to be slow with the slow ones, once", () => {
    const room = new CapacityPool({ requests: 8, bytes: 1_024 * kilobyte })
    const uses = Array.from({ length: 5 }, () => begin(room))
    assert.deepStrictEqual(mayStart(room, 0), ["quick", "slow"])
    for (const use of [...uses, ...uses]) room.becomesSlow(use)
    assert.deepStrictEqual(mayStart(room, 0), ["quick"])
    for (const use of uses.slice(0, 2)) room.giveBack(use)
    assert.deepStrictEqual(mayStart(room, 0), ["quick", "slow"])
  })

  it("has bytes for what is worth reading, half of them for slow ones", () => {
    const room = new CapacityPool({ requests: 8, bytes: 1_024 * kilobyte })
    const use = { requests: 0, bytes: 0, slow: true }
    room.take(use, 0, 400 * kilobyte)
    assert.strictEqual(room.bytesFor("slow"), 112 * kilobyte)
    assert.strictEqual(room.bytesFor("quick"), 624 * kilobyte)
    assert.isFalse(room.isTight)
    room.take(use, 0, 120 * kilobyte)
    assert.strictEqual(room.bytesFor("slow"), 0)
    assert.isTrue(room.isTight)
    assert.isFalse(room.mayStart("slow", 0, false))
    assert.isTrue(room.mayStart("slow", 0, true))
    assert.isTrue(room.mayStart("quick", 0, false))
    room.giveBack(use)
    assert.strictEqual(room.bytesFor("slow"), 512 * kilobyte)
  })

  it("is offered to those that wait in their order, and to the next where one has no use for it", () => {
    const room = new CapacityPool({ requests: 1, bytes: 1_024 * kilobyte })
    const told: Array<string> = []
    const waiting = (name: string, uses: boolean) => ({
      turn: () => {
        told.push(name)
        return uses
      }
    })
    const use = begin(room)
    room.wait("quick", 0, waiting("gone", false))
    room.wait("quick", 0, waiting("first", true))
    room.wait("quick", 0, waiting("second", true))
    assert.deepStrictEqual(told, [])
    room.giveBack(use)
    assert.deepStrictEqual(told, ["gone", "first"])
    room.next()
    assert.deepStrictEqual(told, ["gone", "first", "second"])
    room.next()
    assert.strictEqual(told.length, 3)
  })
})
