import { assert, describe } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { removeEndpoint } from "../../../src/endpoints/endpoint-store.ts"
import { readStory } from "../../../src/history/configuration.ts"
import { decodeFact } from "../../../src/history/delivery-facts.ts"
import { EndpointOrigins } from "../../../src/operations/traces/export-traces.ts"
import { endpoint, eventually, nth } from "../../kit/engine.ts"
import { change } from "../../kit/live-endpoints.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

/** Waits until an endpoint has so many changes in the stream that keeps them. */
const kept = (id: string, count: number) =>
  eventually(
    Effect.gen(function* () {
      const { names, streamInfo } = yield* Broker
      const { state } = yield* streamInfo("look", names.configuration)
      return { messages: state.messages, story: yield* readStory("acme", id) }
    }),
    ({ messages }) => messages >= count
  ).pipe(Effect.map(({ story }) => story.map(({ at }) => at)))

describe.concurrent("the origin of an endpoint", () => {
  scenario("is the one that it had at the time, also if it is gone by now", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e", url: "https://one.example/hooks?key=secret" })
      const added = nth(yield* kept("e", 1), 0)
      const early = new EndpointOrigins()
      assert.strictEqual(yield* early.of("acme", "e", added), "https://one.example")
      yield* change("e", { url: "https://two.example:8443/hooks" })
      const changed = nth(yield* kept("e", 2), 1)
      yield* removeEndpoint("acme", "e")
      yield* kept("e", 3)
      const origins = new EndpointOrigins()
      assert.strictEqual(yield* origins.of("acme", "e", changed), "https://two.example:8443")
      assert.strictEqual(yield* origins.of("acme", "e", added), "https://one.example")
      assert.strictEqual(yield* origins.of("acme", "e", added - 1_000), "https://one.example")
      assert.isUndefined(yield* origins.of("acme", "e", changed + 60_000))
      assert.isUndefined(yield* origins.of("acme", "nobody", changed))
    })
  )

  scenario("is another one from the fact of a change on", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e", url: "https://one.example" })
      const added = nth(yield* kept("e", 1), 0)
      const origins = new EndpointOrigins()
      assert.strictEqual(yield* origins.of("acme", "e", added), "https://one.example")
      const fact = Option.getOrThrow(
        decodeFact(
          JSON.stringify({
            ...{ v: 1, kind: "endpoint-changed", at: added + 10, tenant: "acme", endpoint: "e" },
            change: { revision: 2, storedAt: added + 10, isUnreadable: true }
          })
        )
      )
      origins.note(fact)
      assert.strictEqual(yield* origins.of("acme", "e", added + 9), "https://one.example")
      assert.isUndefined(yield* origins.of("acme", "e", added + 10))
    })
  )
})
