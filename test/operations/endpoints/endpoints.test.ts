import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import type { StandingAlert } from "../../../src/domain/alert.ts"
import { mask } from "../../../src/domain/settings/endpoint-table.ts"
import { operatorNamed } from "../../../src/operations/caller.ts"
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  removeEndpoint,
  resumeEndpoint
} from "../../../src/operations/endpoints/change-state.ts"
import { listEndpoints, showEndpoint } from "../../../src/operations/endpoints/endpoint-queries.ts"
import { rotateSecret } from "../../../src/operations/endpoints/endpoint-secrets.ts"
import {
  compareRevisions,
  endpointHistory
} from "../../../src/operations/endpoints/endpoint-story.ts"
import { EndpointDetail } from "../../../src/operations/endpoints/endpoint-view.ts"
import { addEndpoint, setEndpoint } from "../../../src/operations/endpoints/write-endpoint.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const name = { tenant: "acme", id: "hook" }
const url = "https://example.com/hooks"

describe("what an operator can ask about endpoints", () => {
  scenario("is added, shown, changed and removed, and the history tells it all", () =>
    Effect.gen(function* () {
      const added = yield* addEndpoint(name, { url, timeout: Duration.seconds(5) }, "ana")
      assert.match(added.secret ?? "", /^whsec_/)
      assert.match(added.cautions[0] ?? "", /^the time-out of 5 s is short/)
      const twice = yield* Effect.flip(addEndpoint(name, { url }, "ana"))
      assert.propertyVal(twice, "_tag", "EndpointExists")

      const shown = Schema.encodeSync(EndpointDetail)(yield* showEndpoint(name))
      assert.deepInclude(shown, { ...name, timeout: "5 seconds", owner: null, raised: [] })
      const alert: StandingAlert = {
        ...{ id: "1", name: "success-low", about: "endpoint", level: "warn", unit: "%" },
        ...{ value: 97.5, currentValue: 98.6, threshold: 99, windowMs: 600_000, raisedAt: 0 }
      }
      const alerted = { ...(yield* showEndpoint(name)), raised: [alert] }
      assert.propertyVal(Schema.encodeSync(EndpointDetail)(alerted).raised[0], "currentValue", 98.6)
      assert.deepInclude(shown.circuit, { state: "closed", coolDown: "30 seconds" })
      assert.strictEqual(shown.secrets[0]?.value, mask)
      const revealed = yield* showEndpoint(name, { revealTo: "ana" })
      assert.strictEqual(revealed.secrets[0]?.value, added.secret)

      const set = yield* setEndpoint(name, { timeout: null, maxInFlight: 3 }, operatorNamed("bo"))
      assert.sameMembers([...set.changed], ["timeout", "maxInFlight"])
      assert.deepStrictEqual(set.cautions, [])
      const same = yield* setEndpoint(name, { maxInFlight: 3 }, operatorNamed("bo"))
      assert.deepStrictEqual([same.changed, same.revision], [[], set.revision])
      const wrong = yield* Effect.flip(
        setEndpoint(name, { signatureHeader: "x-sig" }, operatorNamed("bo"))
      )
      assert.propertyVal(wrong, "_tag", "Invalid")
      const comparison = yield* compareRevisions(name)
      assert.deepStrictEqual(comparison.differences, [
        { setting: "maxInFlight", from: 10, to: 3 },
        { setting: "timeout", from: "5 seconds" }
      ])

      assert.isTrue((yield* removeEndpoint(name, "cy")).removed)
      assert.deepStrictEqual(
        (yield* endpointHistory(name)).map(({ by, change }) => [change, by]),
        [
          ["added", "ana"],
          ["changed", "bo"],
          ["removed", "cy"]
        ]
      )
      const gone = yield* Effect.flip(showEndpoint(name))
      assert.propertyVal(gone, "_tag", "EndpointNotFound")
    })
  )

  scenario("changes an endpoint's state once, and says whether it did", () =>
    Effect.gen(function* () {
      yield* addEndpoint(name, { url }, "ana")
      yield* addEndpoint({ tenant: "other", id: "hook" }, { url }, "ana")
      for (const changed of [true, false]) {
        const off = yield* disableEndpoint(name, {}, "bo")
        assert.strictEqual(off.changed, changed)
        assert.deepInclude(off.disabled, { by: "bo", reason: "by hand" })
      }
      assert.isTrue((yield* enableEndpoint(name, "bo")).changed)
      const paused = yield* pauseEndpoint(name, { reason: "moving house" }, "bo")
      assert.deepInclude(paused.paused, { by: "bo", reason: "moving house" })
      const [only, ...others] = yield* listEndpoints("acme")
      assert.deepStrictEqual([only?.paused?.by, others.length], ["bo", 0])
      assert.notProperty(yield* resumeEndpoint(name, "bo"), "paused")
      assert.lengthOf(yield* listEndpoints(), 2)
    })
  )

  scenario("rotates a secret, and says by field why it does not", () =>
    Effect.gen(function* () {
      const { secret = "" } = yield* addEndpoint(name, { url }, "ana")
      const keepOld = Duration.hours(1)
      const rotated = yield* rotateSecret(name, { keepOld }, "ana")
      assert.match(rotated.secret ?? "", /^whsec_/)
      assert.lengthOf(rotated.secrets, 2)
      const problems = (given: string) =>
        Effect.map(Effect.flip(rotateSecret(name, { keepOld, secret: given }, "ana")), (error) =>
          error._tag === "Invalid" ? error.problems.map(({ field }) => field) : []
        )
      assert.deepStrictEqual(yield* problems(rotated.secret ?? ""), ["secret"])
      assert.deepStrictEqual(yield* problems("short"), ["secret"])
      const back = yield* rotateSecret(name, { keepOld, secret }, "ana")
      assert.lengthOf(back.secrets, 2)
      assert.isUndefined(back.secret)
      yield* setEndpoint(name, { sign: "none" }, operatorNamed("ana"))
      assert.deepStrictEqual(yield* problems(secret), [""])
    })
  )
})
