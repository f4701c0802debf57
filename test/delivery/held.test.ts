import { assert, describe, it } from "@effect/vitest"
import { placeName } from "../../src/delivery/lanes/held.ts"

describe("the place of a message", () => {
  it("is its stream and its sequence", () => {
    assert.strictEqual(
      placeName({ stream: "PETREL_DELIVERIES_3", seq: 17 }),
      "PETREL_DELIVERIES_3:17"
    )
  })
})
