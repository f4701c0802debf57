import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { InHand } from "../../src/delivery/in-hand.ts"

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

describe("the room for more messages", () => {
  it("is what is left of the places, at most one batch", () => {
    const inHand = new InHand({ messages: 200, bytes: 1_000 * megabyte })
    assert.strictEqual(inHand.room, 128)
    const taken = Array.from({ length: 195 }, () => message())
    for (const each of taken) inHand.take(each)
    assert.strictEqual(inHand.room, 5)
    for (const each of taken.slice(0, 10)) inHand.release(each)
    assert.strictEqual(inHand.room, 15)
    assert.strictEqual(inHand.size, 185)
  })

  it("is never more than the places, also when all are free", () => {
    assert.strictEqual(new InHand({ messages: 64, bytes: 1_000 * megabyte }).room, 64)
  })

  it("is less when the messages that come are large, and one at least when none is there", () => {
    const inHand = new InHand({ messages: 200, bytes: 16 * megabyte })
    for (let taken = 0; taken < 200; taken++) {
      const large = message(megabyte)
      inHand.take(large)
      inHand.release(large)
    }
    assert.isAtMost(inHand.room, 17)
    assert.isAtLeast(inHand.room, 8)
    const taken = Array.from({ length: 16 }, () => message(megabyte))
    for (const each of taken) inHand.take(each)
    assert.strictEqual(inHand.room, 0)
    for (const each of taken) inHand.release(each)

    const small = new InHand({ messages: 200, bytes: 100 })
    assert.strictEqual(small.room, 1)
    small.take(message(megabyte))
    assert.strictEqual(small.room, 0)
  })

  it("counts what is given back twice only once", () => {
    const inHand = new InHand({ messages: 10, bytes: megabyte })
    const [first, second] = [message(), message()]
    inHand.take(first)
    inHand.take(second)
    inHand.release(first)
    inHand.release(first)
    assert.strictEqual(inHand.size, 1)
    assert.strictEqual(inHand.room, 9)
  })

  it.live("is waited for while there is none", () =>
    Effect.gen(function* () {
      const inHand = new InHand({ messages: 2, bytes: megabyte })
      const [first, second] = [message(), message()]
      yield* inHand.roomy
      inHand.take(first)
      yield* inHand.roomy
      inHand.take(second)
      let waiting = true
      const waiter = yield* Effect.forkChild(
        Effect.andThen(
          inHand.roomy,
          Effect.sync(() => {
            waiting = false
          })
        )
      )
      yield* Effect.sleep("30 millis")
      assert.isTrue(waiting)
      inHand.release(second)
      yield* Fiber.join(waiter)
      assert.strictEqual(inHand.room, 1)
    })
  )
})

describe("the sign that work goes on", () => {
  it("is given for what has been in hand for long, and not for what has gone", () => {
    const inHand = new InHand({ messages: 10, bytes: megabyte })
    const [kept, gone] = [message(), message()]
    inHand.take(kept)
    inHand.take(gone)
    inHand.renew(60_000)
    assert.deepStrictEqual([kept.signs, gone.signs], [0, 0])
    inHand.release(gone)
    inHand.renew(0)
    assert.deepStrictEqual([kept.signs, gone.signs], [1, 0])
  })

  it.live("is given again and again, three times within the time that the broker waits", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const inHand = new InHand({ messages: 10, bytes: megabyte })
        const kept = message()
        inHand.take(kept)
        yield* inHand.keepAlive(60)
        while (kept.signs < 3) yield* Effect.sleep("10 millis")
      })
    )
  )
})
