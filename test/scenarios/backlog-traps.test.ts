import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { consistentRounds, isClean, noRecords } from "../kit/consistency.ts"
import { backlogged, endpoint, eventually, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 110_000 })

const { scenario } = onServer()

const hook = { tenant: "acme", endpoint: "hook" }
const paused = { at: 1, by: "test" }

const historyEnd = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look", names.history)
  return state
})

describe("a backlog whose history is gone", () => {
  scenario(
    "is delivered once, and the audit does not call it clean",
    () =>
      Effect.gen(function* () {
        const begin = Date.now()
        const { requests, url } = yield* receiver()
        const well = yield* receiver()
        yield* endpoint({ url, types: ["kept"], paused })
        yield* endpoint({ id: "well", url: well.url, types: ["other"] })
        yield* worker()
        yield* publishMany(20, "kept")
        yield* eventually(backlogged, (count) => count === 20)
        const { last_seq: planned } = yield* historyEnd
        // The history drops all of it three times over.
        let round = 0
        for (let wraps = 0; wraps < 3; ) {
          const before = (yield* historyEnd).last_seq
          while ((yield* historyEnd).first_seq <= before)
            yield* publishMany(200, `other.${round++}`)
          wraps++
        }
        assert.isAbove((yield* historyEnd).first_seq, planned)
        yield* resumeEndpoint(hook, "test")
        yield* eventually(backlogged, (count) => count === 0)
        const ids = requests.map(({ headers }) => headers["webhook-id"])
        assert.lengthOf(ids, 20)
        assert.strictEqual(new Set(ids).size, 20)
        const { judgement } = yield* audit({ since: begin })
        assert.strictEqual(judgement.verdict, "unvouched")
      }),
    { historyBytes: 150_000 }
  )
})

describe("a message of a backlog that was sent in part", () => {
  const entries = 5
  for (let done = 1; done < entries; done++)
    scenario(
      `is sent from its entry ${done + 1} on after a crash there, and no entry is lost`,
      (place) =>
        Effect.gen(function* () {
          const { requests, url } = yield* receiver()
          yield* endpoint({ url, paused, maxInFlight: 1 })
          const first = yield* worker({ id: "first" })
          yield* publishMany(entries)
          yield* eventually(backlogged, (count) => count === entries)
          yield* first.stop
          // The outcome is stored, and nothing is released.
          yield* crashAt(place, "outcome-stored", done, {}, resumeEndpoint(hook, "test"))
          yield* worker({ id: "second" })
          yield* consistentRounds
          const ids = requests.map(({ headers }) => headers["webhook-id"])
          assert.strictEqual(new Set(ids).size, entries)
          assert.lengthOf(ids, entries)
          yield* eventually(backlogged, (count) => count === 0)
          yield* isClean
          yield* noRecords
        })
    )
})
