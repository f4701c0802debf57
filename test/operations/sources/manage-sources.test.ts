import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { NotNow } from "../../../src/domain/problem.ts"
import {
  addSource,
  rotateSource,
  showSource
} from "../../../src/operations/sources/manage-sources.ts"
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

describe.concurrent("a rotation of a source's secret", () => {
  const rotate = (id: string, secret: string, keepOld: Duration.Duration) =>
    Effect.result(rotateSource({ tenant: "acme", id }, { secret, keepOld }, "ana"))

  scenario("is refused where it would drop a secret that may be signed with", () =>
    Effect.gen(function* () {
      const name = { tenant: "acme", id: "many" }
      yield* addSource(name, { provider: "github", secrets: ["s0"] }, "ana")
      for (let n = 1; n < 10; n++) yield* rotate("many", `s${n}`, Duration.days(1))
      const eleventh = yield* Effect.flip(
        rotateSource(name, { secret: "s10", keepOld: Duration.minutes(1) }, "ana")
      )
      assert.instanceOf(eleventh, NotNow)
      assert.match(
        eleventh.message,
        /^acme\/many has 10 secrets that verify, which is the maximum: wait until \d{4}-.*Z, when one ends, or keep old ones for 0s/
      )
      assert.lengthOf((yield* showSource(name)).secrets, 10)
      yield* rotate("many", "s10", Duration.zero)
      assert.lengthOf((yield* showSource(name)).secrets, 1)
    })
  )

  scenario("goes back to an old secret, whether or not it still holds", () =>
    Effect.gen(function* () {
      const name = { tenant: "acme", id: "back" }
      yield* addSource(name, { provider: "github", secrets: ["old"] }, "ana")
      yield* rotate("back", "new", Duration.days(1))
      assert.strictEqual((yield* rotate("back", "old", Duration.days(1)))._tag, "Success")
      const { secrets } = yield* showSource(name)
      assert.deepStrictEqual(
        secrets.map(({ until }) => until === undefined),
        [true, false]
      )
      assert.strictEqual((yield* rotate("back", "old", Duration.days(1)))._tag, "Failure")
    })
  )
})
