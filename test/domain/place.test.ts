import { assert, describe, it } from "@effect/vitest"
import { placeName, readPlace } from "../../src/domain/fact.ts"

const place = { stream: "PETREL_DELIVERIES_3", seq: 17, at: 1_763_827_342_123 }

describe("the place of a message", () => {
  it("is its stream, its sequence and when it was stored", () => {
    assert.strictEqual(placeName(place), "PETREL_DELIVERIES_3:17:1763827342123")
    assert.deepStrictEqual(readPlace(placeName(place)), place)
  })

  it("is none that lacks one of them", () => {
    for (const name of ["", "PETREL_DELIVERIES_3", "PETREL_DELIVERIES_3:17", ":17:1", "S:x:1"])
      assert.isUndefined(readPlace(name), name)
  })
})
