import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { addSource } from "../../../src/operations/sources/manage-sources.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

describe.concurrent("a source whose provider cannot work with its settings", () => {
  scenario("is refused with the field that is wrong, by the name it has in the API", () =>
    Effect.gen(function* () {
      const fieldsOf = (settings: Parameters<typeof addSource>[1]) =>
        Effect.map(Effect.flip(addSource({ tenant: "acme", id: "s" }, settings, "ana")), (error) =>
          error._tag === "Invalid"
            ? error.problems.map(({ field, message }) => `${field} ${message}`)
            : [error._tag]
        )
      assert.deepStrictEqual(yield* fieldsOf({ provider: "stripe" }), [
        "secrets is missing: the endpoint's signing secrets, whsec_…"
      ])
      const secrets = ["whsec_a"]
      assert.deepStrictEqual(yield* fieldsOf({ provider: "github", secrets, verifyToken: "v" }), [
        "verifyToken is not used by GitHub: leave it out"
      ])
      const [unknown = ""] = yield* fieldsOf({ provider: "nobody", secrets })
      assert.match(unknown, /^ there is no provider "nobody": there are petrel, /)
    })
  )
})
