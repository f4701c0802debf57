import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { makeCursor } from "../../src/operations/parameters.ts"

describe("a cursor", () => {
  const names = makeCursor("names", Schema.String)
  const numbers = makeCursor("numbers", Schema.Int)

  it.effect("is read as it was written", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* names.read(names.write("acme.é")), "acme.é")
      assert.strictEqual(yield* numbers.read(numbers.write(7)), 7)
      assert.isUndefined(yield* names.read(undefined))
    })
  )

  for (const [what, text] of [
    ["of another list", numbers.write(7)],
    ["made up", "bm9uc2Vuc2U"],
    ["cut off", names.write("acme.billing").slice(0, -3)],
    ["empty", ""],
    ["no base64", "%%%"]
  ] as const)
    it.effect(`is refused where it is ${what}`, () =>
      Effect.gen(function* () {
        const { problems } = yield* Effect.flip(names.read(text))
        assert.deepStrictEqual(problems, [
          { field: "cursor", message: "does not belong to this list: take `next` of its last page" }
        ])
      })
    )
})
