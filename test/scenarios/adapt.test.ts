import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { consistentRounds } from "../kit/consistency.ts"
import { endpoint, history, publishMany, quickRetry, worker } from "../kit/engine.ts"
import { about } from "../kit/outcomes.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

/** Serves 4 at a time, 20 ms each, and refuses what is more. */
const small = Effect.gen(function* () {
  let now = 0
  return yield* receiver({
    answer: async () => {
      now++
      const status = now > 4 ? 429 : 200
      await latency(20)
      now--
      return { status }
    }
  })
})

describe("an endpoint that takes fewer at a time than it may get", () => {
  scenario("is refused less where its cap adapts, and gets everything", () =>
    Effect.gen(function* () {
      const retry = quickRetry({ maxAttempts: 100 })
      const hooks = { fixed: yield* small, adapts: yield* small }
      for (const [id, { url }] of Object.entries(hooks))
        yield* endpoint({ id, url, retry, maxInFlight: 20, adapt: id === "adapts" })
      const facts = yield* history
      yield* worker()
      const count = 200
      yield* publishMany(count)
      yield* facts.count("delivered", 2 * count)
      const refused = (id: string) => about(facts.of("attempt-failed"), id).length
      assert.isAtLeast(refused("adapts"), 1)
      assert.isAtMost(refused("adapts"), refused("fixed") / 2)
      yield* consistentRounds
    })
  )
})
