import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { eventually, worker } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("a worker that gets no answer to one heartbeat", () => {
  scenario("repeats it before it counts as missed, and keeps its share", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const { buckets } = broker.names
      const beats: Array<string> = []
      const publish: typeof broker.publish = (subject, body, headers, life) => {
        const stored = broker.publish(subject, body, headers, life)
        if (!subject.startsWith(`$KV.${buckets.workers}.worker.`)) return stored
        beats.push(String(body))
        return beats.length === 2 ? Effect.andThen(stored, Effect.never) : stored
      }
      yield* Effect.provideService(worker({ leaseTtl: 10_000 }), Broker, { ...broker, publish })
      yield* eventually(
        Effect.sync(() => beats.length),
        // The first, the one without an answer, its repetition, and the same over what was stored.
        (count) => count >= 4
      )
      assert.deepStrictEqual(
        beats.filter((beat) => beat.includes("returning")),
        []
      )
    })
  )
})
