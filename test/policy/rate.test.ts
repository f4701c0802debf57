import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { rateText, readRate, TokenBucket } from "../../src/policy/rate.ts"

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const Rate = Schema.Struct({
  perSecond: Schema.Finite.check(Schema.isBetween({ minimum: 0.001, maximum: 5_000 })),
  burst: between(1, 50)
})
const epoch = 1_790_000_000_000

/** Takes until there is none. */
const drain = (bucket: TokenBucket, now: number): number => {
  let taken = 0
  while (bucket.take(now)) taken++
  return taken
}

describe("a token bucket", () => {
  it("gives a burst at once, then as many as its rate", () => {
    const bucket = new TokenBucket({ perSecond: 20, burst: 3 }, epoch)
    assert.strictEqual(drain(bucket, epoch), 3)
    assert.strictEqual(bucket.waitFor(epoch), 50)
    assert.isFalse(bucket.take(epoch + 49))
    assert.isTrue(bucket.take(epoch + 50))
    assert.isFalse(bucket.take(epoch + 50))
  })

  it("that takes the place of another one has its level, as far as it holds that much", () => {
    // A token in 64 ms: its parts are numbers that a computer has.
    const rate = { perSecond: 15.625, burst: 3 }
    const before = new TokenBucket(rate, epoch)
    drain(before, epoch)
    const empty = new TokenBucket(rate, epoch + 16, before.level(epoch + 16))
    assert.isFalse(empty.take(epoch + 16))
    assert.strictEqual(empty.waitFor(epoch + 16), 48)
    assert.isTrue(empty.take(epoch + 64))
    const full = new TokenBucket({ perSecond: 100, burst: 50 }, epoch).level(epoch)
    assert.strictEqual(drain(new TokenBucket(rate, epoch, full), epoch), 3)
    const larger = new TokenBucket({ perSecond: 100, burst: 50 }, epoch, 2.5)
    assert.strictEqual(drain(larger, epoch), 2)
    assert.strictEqual(drain(larger, epoch + 1_000), 50)
  })

  it("gives exactly its rate over a year in which all is taken", () => {
    const bucket = new TokenBucket({ perSecond: 0.7, burst: 50 }, epoch)
    const year = 365 * 24 * 3_600_000
    let taken = 0
    for (let at = epoch; at <= epoch + year; at += 10_000) taken += drain(bucket, at)
    assert.strictEqual(taken, 50 + 22_075_200)
  })

  it("loses nothing to rounding, however often it is asked", () => {
    const bucket = new TokenBucket({ perSecond: 3, burst: 2 }, epoch)
    drain(bucket, epoch)
    let taken = 0
    for (let at = epoch + 1; at <= epoch + 1_000_000; at++) if (bucket.take(at)) taken++
    assert.strictEqual(taken, 3_000)
  })

  it("has a token after the wait it names at rates that no fraction of two is equal to", () => {
    for (let perMinute = 1; perMinute <= 600; perMinute++) {
      const bucket = new TokenBucket({ perSecond: perMinute / 60, burst: 5 }, 0)
      drain(bucket, 0)
      let at = 0
      for (let token = 1; token <= 200; token++) {
        at += bucket.waitFor(at)
        assert.isTrue(bucket.take(at), `token ${token} of ${perMinute} a minute`)
      }
      assert.isAtMost(at, (200 * 60_000) / perMinute + 1)
    }
  })

  it.prop(
    "never gives more in any time than a burst and what comes in within it",
    { rate: Rate, gaps: Schema.Array(between(0, 3_000)) },
    ({ gaps, rate }) => {
      const bucket = new TokenBucket(rate, epoch)
      const taken: Array<readonly [at: number, count: number]> = []
      let at = epoch
      for (const gap of gaps) {
        at += gap
        taken.push([at, drain(bucket, at)])
      }
      for (let from = 0; from < taken.length; from++) {
        let sum = 0
        for (const [then, count] of taken.slice(from)) {
          sum += count
          const span = then - (taken[from]?.[0] ?? 0)
          assert.isAtMost(sum, rate.burst + (span * rate.perSecond) / 1_000 + 1e-6)
        }
      }
    }
  )

  it.prop(
    "has a token after the wait it names, and none before",
    { rate: Rate, gaps: Schema.Array(between(0, 3_000)) },
    ({ gaps, rate }) => {
      const bucket = new TokenBucket(rate, epoch)
      let at = epoch
      for (const gap of gaps) {
        at += gap
        drain(bucket, at)
        const wait = bucket.waitFor(at)
        assert.isTrue(Number.isInteger(wait) && wait > 0)
        // The last ms may be there for rounding's sake only.
        if (wait > 2) assert.isFalse(bucket.take(at + wait - 2))
        at += wait
        assert.strictEqual(bucket.waitFor(at), 0)
        assert.isTrue(bucket.take(at))
      }
    }
  )
})

describe("a rate", () => {
  it.each([
    ["20/s", { perSecond: 20, burst: 1 }],
    [" 2.5 / second ", { perSecond: 2.5, burst: 1 }],
    ["1000/s", { perSecond: 1_000, burst: 50 }],
    ["30/min", { perSecond: 0.5, burst: 1 }],
    ["30/m", { perSecond: 0.5, burst: 1 }],
    ["1/h", { perSecond: 1 / 3_600, burst: 1 }],
    ["20/s burst 40", { perSecond: 20, burst: 40 }],
    ["20/s, burst 40", { perSecond: 20, burst: 40 }],
    ["20/s burst 0", undefined],
    ["20/s burst", undefined],
    ["0/s", undefined],
    ["-1/s", undefined],
    ["100001/s", undefined],
    ["1/day", undefined],
    ["20", undefined],
    ["", undefined]
  ] as const)("is read from %o", (text, expected) => {
    assert.deepStrictEqual(readRate(text), expected)
  })

  it.each([
    ["20/s", "20/s"],
    ["2.5/s", "150/min"],
    ["100/min", "100/min"],
    ["30/min", "30/min"],
    ["7/h", "7/h"],
    ["60/min", "1/s"],
    ["20/s burst 40", "20/s burst 40"],
    ["1000/s burst 1", "1000/s burst 1"]
  ])("given as %s is shown as %s", (text, shown) => {
    const rate = readRate(text)
    assert.isDefined(rate)
    assert.strictEqual(rateText(rate), shown)
    assert.deepStrictEqual(readRate(shown), rate)
  })
})
