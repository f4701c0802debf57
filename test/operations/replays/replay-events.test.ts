import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { disableEndpoint } from "../../../src/operations/endpoints/change-state.ts"
import type { ReplayRequest } from "../../../src/operations/replays/replay-events.ts"
import {
  previewReplay,
  replayProblems,
  startReplay
} from "../../../src/operations/replays/replay-events.ts"
import { endpoint, publish } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const to = { tenant: "acme", id: "hook" }
const by = "ana"

describe("the times of a replay", () => {
  it.each<[Pick<ReplayRequest, "since" | "until">, ReadonlyArray<string>]>([
    [{}, []],
    [{ since: 5, until: 5 }, []],
    [{ since: 6, until: 5 }, ["is later than `until`: nothing lies between"]],
    [{ since: 11 }, ["is in the future: there are no events yet"]]
  ])("%j at 10", (times, messages) => {
    const found = replayProblems(times, 10)
    assert.deepStrictEqual(
      found.map(({ message }) => message),
      messages
    )
  })
})

describe("a replay", () => {
  scenario("is previewed, sent once, and the same request is the same replay", () =>
    Effect.gen(function* () {
      yield* endpoint()
      yield* publish("invoice.paid", "{}")
      yield* publish("invoice.paid", "{}")
      yield* publish("user.created", "{}")
      const plan = yield* previewReplay({ to }, by)
      const rest = { before: 0, delivered: 0, underWay: 0, unrouted: 0 }
      assert.deepInclude(plan, {
        ...rest,
        replay: 3,
        types: { "invoice.paid": 2, "user.created": 1 }
      })
      const request = { to, types: ["invoice.>"] as const }
      const { id, run } = yield* startReplay(request, { by })
      assert.deepInclude(yield* run(), { ...rest, id, replayed: 2, gone: 0 })
      const again = yield* Effect.flip(startReplay(request, { by }))
      assert.match(again.message, /^this was replayed already: .* give it a name with `id`$/)
      const named = yield* startReplay({ ...request, id: "again" }, { by })
      assert.deepInclude(yield* named.run(), { id: "again", replayed: 2 })
      const other = yield* Effect.flip(previewReplay({ to, id: "again" }, by))
      assert.match(other.message, /^the replay again to acme\/hook is of other events/)
    })
  )

  scenario("is refused where its endpoint takes nothing, or there is none", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(previewReplay({ to }, by))
      assert.propertyVal(missing, "_tag", "EndpointNotFound")
      yield* endpoint()
      yield* disableEndpoint(to, {}, by)
      const disabled = yield* Effect.flip(previewReplay({ to }, by))
      assert.match(disabled.message, /^acme\/hook is disabled and takes nothing/)
    })
  )
})
