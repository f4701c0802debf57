import { assert, describe, it } from "@effect/vitest"
import { afterEach, vi } from "vitest"
import { UnreadableQueue } from "../../../src/delivery/source/unreadable-queue.ts"

afterEach(() => {
  vi.restoreAllMocks()
})

describe("the unreadable messages of a queue", () => {
  it("are counted once each, for as long as they are redelivered", () => {
    const clock = vi.spyOn(performance, "now").mockReturnValue(0)
    const queue = new UnreadableQueue()
    assert.isTrue(queue.note(3, 1_000))
    assert.isTrue(queue.note(5, 1_000))
    assert.isFalse(queue.note(3, 300_000))
    assert.strictEqual(queue.count(), 2)
    // Somebody has removed the other one: it has not come again.
    clock.mockReturnValue(200_000)
    assert.strictEqual(queue.count(), 1)
    clock.mockReturnValue(1_000_000)
    assert.strictEqual(queue.count(), 0)
  })
})
