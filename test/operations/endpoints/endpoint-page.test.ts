import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Broker } from "../../../src/broker/broker.ts"
import { KnownEndpoints } from "../../../src/delivery/introspection/survey-endpoints.ts"
import { EndpointKeys } from "../../../src/endpoints/endpoint-keys.ts"
import { pageEndpoints } from "../../../src/operations/endpoints/endpoint-page.ts"

type KeysPage = ReturnType<(typeof EndpointKeys.Service)["current"]>["page"]

describe("a page of the endpoints in a state", () => {
  it.effect("is refused with a time where the states take too long to read", () =>
    Effect.gen(function* () {
      const page = { tenant: "acme", after: undefined, limit: 50, states: ["paused"] } as const
      const asked = yield* Effect.forkChild(Effect.exit(pageEndpoints(page)))
      yield* TestClock.adjust("14 seconds")
      assert.isUndefined(asked.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const refused = yield* Effect.flip(Effect.flatten(Fiber.join(asked)))
      assert.deepInclude(refused, {
        _tag: "Busy",
        message: "the endpoints are still being counted: ask again in a few seconds",
        retryAfter: 5
      })
    }).pipe(
      Effect.provideService(KnownEndpoints, { read: Effect.never } as unknown as ReturnType<
        typeof KnownEndpoints.make
      >),
      Effect.provideService(EndpointKeys, {} as typeof EndpointKeys.Service),
      Effect.provideService(Broker, {} as typeof Broker.Service)
    )
  )

  it.effect("does not wait for the endpoints to be read where their circuits alone tell", () =>
    Effect.gen(function* () {
      const page = { tenant: "acme", after: undefined, limit: 50 }
      const found = yield* pageEndpoints({ ...page, states: ["half-open", "open"] })
      assert.deepStrictEqual(found, { endpoints: [], next: undefined })
    }).pipe(
      Effect.provideService(KnownEndpoints, {
        read: Effect.never,
        readHealth: Effect.succeed(new Map([["acme.b", { circuit: { state: "half-open" } }]]))
      } as unknown as ReturnType<typeof KnownEndpoints.make>),
      Effect.provideService(EndpointKeys, {
        current: () => ({
          page: (...[, , , , isWanted]: Parameters<KeysPage>) => {
            assert.deepStrictEqual(["acme.a", "acme.b"].filter(isWanted ?? (() => true)), [
              "acme.b"
            ])
            return []
          }
        })
      } as unknown as typeof EndpointKeys.Service),
      Effect.provideService(Broker, {} as typeof Broker.Service)
    )
  )
})
