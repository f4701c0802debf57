import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  Description,
  hasMetadata,
  MetadataValue,
  metadataKeyProblem,
  readMetadataEntry
} from "../../src/domain/metadata.ts"

describe("metadata", () => {
  it("have names of 64 bytes that no object has by itself, and values of 512", () => {
    for (const key of ["customer", "a.b:c_d-e", "9", "k".repeat(64)])
      assert.isUndefined(metadataKeyProblem(key), key)
    for (const key of ["", "k".repeat(65), "__proto__", ".a", "a b", "ä", "a=b", "a\n"])
      assert.isString(metadataKeyProblem(key), key)
    const isValue = Schema.is(MetadataValue)
    for (const text of ["", "x".repeat(512), "ä".repeat(256), "👍".repeat(128), "a=b, c"])
      assert.isTrue(isValue(text), text.slice(0, 5))
    for (const text of ["x".repeat(513), "ä".repeat(257), "a\nb", "\u0000", "\ud800"])
      assert.isFalse(isValue(text), text.slice(0, 5))
  })

  it("are read from text, and looked for as a whole", () => {
    assert.deepStrictEqual(readMetadataEntry("a=b=c"), ["a", "b=c"])
    assert.deepStrictEqual(readMetadataEntry("a="), ["a", ""])
    for (const text of ["", "a", "=b", "__proto__=b", '["a=b"]'])
      assert.isUndefined(readMetadataEntry(text), text)
    const metadata = { plan: "gold", region: "" }
    assert.isTrue(hasMetadata(metadata, []))
    assert.isTrue(
      hasMetadata(metadata, [
        ["region", ""],
        ["plan", "gold"]
      ])
    )
    assert.isFalse(hasMetadata(metadata, [["plan", "gol"]]))
    assert.isFalse(
      hasMetadata(metadata, [
        ["plan", "gold"],
        ["toString", ""]
      ])
    )
    assert.isFalse(hasMetadata(undefined, [["plan", "gold"]]))
  })
})

describe("a description", () => {
  it("is on one line", () => {
    const is = Schema.is(Description)
    for (const text of ["Billing of acme", "x".repeat(500)]) assert.isTrue(is(text))
    for (const text of ["", "x".repeat(501), "a\nb", "\u001b[1m"]) assert.isFalse(is(text))
  })
})
