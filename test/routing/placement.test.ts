import { assert, describe, it } from "@effect/vitest"
import type { AfterDirectEnd } from "../../src/routing/delivery-store.ts"
import { afterDirectEnd, mayEnterBacklog } from "../../src/routing/delivery-store.ts"
import type { DirectEnd } from "../../src/routing/partition-owner.ts"

describe("a delivery of a plan", () => {
  it("may wait in a backlog until it was attempted", () => {
    assert.isTrue(mayEnterBacklog({ attempts: 0 }))
    assert.isFalse(mayEnterBacklog({ attempts: 1, nextAttemptAt: 1 }))
  })
})

describe("after a direct delivery", () => {
  type Row = readonly [DirectEnd["_tag"], AfterDirectEnd, AfterDirectEnd, AfterDirectEnd]
  // In time; too late; with a plan that may not count.
  const rows: ReadonlyArray<Row> = [
    ["Delivered", "leave", "leave", "locate"],
    ["Untried", "store", "locate", "locate"],
    ["Failed", "store", "locate", "locate"],
    ["Unknown", "locate", "locate", "locate"]
  ]
  for (const [end, inTime, late, unsure] of rows)
    it(`that ended as ${end}`, () => {
      assert.strictEqual(afterDirectEnd(end, false, false), inTime)
      assert.strictEqual(afterDirectEnd(end, false, true), late)
      assert.strictEqual(afterDirectEnd(end, true, false), unsure)
    })
})
