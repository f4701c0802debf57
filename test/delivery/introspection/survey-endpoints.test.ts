import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import {
  KnownEndpoints,
  surveyEndpoints
} from "../../../src/delivery/introspection/survey-endpoints.ts"
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

  scenario("are counted from what has changed where a former count is known", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const read: Array<string> = []
      const counted = Broker.of({
        ...broker,
        readRun: (options, see) =>
          broker.readRun(options, (seen) => {
            read.push(seen.message.subject.split(".").at(-1) ?? "")
            see(seen)
          })
      })
      const again = surveyEndpoints.pipe(
        Effect.provideService(KnownEndpoints, KnownEndpoints.make()),
        Effect.provideService(Broker, counted)
      )
      const known = KnownEndpoints.make()
      const next = surveyEndpoints.pipe(
        Effect.provideService(KnownEndpoints, known),
        Effect.provideService(Broker, counted)
      )
      for (const id of ["a", "b", "c", "d"]) yield* endpoint({ id })
      assert.deepInclude((yield* next).counts, { total: 4, closed: 4 })
      const whole = read.splice(0).length
      assert.isAtLeast(whole, 4)
      assert.deepInclude((yield* next).counts, { total: 4, closed: 4 })
      assert.deepStrictEqual(read, [])

      yield* pauseEndpoint({ tenant: "acme", endpoint: "b" }, undefined, "test")
      yield* removeEndpoint("acme", "c")
      yield* endpoint({ id: "e" })
      assert.deepInclude((yield* next).counts, { total: 4, closed: 3, paused: 1 })
      assert.notInclude(read.splice(0), "a")
      assert.deepStrictEqual((yield* next).counts, (yield* again).counts)
      assert.include(read, "a")
    })
  )
})
