import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { TenantSettings } from "../../../src/domain/settings/tenant-table.ts"
import { readInput } from "../../../src/operations/input.ts"
import {
  changedSettings,
  setTenant,
  showTenant,
  TenantPatch
} from "../../../src/operations/tenants/tenant-settings.ts"
import { history } from "../../kit/engine.ts"
import { writeByHand } from "../../kit/live-endpoints.ts"
import { onServer } from "../../kit/scenario.ts"

const before: TenantSettings = {
  v: 1,
  updatedAt: 1,
  hostCap: 20,
  forwardHeaders: ["x-correlation-id"]
}

describe("a change of settings", () => {
  it.effect("keeps what is left out, and removes what is null", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* changedSettings(before, {}), before)
      assert.notProperty(yield* changedSettings(before, { hostCap: null }), "hostCap")
      const other = yield* changedSettings(before, {
        forwardHeaders: { "X-Correlation-ID": null, "X-Region": true }
      })
      assert.deepStrictEqual(other, { ...before, forwardHeaders: ["x-region"] })
    })
  )

  it.effect("is refused where it removes what is not there, or forwards too much", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.flip(changedSettings(before, { forwardHeaders: { "x-a": null } }))
      assert.strictEqual(
        gone.message,
        "forwardHeaders.x-a is not forwarded, so that it cannot be removed"
      )
      const many = Object.fromEntries(
        Array.from({ length: 16 }, (_, n) => [`x-${n}`, true] as const)
      )
      const refused = yield* Effect.flip(changedSettings(before, { forwardHeaders: many }))
      assert.match(refused.message, /would be 17, and at most 16 headers are forwarded/)
    })
  )

  it.each([
    [{ hostCap: 0 }, "hostCap", /must be between 1 and 100000/],
    [{ hostCap: 1.5 }, "hostCap", /whole number/],
    [{ forwardHeaders: { "content-type": true } }, "forwardHeaders", /sets itself/],
    [{ hostCapp: 3 }, "hostCapp", /did you mean hostCap\?/]
  ])("%j is refused", (patch, field, message) => {
    const read = readInput(TenantPatch, patch)
    assert(read._tag === "Failure")
    assert.strictEqual(read.failure[0]?.field, field)
    assert.match(read.failure[0]?.message ?? "", message)
  })
})

describe.concurrent("the settings of a tenant", () => {
  const { scenario } = onServer()

  scenario("are shown with those of the system, and each change is a fact", () =>
    Effect.gen(function* () {
      const facts = yield* history
      assert.deepStrictEqual(yield* showTenant("acme"), {
        ...{ tenant: "acme", forwardHeaders: [], revision: 0 },
        system: { forwardHeaders: [] }
      })
      yield* setTenant(undefined, { hostCap: 9 }, "ana")
      const set = yield* setTenant("acme", { forwardHeaders: { "x-a": true } }, "bob")
      assert.deepInclude(set, {
        changed: ["forwardHeaders"],
        system: { hostCap: 9, forwardHeaders: [] }
      })
      assert.deepStrictEqual((yield* setTenant("acme", {}, "bob")).changed, [])
      yield* facts.count("settings-changed", 2)
      assert.deepStrictEqual(
        facts.of("settings-changed").map(({ by, settings, tenant }) => [tenant, by, settings?.now]),
        [
          ["_", "ana", { hostCap: 9 }],
          ["acme", "bob", { forwardHeaders: ["x-a"] }]
        ]
      )
    })
  )

  scenario("are both kept where two change them at the same time", () =>
    Effect.gen(function* () {
      yield* Effect.all(
        [
          setTenant("acme", { hostCap: 5 }, "ana"),
          setTenant("acme", { forwardHeaders: { "x-a": true } }, "bob")
        ],
        { concurrency: 2 }
      )
      assert.deepInclude(yield* showTenant("acme"), { hostCap: 5, forwardHeaders: ["x-a"] })
    })
  )

  scenario("are not replaced where this version cannot read them", () =>
    Effect.gen(function* () {
      yield* writeByHand("acme", '{"v":2}')
      const refused = yield* Effect.flip(setTenant("acme", { hostCap: 5 }, "ana"))
      assert.match(refused.message, /^the settings under acme .* do not parse/)
    })
  )
})
