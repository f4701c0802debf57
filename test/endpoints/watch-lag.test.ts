import { assert, describe, it } from "@effect/vitest"
import type { ShownValue } from "../../src/endpoints/watch-lag.ts"
import { maxLagMs, maxSilenceMs, WatchLag, weigh } from "../../src/endpoints/watch-lag.ts"

/** The leader has `lastSeq` and nothing else; is asked, and answers at once. */
const hasAll = (lag: WatchLag, lastSeq: number, at: number) =>
  lag.answered(lag.asked(at), { lastSeq, hasMore: false })
const hasMore = (lag: WatchLag, lastSeq: number, at: number) =>
  lag.answered(lag.asked(at), { lastSeq, hasMore: true })

describe("how far a watch is behind the leader", () => {
  it("is known only once the leader has said what it has, and that was shown", () => {
    const lag = new WatchLag(0)
    hasMore(lag, 3, 10)
    assert.isFalse(lag.isCaughtUp(11))
    assert.isFalse(lag.shown(2, 12))
    assert.isFalse(lag.isCaughtUp(13))
    assert.isTrue(lag.shown(3, 14))
    assert.isTrue(lag.isCaughtUp(15))
    assert.strictEqual(lag.reached, 3)
  })

  it("is nothing where the leader's last messages have been purged", () => {
    const lag = new WatchLag(0)
    hasMore(lag, 9, 0)
    lag.shown(4, 1)
    assert.isFalse(lag.isCaughtUp(2))
    hasAll(lag, 9, 3)
    assert.isTrue(lag.isCaughtUp(4))
    assert.strictEqual(lag.reached, 9)
  })

  it("may be something for a moment, counted from when the leader was first asked that had it", () => {
    const lag = new WatchLag(0)
    hasMore(lag, 5, 1_000)
    hasMore(lag, 6, 3_000)
    lag.shown(4, 3_500)
    assert.strictEqual(lag.at(1_000 + maxLagMs), "current")
    assert.isFalse(lag.isCaughtUp(1_000 + maxLagMs))
    assert.strictEqual(lag.at(1_001 + maxLagMs), "behind")
    hasMore(lag, 6, 3_501 + maxLagMs)
    assert.strictEqual(lag.at(3_501 + maxLagMs), "stuck")
    lag.shown(5, 3_502 + maxLagMs)
    assert.strictEqual(lag.at(3_503 + maxLagMs), "behind")
    lag.shown(6, 3_504 + maxLagMs)
    assert.strictEqual(lag.at(3_505 + maxLagMs), "current")
  })

  it("counts all that the leader was heard to have, and not the first of it only", () => {
    const lag = new WatchLag(0)
    hasMore(lag, 3, 1_000)
    hasMore(lag, 4, 2_000)
    assert.isFalse(lag.shown(3, 12_000))
    assert.isFalse(lag.isCaughtUp(12_001))
    assert.strictEqual(lag.at(12_001), "unanswered")
    hasMore(lag, 4, 12_002)
    assert.strictEqual(lag.at(12_003), "behind")
    assert.isTrue(lag.shown(4, 12_500))
    assert.isTrue(lag.isCaughtUp(12_501))
  })

  it("is unknown while the leader does not answer, from when it was asked last that did", () => {
    const lag = new WatchLag(0)
    hasAll(lag, 5, 1_000)
    assert.strictEqual(lag.at(1_000 + maxSilenceMs), "current")
    assert.strictEqual(lag.at(1_001 + maxSilenceMs), "unanswered")
    hasMore(lag, 6, 8_000)
    assert.strictEqual(lag.at(8_001), "current")
    assert.isFalse(lag.isCaughtUp(8_001))
  })

  it("is less than nothing where the stream has lost its end, but not where a copy is ahead", () => {
    const lag = new WatchLag(0)
    hasMore(lag, 7, 0)
    lag.shown(8, 1)
    hasAll(lag, 7, 2)
    assert.strictEqual(lag.at(3), "current")
    hasAll(lag, 7, 2_002)
    assert.strictEqual(lag.at(2_003), "truncated")
  })

  it("is told by answers that overlap, each as of when it was asked", () => {
    const lag = new WatchLag(0)
    hasAll(lag, 5, 0)
    const first = lag.asked(2_000)
    const second = lag.asked(4_000)
    // Stored and shown after the leader had answered the first, before that answer has come.
    lag.shown(6, 4_900)
    lag.answered(first, { lastSeq: 5, hasMore: false })
    assert.strictEqual(lag.at(5_000), "current")
    const third = lag.asked(6_000)
    lag.answered(third, { lastSeq: 6, hasMore: false })
    lag.answered(second, { lastSeq: 5, hasMore: false })
    assert.strictEqual(lag.at(6_000 + maxSilenceMs), "current")
    assert.strictEqual(lag.at(6_001 + maxSilenceMs), "unanswered")
  })
})

describe("what a watch shows of a key", () => {
  const value = (revision: number, text?: string): ShownValue => ({ revision, text })
  const cases: ReadonlyArray<readonly [string, ShownValue, ShownValue, ReturnType<typeof weigh>]> =
    [
      ["the first value", value(0), value(4, "a"), "take"],
      ["a newer value", value(4, "a"), value(5, "b"), "take"],
      ["its removal", value(4, "a"), value(5), "take"],
      ["what is known", value(4, "a"), value(4, "a"), "same"],
      ["a removal that is known", value(4), value(4), "same"],
      ["an older value", value(4, "b"), value(3, "a"), "ask-leader"],
      ["another value of the same revision", value(4, "a"), value(4, "b"), "ask-leader"],
      ["a value of the revision of its removal", value(4), value(4, "a"), "ask-leader"]
    ]
  for (const [what, known, shown, expected] of cases)
    it(`is ${what}: ${expected}`, () => assert.strictEqual(weigh(known, shown), expected))
})
