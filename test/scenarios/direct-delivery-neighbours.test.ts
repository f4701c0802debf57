import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

const slowOnes = Array.from({ length: 16 }, (_, n) => `slow-${n}`)
/** Of events to each of them and to the quick one, with a pause after each. */
const rounds = 200
const pause = "20 millis"

describe("endpoints that take a little less than a second", () => {
  scenario(
    "do not hold up the events of others",
    () =>
      Effect.gen(function* () {
        const slow = yield* receiver({ answer: () => latency(900) })
        const quick = yield* receiver()
        for (const id of slowOnes) yield* endpoint({ id, url: slow.url, types: [id] })
        yield* endpoint({ id: "quick", url: quick.url, types: ["quick"], maxInFlight: 100 })
        const facts = yield* history
        yield* worker()
        const all = Effect.gen(function* () {
          yield* Effect.forEach(slowOnes, (id) => publish(id), { concurrency: "unbounded" })
          yield* publish("quick", `${Date.now()}`)
        })
        // What they take is known from then on.
        yield* all
        yield* facts.count("delivered", slowOnes.length + 1)
        yield* Effect.replicateEffect(Effect.delay(all, pause), rounds, { discard: true })
        yield* quick.received(1 + rounds)
        const waited = quick.requests.map(({ at, body }) => at - Number(body.toString()))
        // If each that waits for such an answer counted as in hand, more would come than the router
        // had room for: the later an event the longer it would wait, the last for more than 10 s. As
        // it is it waits for some tens of ms. The limit is far from both, for a machine that does
        // other things too.
        assert.isBelow(Math.max(...waited), 3_000)
      }),
    { partitions: 8 }
  )
})
