import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { PendingStore } from "../../../src/delivery/backlog/backlog-write.ts"
import { EndpointWrites } from "../../../src/delivery/backlog/endpoint-writes.ts"
import { untried } from "../../../src/domain/delivery.ts"
import { deliveryOf, now } from "../made-deliveries.ts"

const pending = (eventSeq: number) =>
  new PendingStore(
    `${eventSeq}`,
    {
      delivery: deliveryOf({ eventSeq }),
      place: { stream: "QUEUE", seq: eventSeq, at: now },
      ...{ body: new Uint8Array(), progress: untried, hasLeft: () => false }
    },
    () => true
  )

describe("what is written for an endpoint", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("is put off for more to come, but not first, not for long, and not where enough has come", () => {
    const writes = new EndpointWrites("acme.hook", { stream: "BACKLOG", subject: "backlog" })
    writes.queue.push(pending(1))
    assert.strictEqual(writes.lingerMs, 0)
    writes.storedAt(1)
    assert.strictEqual(writes.lingerMs, 20)
    vi.advanceTimersByTime(15)
    assert.strictEqual(writes.lingerMs, 5)
    for (let seq = 2; seq < 64; seq++) writes.queue.push(pending(seq))
    assert.strictEqual(writes.lingerMs, 5)
    writes.queue.push(pending(64))
    assert.strictEqual(writes.lingerMs, 0)
    writes.queue.pop()
    vi.advanceTimersByTime(5)
    assert.strictEqual(writes.lingerMs, 0)
  })
})
