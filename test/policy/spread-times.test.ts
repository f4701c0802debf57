import { assert, describe, it } from "@effect/vitest"
import { SpreadTimes } from "../../src/policy/spread-times.ts"

const second = 1_000
const now = 1_790_000_000_000

/** Books so many times at once, and returns them. */
const booked = (times: SpreadTimes, count: number, at: number, tenant = "acme") =>
  Array.from({ length: count }, () => times.book(tenant, at, now))

const mostWithin = (times: ReadonlyArray<number>, ms: number): number =>
  Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + ms).length))

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
