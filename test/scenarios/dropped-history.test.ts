import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { disableEndpoint, enableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { countOpen } from "../../src/history/dead-fates.ts"
import { planRedelivery } from "../../src/operations/dead-letters/redeliver-dead-letters.ts"
import { quiet } from "../kit/consistency.ts"
import { endpoint, history, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { plannedFor } from "./replaying.ts"

const { scenario } = onServer()

const stateOf = (stream: "dead" | "history") =>
  Effect.flatMap(Broker, ({ names, streamInfo }) =>
    Effect.map(streamInfo("look", names[stream]), ({ state }) => state)
  )

/** Publishes until the history has dropped all facts that it has now. */
const dropAll = Effect.gen(function* () {
  const { last_seq } = yield* stateOf("history")
  for (let round = 0; (yield* stateOf("history")).first_seq <= last_seq; round++)
    yield* publishMany(200, `other.${round}`)
  yield* quiet
})

const historyBytes = 100_000

describe.concurrent("what the history has dropped", () => {
  scenario(
    "is not taken for missing",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url, types: ["kept", "other.>"] })
        yield* endpoint({ id: "off", url: hook.url, types: ["skipped"] })
        const off = { tenant: "acme", endpoint: "off" }
        yield* disableEndpoint(off, "a test", "test")
        const facts = yield* history
        yield* worker()
        yield* publishMany(3, "kept")
        yield* facts.count("delivered", 3)
        yield* publishMany(2, "skipped")
        yield* facts.planned(5)
        yield* enableEndpoint(off, "test")
        const missing = ["hook", { onlyMissing: true }] as const
        const skipped = ["off", { skipped: true }] as const
        assert.include(yield* plannedFor(...missing), { count: 2, delivered: 3 })
        assert.include(yield* plannedFor(...skipped), { count: 2 })
        yield* dropAll
        for (const [id, asked] of [missing, skipped]) {
          const refusal = yield* Effect.flip(plannedFor(id, { ...asked, until: Date.now() }))
          assert.match(refusal.message, /^since must be \S+Z or later with `\w+`: the history/)
          const [, since = ""] = /(\S+Z)/.exec(refusal.message) ?? []
          const known = { since: Date.parse(since), until: Date.now() }
          assert.include(yield* plannedFor(id, { ...asked, ...known }), { count: 0 })
        }
        assert.isAtLeast((yield* plannedFor("hook", { until: Date.now() })).count, 5)
      }),
    { historyBytes }
  )

  scenario(
    "leaves open which dead letters were sent again",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 400 } })
        const well = yield* receiver()
        yield* endpoint({ url: hook.url, types: ["refused"] })
        yield* endpoint({ id: "well", url: well.url, types: ["other.>"] })
        const facts = yield* history
        yield* worker()
        yield* publishMany(3, "refused")
        yield* facts.count("dead-lettered", 3)
        yield* quiet
        hook.answer({ status: 200 })
        const planned = Effect.map(
          planRedelivery({ all: true }, { by: "test" }),
          ({ plan }) => plan
        )
        const open = Effect.gen(function* () {
          const { names, streamInfo } = yield* Broker
          const { first_seq, first_ts, messages } = yield* stateOf("dead")
          const letters = { stored: messages, firstId: first_seq, oldestAt: Date.parse(first_ts) }
          return yield* countOpen(
            { ...letters, removed: 0 },
            yield* streamInfo("look", names.history)
          )
        })
        assert.strictEqual(yield* open, 3)
        const { run } = yield* planRedelivery({ all: true }, { by: "test" })
        const done = yield* run()
        assert.strictEqual(done.redelivered, 3)
        assert.isUndefined(done.mayRepeat)
        yield* facts.count("delivered", 3)
        assert.include(yield* planned, { redeliver: 0, before: 3 })
        assert.strictEqual(yield* open, 0)
        yield* dropAll
        assert.include(yield* planned, { redeliver: 3, mayRepeat: 3 })
        assert.isUndefined(yield* open)
      }),
    { historyBytes }
  )
})
