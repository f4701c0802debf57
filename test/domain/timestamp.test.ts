import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readTimeText, Timestamp, timeText } from "../../src/domain/timestamp.ts"

const morning = Date.UTC(2026, 2, 4, 10, 30)
const lastOf9999 = "9999-12-31T23:59:59.999Z"

describe("a time as RFC 3339 has it", () => {
  it.each([
    ["2026-03-04T10:30:00Z", morning],
    ["2026-03-04t10:30:00z", morning],
    ["2026-03-04T11:30:00+01:00", morning],
    ["2026-03-04T00:00:00-10:30", morning],
    ["2026-03-04T10:30:00.2509999Z", morning + 250],
    ["2026-03-04T10:29:60Z", morning],
    ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
    ["1969-12-31T23:59:59Z", 0],
    ["0001-01-01T00:00:00Z", 0],
    ["9999-12-31T23:59:59-01:00", Date.parse(lastOf9999)]
  ])("%s is %d", (text, ms) => {
    assert.strictEqual(readTimeText(text), ms)
  })

  it.each([
    ["2026-02-30T00:00:00Z"],
    ["2026-02-29T00:00:00Z"],
    ["2026-13-01T00:00:00Z"],
    ["2026-03-04T24:00:00Z"],
    ["2026-03-04T10:30:00"],
    ["2026-03-04T10:30Z"],
    ["2026-03-04"],
    ["2026-03-04T10:30:00+1"],
    ["1772620200000"],
    [""]
  ])("%s is none", (text) => {
    assert.isUndefined(readTimeText(text))
  })

  it("is written in UTC with ms, and never beyond what it can say", () => {
    assert.strictEqual(timeText(morning), "2026-03-04T10:30:00.000Z")
    assert.strictEqual(timeText(-1), "1970-01-01T00:00:00.000Z")
    assert.strictEqual(timeText(1e300), lastOf9999)
  })
})

describe("a field that is a time", () => {
  const Asked = Schema.Struct({ since: Schema.optionalKey(Timestamp) })

  it("is a number where it is stored, and a text in JSON that is answered", () => {
    const found = { since: morning }
    const text = { since: "2026-03-04T10:30:00.000Z" }
    assert.deepStrictEqual(Schema.encodeSync(Asked)(found), found)
    assert.deepStrictEqual(
      Schema.decodeSync(Schema.fromJsonString(Asked))(JSON.stringify(found)),
      found
    )
    const Answered = Schema.toCodecJson(Asked)
    assert.deepStrictEqual(Schema.encodeSync(Answered)(found), text)
    assert.deepStrictEqual(Schema.decodeSync(Answered)(text), found)
    assert.isTrue(Result.isFailure(Schema.decodeUnknownResult(Answered)(found)))
  })
})
