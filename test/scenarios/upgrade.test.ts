import { hostname } from "node:os"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import {
  FeatureLevels,
  layoutKey,
  levelOf,
  readLayout,
  readLayoutRecord
} from "../../src/broker/installed.ts"
import { writeValue } from "../../src/broker/values.ts"
import type { LevelRange } from "../../src/domain/feature-level.ts"
import { ownLevels } from "../../src/domain/feature-level.ts"
import { planUpgrade, upgrade } from "../../src/operations/upgrade/upgrade.ts"
import { endpoint, history, worker } from "../kit/engine.ts"
import { eight } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { steadyPublisher } from "../kit/steady-publisher.ts"

const { scenario } = onServer()

const { newest } = ownLevels
/** The version after this one, which still works at this one's level. */
const next: LevelRange = { oldest: newest, newest: newest + 1 }

const as =
  (levels: LevelRange) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.provideService(effect, FeatureLevels, levels)

const level = Effect.map(as(next)(readLayoutRecord), ({ record }) => levelOf(record))

describe.concurrent("an upgrade", () => {
  scenario(
    "lets workers of both versions deliver, and raises the level once the older ones are gone",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver({})
        yield* Effect.forEach(eight, (id) => endpoint({ id, url: `${hook.url}/${id}` }))
        const facts = yield* history
        const old = yield* worker({ id: "old" })
        const publisher = yield* steadyPublisher("a", 50)
        yield* facts.count("delivered", 16)
        const young = yield* as(next)(worker({ id: "young" }))
        const seen = facts.facts.length
        yield* facts.count("delivered", facts.of("delivered").length + 160)
        const by = facts.facts.slice(seen).map((fact) => fact.worker)
        assert.include(by, "old")
        assert.include(by, "young")

        assert.deepStrictEqual(yield* as(next)(planUpgrade), {
          from: newest,
          to: newest + 1,
          old: [
            {
              worker: "old",
              host: hostname(),
              pid: process.pid
            }
          ]
        })
        const refused = yield* Effect.flip(as(next)(upgrade))
        assert.include(refused.message, "the worker old (on")
        assert.include(refused.message, `does not know feature level ${newest + 1}`)
        assert.strictEqual(yield* level, newest)

        yield* old.stop
        assert.deepStrictEqual(yield* as(next)(upgrade), { from: newest, to: newest + 1 })
        assert.strictEqual(yield* level, newest + 1)
        const late = yield* Effect.flip(worker({ id: "old" }))
        assert.include(late.message, `this installation is at feature level ${newest + 1}`)
        assert.deepStrictEqual(yield* as(next)(upgrade), { from: newest + 1, to: newest + 1 })

        const published = yield* publisher.stop
        yield* facts.count("delivered", 8 * published)
        assert.strictEqual(hook.requests.length, 8 * published)
        yield* young.stop
      }),
    { partitions: 8, ackWait: 20_000 }
  )

  scenario(
    "holds off what does not know a level that was announced, and goes on when asked again",
    () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const { record, revision } = yield* readLayoutRecord
        const announced = { ...record, raising: newest + 1 }
        yield* writeValue(names.buckets.workers, layoutKey, JSON.stringify(announced), {
          expected: revision
        })
        assert.include((yield* Effect.flip(worker({ id: "old" }))).message, "feature level")
        yield* as(next)(upgrade)
        const after = yield* as(next)(readLayoutRecord)
        assert.strictEqual(levelOf(after.record), newest + 1)
        assert.isUndefined(after.record.raising)
      })
  )

  scenario("over more than one level is refused before anything is read", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(as({ oldest: newest + 1, newest: newest + 2 })(readLayout))
      assert.include(refused.message, `run a version that knows both ${newest} and ${newest + 1}`)
    })
  )
})
