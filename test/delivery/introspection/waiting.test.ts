import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { countWaiting } from "../../../src/delivery/introspection/waiting.ts"
import { endpoint, eventually, history, publishMany, quickRetry, worker } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const anHour = quickRetry({ backoff: { kind: "fixed", delay: "1 hour" }, window: "2 hours" })

describe("what waits for an endpoint", () => {
  scenario("is counted by place, also what waits as schedules, which do not name it", () =>
    Effect.gen(function* () {
      const failing = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ id: "a", url: failing.url, types: ["a"], retry: anHour })
      // More than one, so that one of them is in the same partition.
      for (const id of ["b", "c", "d"])
        yield* endpoint({ id, url: failing.url, types: ["b"], retry: anHour })
      const facts = yield* history
      yield* worker({ maxWaiting: 0 })
      yield* publishMany(3, "a")
      yield* publishMany(2, "b")
      yield* facts.count("attempt-failed", 9)
      const all = Effect.forEach(["a", "b", "c", "d"], (id) => countWaiting("acme", id))
      const counts = yield* eventually(all, (all) => all.every(({ queue }) => queue === 0))
      assert.deepStrictEqual(counts, [
        { queue: 0, schedules: 3, backlog: 0 },
        { queue: 0, schedules: 2, backlog: 0 },
        { queue: 0, schedules: 2, backlog: 0 },
        { queue: 0, schedules: 2, backlog: 0 }
      ])
    })
  )
})
