import { assert, describe, it } from "@effect/vitest"
import { Straights } from "../../src/delivery/memory/straights.ts"
import type { Delivery } from "../../src/domain/delivery.ts"

const eventAt = Date.UTC(2026, 2, 1)

const delivery = { tenant: "acme", endpoint: "hook", eventSeq: 7, eventAt }

/** The same event for others, and another for the same. */
const others = [
  { ...delivery, eventSeq: 8 },
  { ...delivery, endpoint: "other" },
  { ...delivery, tenant: "globex" }
]

const keyOf = ({ endpoint, tenant }: Pick<Delivery, "endpoint" | "tenant">) =>
  `${tenant}.${endpoint}`
const end = (straights: Straights, one: typeof delivery) => straights.add(keyOf(one), one)
const isDone = (straights: Straights, one: typeof delivery) => straights.isDone(keyOf(one), one)

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
    assert.isFalse(isDone(straights, delivery))
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
    assert.isFalse(isDone(straights, delivery))
    end(straights, delivery)
    straights.rotate()
    straights.rotate()
    assert.isTrue(isDone(straights, delivery))
    straights.rotate()
    assert.isFalse(isDone(straights, delivery))
  })

  it("is not another endpoint's, nor another event's", () => {
    const straights = new Straights()
    end(straights, delivery)
    for (const other of others) assert.isFalse(isDone(straights, other))
    straights.rotate()
    for (const other of others) {
      end(straights, other)
      assert.isTrue(isDone(straights, other))
    }
    assert.isTrue(isDone(straights, delivery))
  })

  it("is not that of an event which has its sequence because the stream lost its end", () => {
    const straights = new Straights()
    const attempted = straights.begin(delivery)
    assert.isFalse(straights.isUnderway({ ...delivery, eventAt: eventAt + 1 }))
    straights.leave(attempted)
    end(straights, delivery)
    straights.failed(delivery, { attempts: 1 })
    assert.isFalse(isDone(straights, { ...delivery, eventAt: eventAt + 1 }))
    assert.isUndefined(straights.progressOf({ ...delivery, eventAt: eventAt + 1 }))
    assert.isDefined(straights.progressOf(delivery))
  })

  it("is known besides the one that had its sequence before it", () => {
    const straights = new Straights()
    const later = { ...delivery, eventAt: eventAt + 60_000 }
    end(straights, delivery)
    straights.rotate()
    end(straights, later)
    assert.isTrue(isDone(straights, later))
    straights.rotate()
    straights.rotate()
    assert.isTrue(isDone(straights, later))
  })
})
