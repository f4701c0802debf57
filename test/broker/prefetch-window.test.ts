import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { vi } from "vitest"
import { PrefetchWindow } from "../../src/broker/prefetch-window.ts"
import { elapsedMs } from "../../src/time/elapsed.ts"
import { withVirtualTime } from "../kit/moved-time.ts"

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

describe("the capacity for more messages", () => {
  it("is what is left of the places and of the bytes", () => {
    const prefetch = new PrefetchWindow({ deliveries: 200, bytes: 10_000 })
    assert.deepStrictEqual(prefetch.capacity, { messages: 200, bytes: 10_000 })
    const taken = Array.from({ length: 40 }, () => prefetch.take(message(100)))
    assert.deepStrictEqual(prefetch.capacity, { messages: 160, bytes: 6_000 })
    for (const each of taken.slice(0, 10)) prefetch.release(each)
    assert.deepStrictEqual(prefetch.capacity, { messages: 170, bytes: 7_000 })
    assert.strictEqual(prefetch.size, 30)
  })

  it("is little at first, and grows with what has been released", () => {
    const prefetch = new PrefetchWindow({ deliveries: 20, bytes: 10_000, atFirst: 4 })
    const takeAll = () =>
      Array.from({ length: prefetch.capacity?.messages ?? 0 }, () => prefetch.take(message(1)))
    for (const expected of [4, 8, 16, 20, 20]) {
      const taken = takeAll()
      assert.lengthOf(taken, expected)
      assert.isUndefined(prefetch.capacity)
      for (const each of taken) prefetch.release(each)
    }
  })

  it("is none where places or bytes are used up", () => {
    const prefetch = new PrefetchWindow({ deliveries: 2, bytes: 300 })
    const large = prefetch.take(message(400))
    assert.isUndefined(prefetch.capacity)
    prefetch.release(large)
    prefetch.take(message(1))
    prefetch.take(message(1))
    assert.isUndefined(prefetch.capacity)
  })

  it.effect("is known to be used up by one tenant, if that lasts", () =>
    Effect.gen(function* () {
      yield* timeStandsStill
      const prefetch = new PrefetchWindow({ deliveries: 4, bytes: 1_000 })
      const own = [1, 2, 3].map(() => prefetch.take(message(), "globex"))
      vi.advanceTimersByTime(100)
      assert.isUndefined(prefetch.crowdedBy(100))
      prefetch.take(message(), "acme")
      assert.strictEqual(prefetch.crowdedBy(100), "globex")
      assert.isUndefined(prefetch.crowdedBy(101))
      for (const each of own) prefetch.exclude(each)
      prefetch.take(message(700), "large")
      vi.advanceTimersByTime(100)
      assert.isUndefined(prefetch.crowdedBy(100))
      prefetch.take(message(200), "acme")
      assert.strictEqual(prefetch.crowdedBy(100), "large")
    }).pipe(Effect.scoped)
  )

  it("waits for more bytes after they were too few, and takes any size when none is in hand", () => {
    const prefetch = new PrefetchWindow({ deliveries: 10, bytes: 1_000 })
    const first = prefetch.take(message(300))
    const second = prefetch.take(message(300))
    prefetch.tooLarge({ messages: 8, bytes: 400 })
    assert.isUndefined(prefetch.capacity)
    prefetch.release(first)
    assert.deepStrictEqual(prefetch.capacity, { messages: 9, bytes: 700 })
    prefetch.tooLarge({ messages: 9, bytes: 700 })
    assert.isUndefined(prefetch.capacity)
    prefetch.release(second)
    assert.deepStrictEqual(prefetch.capacity, { messages: 1 })
    prefetch.release(prefetch.take(message(5_000)))
    assert.deepStrictEqual(prefetch.capacity, { messages: 10, bytes: 1_000 })
  })

  it("is less where a message stands for many deliveries, and as much as is usual lately", () => {
    const prefetch = new PrefetchWindow({ deliveries: 256, bytes: megabyte, usualParts: 8 })
    const capacity = () => prefetch.capacity?.messages
    assert.strictEqual(capacity(), 32)
    const taken = Array.from({ length: 60 }, () => prefetch.take(message()))
    for (const each of taken) prefetch.weigh(each, 1)
    assert.strictEqual(capacity(), Math.floor((256 - 60) / (1 + 7 * (15 / 16) ** 60)))
    for (const each of taken) prefetch.release(each)
    for (let n = 0; n < 100; n++) {
      const wide = prefetch.take(message())
      prefetch.weigh(wide, 64)
      prefetch.release(wide)
    }
    assert.strictEqual(capacity(), 4)
    const wide = Array.from({ length: 3 }, () => prefetch.take(message()))
    for (const each of wide) prefetch.weigh(each, 80)
    assert.isUndefined(capacity())
    prefetch.exclude(wide[0] ?? prefetch.take(message()))
    assert.strictEqual(capacity(), 1)
    for (const each of wide) prefetch.release(each)
    // For one that goes to more than there is capacity for, there is capacity while there is nothing else.
    const widest = prefetch.take(message())
    prefetch.weigh(widest, 100_000)
    assert.isUndefined(capacity())
    prefetch.release(widest)
    assert.strictEqual(capacity(), 1)
  })

  it.effect("is made by what holds messages of a tenant that crowds it, as far as that goes", () =>
    Effect.gen(function* () {
      yield* timeStandsStill
      let capacity = 2
      const holding: Array<string> = []
      const prefetch = new PrefetchWindow({
        ...{ deliveries: 4, bytes: 1_000 },
        hold: (tenant, bytes) => {
          if (capacity === 0) return undefined
          capacity--
          holding.push(`${tenant} ${bytes}`)
          return () => holding.pop()
        }
      })
      const own = [1, 2, 3].map(() => prefetch.take(message(10), "globex"))
      prefetch.take(message(), "acme")
      assert.isTrue(prefetch.isHalfOf("globex"))
      assert.isFalse(prefetch.isHalfOf("acme"))
      const waits = yield* Effect.forkScoped(prefetch.hasCapacity, { startImmediately: true })
      vi.advanceTimersByTime(45)
      assert.deepStrictEqual(holding, [])
      vi.advanceTimersByTime(10)
      yield* Fiber.join(waits)
      assert.deepStrictEqual(holding, ["globex 10", "globex 10"])
      assert.strictEqual(prefetch.capacity?.messages, 2)
      assert.isFalse(prefetch.isHalfOf("globex"))
      assert.strictEqual(prefetch.size, 4)
      assert.strictEqual(prefetch.deliveryBytes, 10 + 100)
      for (const each of own) prefetch.release(each)
      assert.deepStrictEqual(holding, [])
    }).pipe(Effect.scoped)
  )

  it("is less where the deliveries of so many may not be stored, but enough for the largest", () => {
    const prefetch = new PrefetchWindow({ deliveries: 100, bytes: 10_000, usualParts: 4 })
    const bytes = (deliveryBytes: number, largest: number) =>
      prefetch.capacityWithin(deliveryBytes, largest)?.bytes
    assert.strictEqual(bytes(100_000, 500), 10_000)
    assert.strictEqual(bytes(20_000, 500), 5_000)
    assert.strictEqual(bytes(1, 500), 500)
    assert.strictEqual(bytes(1, 50_000), 10_000)
    prefetch.tooLarge({ messages: 25, bytes: 500 })
    assert.deepStrictEqual(prefetch.capacityWithin(1, 500), { messages: 1 })
  })

  it("counts the bytes of all deliveries that may be stored", () => {
    const prefetch = new PrefetchWindow({ deliveries: 100, bytes: megabyte, usualParts: 4 })
    const first = prefetch.take(message(100))
    assert.strictEqual(prefetch.deliveryBytes, 400)
    prefetch.weigh(first, 20)
    assert.strictEqual(prefetch.deliveryBytes, 2_000)
    const second = prefetch.take(message(10))
    prefetch.weigh(second, 1)
    assert.strictEqual(prefetch.deliveryBytes, 2_010)
    prefetch.exclude(first, 3)
    assert.strictEqual(prefetch.deliveryBytes, 310)
    assert.strictEqual(prefetch.capacity?.bytes, megabyte - 10)
    prefetch.release(first)
    assert.strictEqual(prefetch.deliveryBytes, 10)
    assert.strictEqual(prefetch.capacity?.bytes, megabyte - 10)
  })

  it("counts what is given back twice only once", () => {
    const prefetch = new PrefetchWindow({ deliveries: 10, bytes: megabyte })
    const first = prefetch.take(message())
    prefetch.take(message())
    prefetch.release(first)
    prefetch.release(first)
    assert.strictEqual(prefetch.size, 1)
    assert.strictEqual(prefetch.capacity?.messages, 9)
  })

  it("does not count what was set apart, and not what is set apart when it has gone", () => {
    const prefetch = new PrefetchWindow({ deliveries: 2, bytes: megabyte })
    const first = prefetch.take(message())
    const second = prefetch.take(message())
    assert.isUndefined(prefetch.capacity)
    prefetch.exclude(first)
    prefetch.exclude(first)
    assert.deepStrictEqual(prefetch.capacity, { messages: 1, bytes: megabyte - 100 })
    prefetch.release(first)
    prefetch.exclude(first)
    prefetch.release(second)
    prefetch.exclude(second)
    assert.deepStrictEqual(prefetch.capacity, { messages: 2, bytes: megabyte })
  })

  /** As many in hand as there may be, and somebody who waits for capacity; time stands still. */
  const crowded = Effect.gen(function* () {
    yield* timeStandsStill
    const prefetch = new PrefetchWindow({ deliveries: 5, bytes: megabyte })
    yield* prefetch.hasCapacity
    const hands = Array.from({ length: 5 }, () => prefetch.take(message()))
    const waiter = yield* Effect.forkChild(prefetch.hasCapacity, { startImmediately: true })
    const release = (count: number) => {
      for (const hand of hands.splice(0, count)) prefetch.release(hand)
    }
    return { prefetch, release, waiter }
  })

  it.live("is waited for until half of it is free", () =>
    Effect.gen(function* () {
      const { prefetch, release, waiter } = yield* crowded
      release(3)
      yield* Fiber.join(waiter)
      assert.strictEqual(prefetch.capacity?.messages, 3)
    }).pipe(Effect.scoped)
  )

  it.live("is waited for until any is free, where half is not within a moment", () =>
    Effect.gen(function* () {
      const { prefetch, release, waiter } = yield* crowded
      vi.advanceTimersByTime(500)
      release(1)
      assert.isUndefined(waiter.pollUnsafe())
      vi.advanceTimersByTime(5)
      yield* Fiber.join(waiter)
      assert.strictEqual(prefetch.capacity?.messages, 1)
    }).pipe(Effect.scoped)
  )

  it.live("is waited for no longer than a second, so that whoever asks can look around", () =>
    Effect.gen(function* () {
      const { prefetch, waiter } = yield* crowded
      vi.advanceTimersByTime(999)
      assert.isUndefined(waiter.pollUnsafe())
      vi.advanceTimersByTime(1)
      yield* Fiber.join(waiter)
      assert.isUndefined(prefetch.capacity)
    }).pipe(Effect.scoped)
  )
})

