import { assert, describe, it } from "@effect/vitest"
import { HistoryPosition } from "../../../src/delivery/recovery/completed-deliveries.ts"
import { packMemory, unpackMemory } from "../../../src/delivery/recovery/handed-memory.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import { makeMemory, placeOf, recordOf } from "../made-deliveries.ts"

const key = "acme.hook"
const identity = { tenant: "acme", endpoint: "hook", eventSeq: 7, eventAt: 70 }

const handed = (memory: ReturnType<typeof makeMemory>) => {
  const unpacked = unpackMemory(packMemory(memory), new HistoryPosition(0))
  assert.isDefined(unpacked)
  return unpacked
}

describe("what an owner hands over", () => {
  it("is what has ended, in its queue, its backlog and directly", () => {
    const memory = makeMemory()
    memory.completed.add(1, 10)
    memory.backlog.completed.add(2, 20)
    memory.directDeliveries.add(key, identity)
    const { backlog, completed, directDeliveries } = handed(memory)
    assert.deepStrictEqual(
      [completed.has(1, 10), completed.has(1, 11), completed.has(2, 20)],
      [true, false, false]
    )
    assert.deepStrictEqual(
      [backlog.completed.has(2, 20), backlog.completed.has(1, 10)],
      [true, false]
    )
    assert.isTrue(directDeliveries.isDone(key, identity))
    assert.isFalse(directDeliveries.isDone(key, { ...identity, eventAt: 71 }))
    assert.isFalse(directDeliveries.isDone("acme.other", identity))
  })

  it("is how far failed direct deliveries are, and which attempts the history holds", () => {
    const memory = makeMemory()
    const delivery: Pick<Delivery, "endpoint" | "eventAt" | "eventSeq" | "tenant"> = identity
    memory.directDeliveries.failed(delivery, { attempts: 1, lastStatus: 503 })
    memory.recordedAttempts.add(placeOf(3), 2)
    const { at } = placeOf(4)
    const record = recordOf({ _tag: "Nak", at }, { progress: { attempts: 5 } })
    memory.waiting.set(4, { record, revision: 1, storedAt: at, isOutcomeRecorded: true })
    memory.waiting.set(5, { record, revision: 1, storedAt: at, isOutcomeRecorded: false })
    const { directDeliveries, recordedAttempts } = handed(memory)
    assert.deepStrictEqual(directDeliveries.progressOf(delivery), { attempts: 1, lastStatus: 503 })
    assert.isTrue(recordedAttempts.has(placeOf(3), 2))
    assert.isTrue(recordedAttempts.has(placeOf(4), 5))
    assert.isFalse(recordedAttempts.has(placeOf(5), 5))
  })

  it("tells what is delivered from where a former owner has stored it late", () => {
    const memory = makeMemory()
    memory.recordedAttempts.add(placeOf(3), 0)
    const { recordedAttempts } = handed(memory)
    assert.isTrue(recordedAttempts.isBegun(placeOf(3)))
    assert.isFalse(recordedAttempts.isBegun({ ...placeOf(3), at: placeOf(3).at + 1 }))
  })

  it("is forgotten after as many ack_waits, and holds the watermark until then", () => {
    const memory = makeMemory()
    memory.completed.add(1, 10)
    memory.directDeliveries.add(key, identity)
    memory.completed.rotate()
    memory.directDeliveries.rotate()
    const { completed, directDeliveries } = handed(memory)
    // Rotated once before and twice here: forgotten. What was stored before is still needed.
    assert.deepStrictEqual([completed.rotate(), completed.has(1, 10)], [undefined, true])
    assert.deepStrictEqual([completed.rotate(), completed.has(1, 10)], [undefined, false])
    assert.strictEqual(completed.rotate(), 0)
    directDeliveries.rotate()
    assert.isTrue(directDeliveries.isDone(key, identity))
    directDeliveries.rotate()
    assert.isFalse(directDeliveries.isDone(key, identity))
  })

  it("is thousands of deliveries in some bytes each", () => {
    const memory = makeMemory()
    const count = 20_000
    for (let eventSeq = 1; eventSeq <= count; eventSeq++)
      memory.directDeliveries.add(`acme.e${eventSeq % 50}`, { eventSeq, eventAt: eventSeq })
    assert.isBelow(packMemory(memory).length, 21 * count)
    const { directDeliveries } = handed(memory)
    for (let eventSeq = 1; eventSeq <= count; eventSeq++)
      assert.isTrue(
        directDeliveries.isDone(`acme.e${eventSeq % 50}`, { eventSeq, eventAt: eventSeq })
      )
  })

  it("is nothing where it cannot be read", () => {
    for (const bytes of [
      new Uint8Array(),
      Buffer.from("{}"),
      packMemory(makeMemory()).slice(0, 40)
    ])
      assert.isUndefined(unpackMemory(bytes, new HistoryPosition(0)))
  })
})
