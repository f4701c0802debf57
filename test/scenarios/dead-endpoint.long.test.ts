import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { allFacts, consistentRounds } from "../kit/consistency.ts"
import { backlogged, endpoint, eventually, publishMany, quickRetry, worker } from "../kit/engine.ts"
import { latencies, quantile } from "../kit/latency.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 90_000 })

const { scenario } = onServer()

/** Down until it is mended; counts the requests that it has at the same time, and notes them while it comes back. */
const fallen = Effect.gen(function* () {
  const state = { down: true, now: 0, most: 0 }
  const levels: Array<number> = []
  const hook = yield* receiver({
    answer: async () => {
      state.now++
      state.most = Math.max(state.most, state.now)
      if (!state.down && levels.length < 200) levels.push(state.now)
      await latency(1)
      state.now--
      return { status: state.down ? 503 : 200 }
    }
  })
  const mend = Effect.sync(() => {
    state.down = false
  })
  return { ...hook, state, levels, mend }
})

describe("an endpoint that is down while 20,000 events come for it", () => {
  scenario(
    "costs another one nothing, and has them all, never above its cap, once it is back",
    () =>
      Effect.gen(function* () {
        const count = 20_000
        const dead = yield* fallen
        const well = yield* receiver()
        yield* endpoint({
          id: "dead",
          url: dead.url,
          types: ["lost"],
          retry: quickRetry({ backoff: { kind: "fixed", delay: "1 second" }, maxAttempts: 50 }),
          circuit: { coolDown: "500 millis", maxCoolDown: "1 second" }
        })
        yield* endpoint({ id: "well", url: well.url, types: ["good"] })
        yield* worker()
        yield* latencies(well, "good", 100)
        const usual = quantile(yield* latencies(well, "good", 1_000), 0.99)

        yield* publishMany(count, "lost")
        yield* eventually(backlogged, (waiting) => waiting >= count - 100)
        const p99 = quantile(yield* latencies(well, "good", 1_000), 0.99)
        // A wide margin, for a machine that does other things too.
        assert.isAtMost(p99, 1.5 * usual + 100)
        // Five open the circuit while up to a cap's worth is out; from then on, one probe at a time.
        assert.isAtMost(dead.requests.length, 60)

        yield* dead.mend
        // Asks the streams: so long a list is not to be gone through for each fact that comes.
        yield* consistentRounds
        const arrived = (yield* allFacts).filter(
          ({ endpoint, kind }) => endpoint === "dead" && kind === "delivered"
        )
        assert.strictEqual(arrived.length, count)
        assert.isAtMost(dead.state.most, 10)
        const [first, second] = dead.levels
        assert.deepStrictEqual([first, second], [1, 1])
        const reached = dead.levels.indexOf(8)
        assert.isAtLeast(reached, 8)
      })
  )
})
