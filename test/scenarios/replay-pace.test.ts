import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint
} from "../../src/endpoints/endpoint-state.ts"
import { consistentRounds, quiet } from "../kit/consistency.ts"
import { backlogged, endpoint, eventually, history, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { idsAt, paid, replayTo, upTo } from "./replaying.ts"

const { scenario } = onServer()

describe.concurrent("a replay", () => {
  scenario("of a few events does not wait until a long backlog has gone", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ id: "slow", url: hook.url, types: ["invoice.paid"] })
      const facts = yield* history
      yield* pauseEndpoint({ tenant: "acme", endpoint: "slow" }, undefined, "cli")
      // It knows of the pause from the beginning.
      yield* worker()
      yield* publishMany(25)
      yield* publishMany(2, "user.created")
      yield* facts.planned(27)
      yield* eventually(backlogged, (waiting) => waiting === 25)
      const counts = yield* replayTo("slow", {
        types: ["user.created"],
        pace: { queue: 4, all: 20 }
      })
      assert.strictEqual(counts.begun, 2)
      yield* eventually(backlogged, (waiting) => waiting === 27)
    })
  )

  scenario("stops where its endpoint is disabled meanwhile, and goes on when it is back", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* publishMany(60)
      const { endpoint: made } = yield* endpoint({ id: "crm", url: hook.url, types: ["none"] })
      yield* pauseEndpoint({ tenant: "acme", endpoint: "crm" }, undefined, "test")
      const facts = yield* history
      yield* worker()
      yield* facts.planned(60)
      const pace = { queue: 10, all: 20 }
      let isHeld = false
      const replaying = yield* Effect.forkChild(
        replayTo("crm", {
          pace,
          held: () => {
            isHeld = true
          }
        })
      )
      yield* eventually(
        Effect.sync(() => isHeld),
        (held) => held
      )
      const named = { tenant: "acme", endpoint: "crm", generation: made.generation }
      yield* disableEndpoint(named, "test", "test")
      const stopped = yield* Effect.flip(Fiber.join(replaying))
      assert.match(
        stopped.message,
        /acme\/crm was disabled meanwhile: nothing more is sent to it; enable it/
      )
      const begun = facts.of("replayed").length
      assert.isAtMost(begun, 40)
      yield* quiet
      yield* enableEndpoint({ tenant: "acme", endpoint: "crm" }, "test")
      yield* resumeEndpoint({ tenant: "acme", endpoint: "crm" }, "test")
      const { before } = yield* replayTo("crm")
      assert.strictEqual(before, begun)
      yield* facts.count("delivered", 60 - begun)
      assert.strictEqual(hook.requests.length, 60 - begun)
    })
  )

  scenario("holds back while too much waits for its endpoint, and loses nothing", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ id: "old", types: ["none"] })
      const facts = yield* history
      yield* worker()
      yield* publishMany(60)
      yield* facts.planned(60)
      yield* endpoint({ id: "slow", url: `${hook.url}/slow` })
      yield* pauseEndpoint({ tenant: "acme", endpoint: "slow" }, undefined, "cli")
      const told: Array<number> = []
      const replaying = yield* Effect.forkScoped(
        replayTo("slow", {
          pace: { queue: 4, all: 20 },
          held: (waiting) => {
            told.push(waiting)
          }
        })
      )
      // Of 10 or more none can leave: it is held until they can, be it for its queue or for all.
      yield* eventually(
        Effect.sync(() => told),
        (all) => all.some((waiting) => waiting >= 10)
      )
      const looks = (count: number) =>
        eventually(
          Effect.sync(() => told.length),
          (length) => length >= count
        )
      const first = told.length
      yield* looks(first + 2)
      const held = facts.of("replayed").length
      yield* looks(first + 4)
      assert.strictEqual(facts.of("replayed").length, held)
      // Besides, there are those under way when it looks.
      assert.isBelow(facts.of("replayed").length, 40)
      yield* resumeEndpoint({ tenant: "acme", endpoint: "slow" }, "cli")
      assert.strictEqual((yield* Fiber.join(replaying)).begun, 60)
      yield* consistentRounds
      assert.deepStrictEqual(idsAt(hook, "/slow"), paid(...upTo(60)))
      assert.isAtMost(Math.max(...told), 40)
    })
  )
})
