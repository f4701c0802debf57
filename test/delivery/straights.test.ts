import { assert, describe, it } from "@effect/vitest"
import { Straights } from "../../src/delivery/memory/straights.ts"
import type { Delivery } from "../../src/domain/delivery.ts"

const began = Date.UTC(2026, 2, 1)

const delivery = { tenant: "acme", endpoint: "hook", eventSeq: 7, began }

/** The same event for others, and another for the same. */
const others = [
  { ...delivery, eventSeq: 8 },
  { ...delivery, endpoint: "other" },
  { ...delivery, tenant: "globex" }
]

const end = (
  straights: Straights,
  { endpoint, eventSeq, tenant }: Pick<Delivery, "endpoint" | "eventSeq" | "tenant">,
  at: number
) => straights.add(`${tenant}.${endpoint}`, eventSeq, at)

describe("a delivery that is attempted from its event", () => {
  it("is under way until it is left, and no other is", () => {
    const straights = new Straights()
    assert.isFalse(straights.isUnderway(delivery))
    const attempted = straights.begin(delivery)
    assert.isTrue(straights.isUnderway({ ...delivery }))
    for (const other of others) assert.isFalse(straights.isUnderway(other))
    straights.leave(attempted)
    assert.isFalse(straights.isUnderway(delivery))
  })

  it("is under way though others begin and are left meanwhile", () => {
    const straights = new Straights()
    const [before, ...after] = others
    const attempted = [before, delivery, ...after].flatMap((each) =>
      each === undefined ? [] : [{ each, attempted: straights.begin(each) }]
    )
    for (const { attempted: one, each } of attempted) if (each !== delivery) straights.leave(one)
    assert.isTrue(straights.isUnderway(delivery))
    for (const other of others) assert.isFalse(straights.isUnderway(other))
  })

  it("has not ended because it is not under way any more", () => {
    const straights = new Straights()
    straights.leave(straights.begin(delivery))
    assert.isFalse(straights.isDone(delivery))
  })

  it("stays under way for as long as it takes", () => {
    const straights = new Straights()
    straights.begin(delivery)
    for (let wait = 0; wait < 10; wait++) straights.rotate()
    assert.isTrue(straights.isUnderway(delivery))
  })
})

describe("a delivery that has ended from its event", () => {
  it("is known for two whole waits after the one in which it ended, and not for ever", () => {
    const straights = new Straights()
    straights.rotate()
    assert.isFalse(straights.isDone(delivery))
    end(straights, delivery, began)
    straights.rotate()
    straights.rotate()
    assert.isTrue(straights.isDone(delivery))
    straights.rotate()
    assert.isFalse(straights.isDone(delivery))
  })

  it("is not another endpoint's, nor another event's", () => {
    const straights = new Straights()
    end(straights, delivery, began)
    for (const other of others) assert.isFalse(straights.isDone(other))
    straights.rotate()
    for (const other of others) {
      end(straights, other, began)
      assert.isTrue(straights.isDone(other))
    }
    assert.isTrue(straights.isDone(delivery))
  })

  it("is not that of an event which has its sequence because the stream lost its end", () => {
    const straights = new Straights()
    end(straights, delivery, began)
    // The clocks of two nodes may differ by a second.
    assert.isTrue(straights.isDone({ ...delivery, began: began + 900 }))
    assert.isFalse(straights.isDone({ ...delivery, began: began + 1_100 }))
  })

  it("is known by its end, too, which was stored later than its event", () => {
    const straights = new Straights()
    end(straights, delivery, began + 60_000)
    assert.isTrue(straights.isDone(delivery))
    assert.isFalse(straights.isDone({ ...delivery, began: began + 62_000 }))
  })

  it("is known though its event was stored before all that have ended until then", () => {
    const straights = new Straights()
    end(straights, { ...delivery, eventSeq: 8 }, began + 60_000)
    end(straights, delivery, began)
    assert.isTrue(straights.isDone(delivery))
    assert.isFalse(straights.isDone({ ...delivery, began: began + 1_100 }))
  })

  it("is known besides the one that had its sequence before it", () => {
    const straights = new Straights()
    const later = { ...delivery, began: began + 60_000 }
    end(straights, delivery, began)
    straights.rotate()
    end(straights, later, later.began)
    assert.isTrue(straights.isDone(later))
    straights.rotate()
    straights.rotate()
    assert.isTrue(straights.isDone(later))
  })
})
