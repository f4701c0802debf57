import { assert, describe, it } from "@effect/vitest"
import { isFollowedBy } from "../../../src/delivery/retry/applied-steps.ts"
import type { Place } from "../../../src/domain/fact.ts"
import { placeName } from "../../../src/domain/fact.ts"

const queue = (seq: number, at: number): Place => ({ stream: "PETREL_DELIVERIES_0", seq, at })
const entry = (seq: number, at: number, entry: number): Place => ({
  ...{ stream: "PETREL_BACKLOG_0", seq, at },
  entry
})
const held = queue(20, 1_000)

describe("a message that proves that another one moved on", () => {
  for (const [what, place, origin, isProof] of [
    ["the same one", held, undefined, false],
    ["one before it, whose acknowledgement was lost", queue(12, 900), undefined, false],
    ["one before it in the same ms", queue(19, 1_000), undefined, false],
    ["one after it", queue(21, 1_400), undefined, true],
    ["one after it in the same ms", queue(21, 1_000), undefined, true],
    ["one after it, on a sequence that was given again", queue(7, 1_400), undefined, true],
    ["an entry of a backlog before it", entry(40, 900, 3), undefined, false],
    [
      "an entry of a backlog in the same ms: it may be repeated",
      entry(40, 1_000, 3),
      undefined,
      false
    ],
    ["an entry of a backlog after it", entry(2, 1_001, 3), undefined, true],
    ["one that came from it, by a clock that is behind", entry(2, 995, 3), placeName(held), true],
    ["one that came from elsewhere, before it", queue(12, 900), placeName(queue(11, 800)), false]
  ] as const)
    it(`${isProof ? "is" : "is not"} ${what}`, () => {
      assert.strictEqual(isFollowedBy(held, { place, origin }), isProof)
    })

  it("is an entry after it, in one message", () => {
    const [first, second] = [entry(5, 1_000, 1), entry(5, 1_000, 2)]
    assert.isTrue(isFollowedBy(first, { place: second, origin: undefined }))
    assert.isFalse(isFollowedBy(second, { place: first, origin: undefined }))
  })
})
