import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { InHand } from "../../src/delivery/lanes/in-hand.ts"

const message = (bytes = 100) => {
  const handed = {
    data: new Uint8Array(bytes),
    signs: 0,
    working: () => {
      handed.signs++
    }
  }
  return handed
}

const megabyte = 1024 * 1024

/** Until the scope closes. */
const timeStandsStill = Effect.acquireRelease(
  Effect.sync(() => vi.useFakeTimers({ toFake: ["setInterval", "performance"] })),
  () => Effect.sync(() => vi.useRealTimers())
)

describe("the room for more messages", () => {
  it("is what is left of the places and of the bytes", () => {
    const inHand = new InHand({ deliveries: 200, bytes: 10_000 })
    assert.deepStrictEqual(inHand.room, { messages: 200, bytes: 10_000 })
    const taken = Array.from({ length: 40 }, () => inHand.take(message(100)))
    assert.deepStrictEqual(inHand.room, { messages: 160, bytes: 6_000 })
    for (const each of taken.slice(0, 10)) inHand.release(each)
    assert.deepStrictEqual(inHand.room, { messages: 170, bytes: 7_000 })
    assert.strictEqual(inHand.size, 30)
  })

  it("is none where places or bytes are used up", () => {
    const inHand = new InHand({ deliveries: 2, bytes: 300 })
    const large = inHand.take(message(400))
    assert.isUndefined(inHand.room)
    inHand.release(large)
    inHand.take(message(1))
    inHand.take(message(1))
    assert.isUndefined(inHand.room)
  })

  it("waits for more bytes after they were too few, and takes any size when none is in hand", () => {
    const inHand = new InHand({ deliveries: 10, bytes: 1_000 })
    const first = inHand.take(message(300))
    const second = inHand.take(message(300))
    inHand.tooLarge({ messages: 8, bytes: 400 })
    assert.isUndefined(inHand.room)
    inHand.release(first)
    assert.deepStrictEqual(inHand.room, { messages: 9, bytes: 700 })
    inHand.tooLarge({ messages: 9, bytes: 700 })
    assert.isUndefined(inHand.room)
    inHand.release(second)
    assert.deepStrictEqual(inHand.room, { messages: 1 })
    inHand.release(inHand.take(message(5_000)))
    assert.deepStrictEqual(inHand.room, { messages: 10, bytes: 1_000 })
  })

  it("is less where a message stands for many deliveries, and as much as is usual lately", () => {
    const inHand = new InHand({ deliveries: 256, bytes: megabyte, usualParts: 8 })
    const room = () => inHand.room?.messages
    assert.strictEqual(room(), 32)
    const taken = Array.from({ length: 60 }, () => inHand.take(message()))
    for (const each of taken) inHand.weigh(each, 1)
    assert.strictEqual(room(), Math.floor((256 - 60) / (1 + 7 * (15 / 16) ** 60)))
    for (const each of taken) inHand.release(each)
    for (let n = 0; n < 100; n++) {
      const wide = inHand.take(message())
      inHand.weigh(wide, 64)
      inHand.release(wide)
    }
    assert.strictEqual(room(), 4)
    const wide = Array.from({ length: 3 }, () => inHand.take(message()))
    for (const each of wide) inHand.weigh(each, 80)
    assert.isUndefined(room())
    inHand.setApart(wide[0] ?? inHand.take(message()))
    assert.strictEqual(room(), 1)
    for (const each of wide) inHand.release(each)
    // For one that goes to more than there is room for, there is room while there is nothing else.
    const widest = inHand.take(message())
    inHand.weigh(widest, 100_000)
    assert.isUndefined(room())
    inHand.release(widest)
    assert.strictEqual(room(), 1)
  })

  it("counts what is given back twice only once", () => {
    const inHand = new InHand({ deliveries: 10, bytes: megabyte })
    const first = inHand.take(message())
    inHand.take(message())
    inHand.release(first)
    inHand.release(first)
    assert.strictEqual(inHand.size, 1)
    assert.strictEqual(inHand.room?.messages, 9)
  })

  it("does not count what was set apart, and not what is set apart when it has gone", () => {
    const inHand = new InHand({ deliveries: 2, bytes: megabyte })
    const first = inHand.take(message())
    const second = inHand.take(message())
    assert.isUndefined(inHand.room)
    inHand.setApart(first)
    inHand.setApart(first)
    assert.deepStrictEqual(inHand.room, { messages: 1, bytes: megabyte - 100 })
    inHand.release(first)
    inHand.setApart(first)
    inHand.release(second)
    inHand.setApart(second)
    assert.deepStrictEqual(inHand.room, { messages: 2, bytes: megabyte })
  })

  /** As many in hand as there may be, and somebody who waits for room; time stands still. */
  const crowded = Effect.gen(function* () {
    yield* timeStandsStill
    const inHand = new InHand({ deliveries: 5, bytes: megabyte })
    yield* inHand.roomy
    const hands = Array.from({ length: 5 }, () => inHand.take(message()))
    const waiter = yield* Effect.forkChild(inHand.roomy, { startImmediately: true })
    const release = (count: number) => {
      for (const hand of hands.splice(0, count)) inHand.release(hand)
    }
    return { inHand, release, waiter }
  })

  it.live("is waited for until half of it is free", () =>
    Effect.gen(function* () {
      const { inHand, release, waiter } = yield* crowded
      release(3)
      yield* Fiber.join(waiter)
      assert.strictEqual(inHand.room?.messages, 3)
    }).pipe(Effect.scoped)
  )

  it.live("is waited for until any is free, where half is not within a moment", () =>
    Effect.gen(function* () {
      const { inHand, release, waiter } = yield* crowded
      vi.advanceTimersByTime(500)
      release(1)
      assert.isUndefined(waiter.pollUnsafe())
      vi.advanceTimersByTime(5)
      yield* Fiber.join(waiter)
      assert.strictEqual(inHand.room?.messages, 1)
    }).pipe(Effect.scoped)
  )

  it.live("is waited for no longer than a second, so that whoever asks can look around", () =>
    Effect.gen(function* () {
      const { inHand, waiter } = yield* crowded
      vi.advanceTimersByTime(999)
      assert.isUndefined(waiter.pollUnsafe())
      vi.advanceTimersByTime(1)
      yield* Fiber.join(waiter)
      assert.isUndefined(inHand.room)
    }).pipe(Effect.scoped)
  )
})

describe("the sign that work goes on", () => {
  it("is given for what has been in hand for long, and not for what has gone", () => {
    const inHand = new InHand({ deliveries: 10, bytes: megabyte })
    const [kept, gone] = [message(), message()]
    inHand.take(kept)
    const hand = inHand.take(gone)
    inHand.renew(60_000)
    assert.deepStrictEqual([kept.signs, gone.signs], [0, 0])
    inHand.release(hand)
    inHand.renew(0)
    assert.deepStrictEqual([kept.signs, gone.signs], [1, 0])
  })

  it.live("is given again and again, three times within the time that the broker waits", () =>
    Effect.gen(function* () {
      yield* timeStandsStill
      const inHand = new InHand({ deliveries: 10, bytes: megabyte })
      const kept = message()
      inHand.take(kept)
      yield* inHand.keepAlive(60)
      vi.advanceTimersByTime(60)
      assert.strictEqual(kept.signs, 3)
    }).pipe(Effect.scoped)
  )
})
