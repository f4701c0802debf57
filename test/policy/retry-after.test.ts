import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parseRetryAfter } from "../../src/policy/retry-after.ts"

const now = Date.UTC(2026, 2, 14, 12, 0, 0)
const longest = 2 ** 31 * 1000

describe("Retry-After", () => {
  it("counts seconds from now", () => {
    assert.strictEqual(parseRetryAfter("120", now), 120_000)
    assert.strictEqual(parseRetryAfter("0", now), 0)
    assert.strictEqual(parseRetryAfter("007", now), 7000)
    assert.strictEqual(parseRetryAfter(" 5\t", now), 5000)
  })

  it("reads a date in each of the three forms that HTTP has had", () => {
    const hour = 3_600_000
    assert.strictEqual(parseRetryAfter("Sat, 14 Mar 2026 13:00:00 GMT", now), hour)
    assert.strictEqual(parseRetryAfter("Saturday, 14-Mar-26 13:00:00 GMT", now), hour)
    assert.strictEqual(parseRetryAfter("Sat Mar 14 13:00:00 2026", now), hour)
    const second = Date.UTC(2026, 3, 2, 13, 0, 0) - now
    assert.strictEqual(parseRetryAfter("Thu Apr  2 13:00:00 2026", now), second)
  })

  it("takes a two-digit year that is more than 50 years ahead as one that has passed", () => {
    assert.isUndefined(parseRetryAfter("Sunday, 06-Nov-94 08:49:37 GMT", now))
    assert.isDefined(parseRetryAfter("Friday, 06-Nov-76 08:49:37 GMT", now))
  })

  it("is a whole number of ms even where now is not", () => {
    assert.strictEqual(parseRetryAfter("Sat, 14 Mar 2026 12:00:01 GMT", now + 0.5), 1000)
  })

  it("is ignored where it is missing, garbage, negative, a fraction or in the past", () => {
    for (const header of [
      undefined,
      "",
      " ",
      "soon",
      "-1",
      "+5",
      "1.5",
      "1e3",
      "0x10",
      "١٢",
      "5 seconds",
      "120, 120",
      "Infinity",
      "NaN",
      "2026-03-14T13:00:00Z",
      "Sat, 14 Mar 2026 11:59:59 GMT",
      "Sat, 14 Mar 2026 13:00:00 CET",
      "Sat, 14 Mar 2026 13:00:00",
      "Tue, 31 Feb 2099 13:00:00 GMT",
      "Tue, 00 Apr 2099 13:00:00 GMT",
      "Tue, 14 Foo 2099 13:00:00 GMT",
      "Tue, 14 Apr 2099 24:00:00 GMT",
      "Tue, 14 Apr 2099 13:60:00 GMT",
      "Tue, 14 Apr 2099 13:00:60 GMT"
    ])
      assert.isUndefined(parseRetryAfter(header, now), JSON.stringify(header))
  })

  it("is cut to a number that can be reckoned with where it is absurdly large", () => {
    assert.strictEqual(parseRetryAfter("9".repeat(400), now), longest)
    assert.strictEqual(parseRetryAfter("99999999999", now), longest)
    assert.strictEqual(parseRetryAfter("Fri, 31 Dec 9999 23:59:59 GMT", now), longest)
  })

  const Instant = Schema.Int.check(
    Schema.isBetween({ minimum: -40 * 365 * 86_400, maximum: 40 * 365 * 86_400 })
  )
  it.prop("of any date is the time until then, or nothing", [Instant], ([seconds]) => {
    const header = new Date(now + seconds * 1000).toUTCString()
    assert.strictEqual(parseRetryAfter(header, now), seconds < 0 ? undefined : seconds * 1000)
  })

  it.prop("of any text is nothing or a sane number of ms", [Schema.String], ([text]) => {
    const delay = parseRetryAfter(text, now)
    if (delay === undefined) return
    assert.isTrue(Number.isInteger(delay))
    assert.isAtLeast(delay, 0)
    assert.isAtMost(delay, longest)
  })

  it.prop(
    "of any number of seconds is so many, up to the limit",
    [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))],
    ([seconds]) => {
      assert.strictEqual(parseRetryAfter(`${seconds}`, now), Math.min(seconds * 1000, longest))
    }
  )
})
