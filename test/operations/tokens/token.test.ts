import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { generateToken, isTokenId, isTokenOf, tokenIdOf } from "../../../src/operations/token.ts"

describe("a token", () => {
  it.effect("is made anew each time, and known by its hash alone", () =>
    Effect.gen(function* () {
      const [one, other] = yield* Effect.all([generateToken(), generateToken()])
      assert.match(one.token, /^ptl_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/)
      assert.notStrictEqual(one.token, other.token)
      assert.strictEqual(tokenIdOf(one.token), one.id)
      assert.isTrue(isTokenId(one.id))
      assert.isTrue(isTokenOf(one, one.token))
      for (const wrong of [other.token, `${one.token}x`, one.token.slice(0, -1), "", one.hash])
        assert.isFalse(isTokenOf(one, wrong))
      assert.notInclude(one.hash, one.token)
    })
  )

  for (const text of ["", "ptl_", "ptl_0123456789abcdef_short", "x", "ptl_0123456789ABCDEF_"])
    it(`is not ${JSON.stringify(text)}`, () => {
      assert.isUndefined(tokenIdOf(text))
    })

  it("has an id that is a key of the bucket", () => {
    for (const id of ["", "0123", ">", "0123456789abcdeg", "../../../../etc"])
      assert.isFalse(isTokenId(id), id)
  })
})
