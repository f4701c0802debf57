import { assert, describe, it } from "@effect/vitest"
import { SpreadTimes } from "../../src/policy/spread-times.ts"

const second = 1_000
const now = 1_790_000_000_000

/** Books so many times at once, and returns them. */
const booked = (times: SpreadTimes, count: number, at: number, tenant = "acme") =>
  Array.from({ length: count }, () => times.book(tenant, at, now))

const mostWithin = (times: ReadonlyArray<number>, ms: number): number =>
  Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + ms).length))

/** Runs what looks into Maps, and asserts how often it does at most. */
const countingLooks = <A>(run: () => A, most: number): A => {
  const { get } = Map.prototype
  let looks = 0
  Map.prototype.get = function (key) {
    looks++
    return get.call(this, key)
  }
  try {
    return run()
  } finally {
    Map.prototype.get = get
    assert.isBelow(looks, most)
  }
}

describe("times that are spread", () => {
  it("are as wanted while few want the same one", () => {
    const times = new SpreadTimes()
    assert.deepStrictEqual(booked(times, 20, now + 31), Array(20).fill(now + 31))
    assert.strictEqual(times.book("acme", now + 500, now), now + 500)
  })

  it("are later, and never earlier, where many want the same one: 200 within a second", () => {
    const all = booked(new SpreadTimes(), 1_000, now + 30 * second + 77)
    assert.isTrue(all.every((at) => at >= now + 30 * second + 77))
    assert.isAtMost(mostWithin(all, second), 200 + 20)
    assert.isAtMost(Math.max(...all), now + 35 * second)
  })

  it("leave what is free between them to whoever wants it", () => {
    const times = new SpreadTimes()
    booked(times, 400, now + 10 * second)
    assert.strictEqual(times.book("acme", now, now), now)
    assert.strictEqual(times.book("acme", now + 20 * second, now), now + 20 * second)
  })

  it("are found without a look at all that is booked, and in the order that this would find", () => {
    const times = new SpreadTimes()
    const count = 4_000
    const all = [
      ...countingLooks(() => booked(times, count, now), 6 * count),
      // From the middle of what is booked.
      ...countingLooks(() => booked(times, count, now + 5 * second), 6 * count)
    ]
    const slots = Array.from({ length: 2 * count }, (_, n) => now + Math.floor(n / 20) * 100)
    assert.deepStrictEqual(all, slots)
  })

  it("of one tenant delay none of another", () => {
    const times = new SpreadTimes()
    booked(times, 10_000, now)
    assert.strictEqual(times.book("other", now, now), now)
  })

  it("are forgotten once they have passed", () => {
    const times = new SpreadTimes()
    let most = 0
    for (let at = now; at < now + 10_000 * second; at += second) {
      for (const tenant of ["acme", "other"]) times.book(tenant, at, at)
      most = Math.max(most, times.size)
    }
    assert.isAtMost(most, 1_000)
  })
})
