import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { consistentRounds } from "../kit/consistency.ts"
import { endpoint, eventually, history, publish, publishMany, worker } from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

describe.concurrent("many endpoints that are slow", () => {
  scenario(
    "do not use up what the quick ones need, nor more than a worker may have in flight",
    () =>
      Effect.gen(function* () {
        const slow = yield* gate
        const quick = yield* receiver()
        const known = yield* receiver()
        const count = 60
        // A request that timed out on a busy machine would be counted beside its retry.
        for (let n = 0; n < count; n++)
          yield* endpoint({ id: `slow${n}`, url: slow.url, types: ["slow"], timeout: "5 minutes" })
        yield* endpoint({ id: "quick", url: quick.url, types: ["quick"] })
        yield* endpoint({ id: "known", url: known.url, types: ["known"] })
        const facts = yield* history
        const most = 96
        yield* worker({ maxInFlight: most })
        yield* publishMany(5, "slow")
        yield* eventually(
          Effect.sync(() => slow.now.count),
          (now) => now >= count
        )
        // All that nobody answers is more than the partition would have in hand.
        yield* publishMany(200, "quick")
        yield* quick.received(200)
        yield* publishMany(200, "known")
        yield* known.received(200)
        assert.isAtMost(slow.now.most, most)
        yield* slow.open
        yield* facts.count("delivered", 400 + 5 * count)
        assert.isAtMost(slow.now.most, most)
        yield* consistentRounds
      }),
    { partitions: 1 }
  )

  scenario(
    "hold no more of what waits for them in memory than a worker may hold",
    () =>
      Effect.gen(function* () {
        const slow = yield* gate
        const quick = yield* receiver()
        const count = 8
        for (let n = 0; n < count; n++)
          yield* endpoint({ id: `slow${n}`, url: slow.url, types: [`slow${n}`] })
        yield* endpoint({ id: "quick", url: quick.url, types: ["quick"] })
        const facts = yield* history
        const bytes = 400_000
        const most = 16 * 1024 * 1024
        yield* worker({ maxBytes: most })
        // Each has a body of its own, and none is known to be slow before all have some.
        for (let event = 0; event < 10; event++)
          for (let n = 0; n < count; n++) yield* publish(`slow${n}`, "x".repeat(bytes))
        yield* eventually(
          Effect.sync(() => slow.now.count),
          (now) => now >= count
        )
        yield* publishMany(30, "quick", bytes)
        yield* quick.received(30)
        assert.isAtMost(slow.now.most * bytes, most)
        yield* slow.open
        yield* facts.count("delivered", 30 + 10 * count)
        yield* consistentRounds
      }),
    { partitions: 1 }
  )
})
