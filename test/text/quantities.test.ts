import { assert, describe, it, vi } from "@effect/vitest"
import { defaultQuotas, tenantSettings } from "../../src/domain/settings/tenant-table.ts"
import {
  bytesText,
  countText,
  percentText,
  plural,
  rangesText,
  readBytes,
  zonedTime
} from "../../src/text/quantities.ts"

describe("a count", () => {
  it("is grouped by thousands", () => {
    const texts = [0, 999, 1_000, 12_345, 1_234_567, -1_000].map(countText)
    assert.deepStrictEqual(texts, ["0", "999", "1,000", "12,345", "1,234,567", "-1,000"])
  })

  it("is told of quotas as it is", () => {
    for (const name of ["maxEndpoints", "maxTokens"] as const)
      assert.strictEqual(tenantSettings[name].usual, countText(defaultQuotas[name]))
  })
})

describe("numbers in ranges", () => {
  it("name each once", () => {
    assert.strictEqual(rangesText([0, 1, 2, 4, 6, 7]), "0-2, 4, 6-7")
    assert.strictEqual(rangesText([]), "")
  })
})

describe("a share in percent", () => {
  it("is 100% of all and 0% of none, and of nothing else", () => {
    const texts = [
      [0, 7],
      [7, 7],
      [9_999, 10_000],
      [1, 100_000],
      [1, 3]
    ].map(([part = 0, whole = 0]) => percentText(part, whole))
    assert.deepStrictEqual(texts, ["0%", "100%", "99.9%", "<0.1%", "33.3%"])
  })
})

describe("a count", () => {
  it("goes with its word", () => {
    assert.deepStrictEqual(
      [plural(1, "delivery", "deliveries"), plural(1_200, "delivery", "deliveries")],
      ["1 delivery", "1,200 deliveries"]
    )
  })
})

describe("a size on the command line", () => {
  it.each([
    ["1048576", 1_048_576],
    ["512 B", 512],
    ["1KiB", 1_024],
    ["64MB", 67_108_864],
    ["1.5g", 1_610_612_736]
  ])("%s is %d bytes", (text, bytes) => {
    assert.strictEqual(readBytes(text), bytes)
  })

  it.each(["", "x", "0", "-1", "1.5", "1 PB"])("%s is none", (text) => {
    assert.isUndefined(readBytes(text))
  })

  it.each([
    [512, "512 B"],
    [983_040, "960 KiB"],
    [1_610_612_736, "1.5 GiB"]
  ])("%d bytes are shown as %s", (bytes, text) => {
    assert.strictEqual(bytesText(bytes), text)
  })
})

describe("a time in what an operation says", () => {
  it.each([
    [0, "UTC"],
    [-345, "UTC+05:45"],
    [210, "UTC-03:30"]
  ])("at %d minutes to UTC names %s", (offset, zone) => {
    const spied = vi.spyOn(Date.prototype, "getTimezoneOffset").mockReturnValue(offset)
    try {
      const at = Date.now()
      assert.match(zonedTime(at, at), /^\d{2}:\d{2}:\d{2} UTC\S*$/)
      assert.strictEqual(zonedTime(at, at).split(" ")[1], zone)
    } finally {
      spied.mockRestore()
    }
  })
})
