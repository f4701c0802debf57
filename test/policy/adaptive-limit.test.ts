import { assert, describe, it } from "@effect/vitest"
import { AdaptiveLimit } from "../../src/policy/adaptive-limit.ts"

/** A receiver that answers, one round trip after the other, with as many requests as it is allowed. */
const run = (
  limit: AdaptiveLimit,
  cap: number,
  rounds: number,
  answer: (inFlight: number) => { readonly ms: number; readonly overloaded?: boolean },
  from = 0
) => {
  let now = from
  const limits: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const inFlight = limit.limit
    const { ms, overloaded = false } = answer(inFlight)
    for (let n = 0; n < inFlight; n++)
      limit.note({ sentAt: now, at: now + ms, overloaded: overloaded && n === 0 }, cap)
    now += ms
    limits.push(limit.limit)
  }
  return { limits, now }
}

describe("the limit that adapts", () => {
  it("is the cap while all is well", () => {
    const { limits } = run(new AdaptiveLimit(10), 10, 50, () => ({ ms: 20 }))
    assert.deepStrictEqual(new Set(limits), new Set([10]))
  })

  it("goes down by three tenths with an answer that says it is too much, once for all that was under way", () => {
    const limit = new AdaptiveLimit(10)
    for (let n = 0; n < 10; n++) limit.note({ sentAt: 0, at: 20 + n, overloaded: true }, 10)
    assert.strictEqual(limit.limit, 7)
    limit.note({ sentAt: 40, at: 60, overloaded: true }, 10)
    assert.strictEqual(limit.limit, 4)
  })

  it("is never less than one", () => {
    const limit = new AdaptiveLimit(3)
    for (let at = 0; at < 1_000; at += 10)
      limit.note({ sentAt: at, at: at + 5, overloaded: true }, 3)
    assert.strictEqual(limit.limit, 1)
  })

  it("grows by one with each round trip, up to the cap", () => {
    const limit = new AdaptiveLimit(8)
    limit.note({ sentAt: 0, at: 20, overloaded: true }, 8)
    const { limits } = run(limit, 8, 12, () => ({ ms: 20 }), 100)
    for (const [round, now] of limits.entries())
      assert.closeTo(now, Math.min(8, 5 + round), 1, `round ${round}`)
    assert.strictEqual(limits.at(-1), 8)
  })

  it("stays near what a receiver serves at once, where more makes it slow", () => {
    const limit = new AdaptiveLimit(50)
    const places = 6
    // What finds no place waits: the time grows with what is in flight.
    const serve = (inFlight: number) => ({ ms: 20 * Math.max(1, inFlight / places) })
    // It was seen at its best.
    limit.note({ sentAt: 0, at: 20, overloaded: false }, 50)
    const { limits, now } = run(limit, 50, 300, serve, 100)
    for (const settled of limits.slice(100)) {
      assert.isAtLeast(settled, places)
      assert.isAtMost(settled, 4 * places)
    }
    const { limits: after } = run(limit, 50, 300, () => ({ ms: 20 }), now)
    assert.strictEqual(after.at(-1), 50)
  })

  it("stays near where a receiver begins to refuse", () => {
    const limit = new AdaptiveLimit(50)
    const { limits } = run(limit, 50, 300, (inFlight) => ({ ms: 20, overloaded: inFlight > 12 }))
    for (const settled of limits.slice(50)) {
      assert.isAtLeast(settled, 5)
      assert.isAtMost(settled, 13)
    }
  })

  it("takes a slower endpoint for what it is once nothing has been quicker for long", () => {
    const limit = new AdaptiveLimit(10)
    const { now } = run(limit, 10, 10, () => ({ ms: 10 }))
    const slower = run(limit, 10, 100, () => ({ ms: 200 }), now)
    assert.isAtMost(slower.limits.at(-1) ?? 0, 2)
    const later = run(limit, 10, 20_000, () => ({ ms: 200 }), slower.now)
    assert.strictEqual(later.limits.at(-1), 10)
  })
})
