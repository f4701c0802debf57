import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { surveyEndpoints } from "../../../src/delivery/introspection/survey-endpoints.ts"
import { pauseEndpoint } from "../../../src/endpoints/endpoint-state.ts"
import { removeEndpoint } from "../../../src/endpoints/endpoint-store.ts"
import { endpoint } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

describe("endpoints by state", () => {
  scenario("are counted before any of them has been attempted, without removed ones", () =>
    Effect.gen(function* () {
      assert.deepInclude((yield* surveyEndpoints).counts, { total: 0, closed: 0 })
      for (const id of ["a", "b", "c", "gone"]) yield* endpoint({ id })
      yield* pauseEndpoint({ tenant: "acme", endpoint: "b" }, undefined, "test")
      yield* removeEndpoint("acme", "gone")
      const { counts } = yield* surveyEndpoints
      assert.deepInclude(counts, { total: 3, closed: 2, paused: 1, unreadable: 0 })
    })
  )
})
