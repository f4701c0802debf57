import { assert, describe, it } from "@effect/vitest"
import { Refusals } from "../../../src/intake/gateway/refusals.ts"

const name = { tenant: "acme", id: "stripe" }
const mismatch = { problem: "signature-mismatch", text: "The signature does not fit." } as const

describe("what a source refuses", () => {
  const reasonOf = (refusals: Refusals) => refusals.refusing(() => true)[0]?.reason

  it("is named at ten requests in a row that are not verified, and no more once one is", () => {
    const refusals = new Refusals()
    for (let n = 1; n < 10; n++) assert.isUndefined(refusals.unauthorized(name, mismatch))
    assert.isUndefined(reasonOf(refusals))
    const told = refusals.unauthorized(name, mismatch)
    assert.match(told ?? "", /^10 requests in a row were not verified, .* does not fit$/)
    refusals.verified(name)
    assert.isUndefined(reasonOf(refusals))
  })

  it("counts a request that is too large for none that was not verified", () => {
    const refusals = new Refusals()
    for (let n = 0; n < 9; n++) refusals.tooLarge(name, 1_000, true)
    refusals.unauthorized(name, mismatch)
    assert.match(reasonOf(refusals) ?? "", /^a request is larger than the 1000 bytes .* may have$/)
    for (let n = 1; n < 10; n++) refusals.unauthorized(name, mismatch)
    assert.match(reasonOf(refusals) ?? "", /^10 requests were not verified, /)
  })

  it("says of a request that is too large where nobody has verified it", () => {
    assert.strictEqual(
      new Refusals().tooLarge(name, 1_000, false),
      "a request is larger than the 1000 bytes that an event may have; it was refused unread, so that anybody may have sent it"
    )
  })
})
