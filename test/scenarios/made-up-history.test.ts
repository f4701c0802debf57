import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { storeHistory } from "../../bench/made-up-history.ts"
import { isClean } from "../kit/consistency.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("the history that the bench makes up", () => {
  scenario("is as a worker would have left it", () =>
    Effect.gen(function* () {
      yield* storeHistory({ events: 100, fanOut: 2 })
      assert.deepInclude(yield* isClean, { delivered: 200 })
    })
  )
})
