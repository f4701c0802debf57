import { assert, describe, it } from "@effect/vitest"
import { DirectDeliveryRegistry } from "../../../src/delivery/recovery/direct-delivery-registry.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"

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
const end = (directDeliveries: DirectDeliveryRegistry, one: typeof delivery) =>
  directDeliveries.add(keyOf(one), one)
const isDone = (directDeliveries: DirectDeliveryRegistry, one: typeof delivery) =>
  directDeliveries.isDone(keyOf(one), one)

describe("a delivery that is attempted from its event", () => {
  it("is under way until it is left, and no other is", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    assert.isFalse(directDeliveries.isInFlight(delivery))
    const attempted = directDeliveries.begin(delivery)
    assert.isTrue(directDeliveries.isInFlight({ ...delivery }))
    for (const other of others) assert.isFalse(directDeliveries.isInFlight(other))
    directDeliveries.leave(attempted)
    assert.isFalse(directDeliveries.isInFlight(delivery))
  })

  it("is under way though others begin and are left meanwhile", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    const [before, ...after] = others
    const attempted = [before, delivery, ...after].flatMap((each) =>
      each === undefined ? [] : [{ each, attempted: directDeliveries.begin(each) }]
    )
    for (const { attempted: one, each } of attempted)
      if (each !== delivery) directDeliveries.leave(one)
    assert.isTrue(directDeliveries.isInFlight(delivery))
    for (const other of others) assert.isFalse(directDeliveries.isInFlight(other))
  })

  it("has not ended because it is not under way any more", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    directDeliveries.leave(directDeliveries.begin(delivery))
    assert.isFalse(isDone(directDeliveries, delivery))
  })

  it("stays under way for as long as it takes", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    directDeliveries.begin(delivery)
    for (let wait = 0; wait < 10; wait++) directDeliveries.rotate()
    assert.isTrue(directDeliveries.isInFlight(delivery))
  })
})

describe("a delivery that has ended from its event", () => {
  it("is known for two whole waits after the one in which it ended, and not for ever", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    directDeliveries.rotate()
    assert.isFalse(isDone(directDeliveries, delivery))
    end(directDeliveries, delivery)
    directDeliveries.rotate()
    directDeliveries.rotate()
    assert.isTrue(isDone(directDeliveries, delivery))
    directDeliveries.rotate()
    assert.isFalse(isDone(directDeliveries, delivery))
  })

  it("is not another endpoint's, nor another event's", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    end(directDeliveries, delivery)
    for (const other of others) assert.isFalse(isDone(directDeliveries, other))
    directDeliveries.rotate()
    for (const other of others) {
      end(directDeliveries, other)
      assert.isTrue(isDone(directDeliveries, other))
    }
    assert.isTrue(isDone(directDeliveries, delivery))
  })

  it("is not that of an event which has its sequence because the stream lost its end", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    const attempted = directDeliveries.begin(delivery)
    assert.isFalse(directDeliveries.isInFlight({ ...delivery, eventAt: eventAt + 1 }))
    directDeliveries.leave(attempted)
    end(directDeliveries, delivery)
    directDeliveries.failed(delivery, { attempts: 1 })
    assert.isFalse(isDone(directDeliveries, { ...delivery, eventAt: eventAt + 1 }))
    assert.isUndefined(directDeliveries.progressOf({ ...delivery, eventAt: eventAt + 1 }))
    assert.isDefined(directDeliveries.progressOf(delivery))
  })

  it("is known besides the one that had its sequence before it", () => {
    const directDeliveries = new DirectDeliveryRegistry()
    const later = { ...delivery, eventAt: eventAt + 60_000 }
    end(directDeliveries, delivery)
    directDeliveries.rotate()
    end(directDeliveries, later)
    assert.isTrue(isDone(directDeliveries, later))
    directDeliveries.rotate()
    directDeliveries.rotate()
    assert.isTrue(isDone(directDeliveries, later))
  })
})