describe("the sign that work goes on", () => {
  it("is given for what has been in hand for long, and not for what has gone", () => {
    const prefetch = new PrefetchWindow({ deliveries: 10, bytes: megabyte })
    const [kept, gone] = [message(), message()]
    prefetch.take(kept)
    const hand = prefetch.take(gone)
    prefetch.renew(60_000)
    assert.deepStrictEqual([kept.signs, gone.signs], [0, 0])
    prefetch.release(hand)
    prefetch.renew(0)
    assert.deepStrictEqual([kept.signs, gone.signs], [1, 0])
  })

  it.live("is given again and again, three times within the time that the broker waits", () =>
    Effect.gen(function* () {
      yield* timeStandsStill
      const prefetch = new PrefetchWindow({ deliveries: 10, bytes: megabyte })
      const kept = message()
      prefetch.take(kept)
      yield* prefetch.keepAlive(60)
      vi.advanceTimersByTime(60)
      assert.strictEqual(kept.signs, 3)
    }).pipe(Effect.scoped)
  )
})

describe("a message that nobody said is worked on", () => {
  /** What happens to the process: ms that it runs, or that it is suspended for. */
  const cases: ReadonlyArray<
    readonly [what: string, ran: number, suspended: number, before: boolean, after: boolean]
  > = [
    ["is here while the process runs", 60_000, 0, false, false],
    ["is here after a pause in which the broker waits", 4_000, 4_999, false, false],
    ["may be elsewhere after a longer one", 4_000, 6_000, true, false],
    ["may be elsewhere after one of minutes", 1_000, 180_000, true, false]
  ]
  for (const [what, ran, suspended, before, after] of cases)
    it(what, () =>
      withVirtualTime((time) => {
        const prefetch = new PrefetchWindow({ deliveries: 10, bytes: megabyte })
        const scope = Scope.makeUnsafe()
        Effect.runSync(Scope.provide(prefetch.keepAlive(15_000), scope))
        const came = elapsedMs()
        time.runs(ran)
        time.suspend(suspended)
        // Before the timer that reports has run, and after it.
        assert.strictEqual(prefetch.mayBeRedelivered(came), before)
        time.runs(5_000)
        assert.strictEqual(prefetch.mayBeRedelivered(came), before)
        assert.strictEqual(prefetch.mayBeRedelivered(elapsedMs()), after)
        Effect.runSync(Scope.close(scope, Exit.void))
      })
    )
})
