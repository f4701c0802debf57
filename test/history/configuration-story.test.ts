import { assert, describe, it } from "@effect/vitest"
import type { Configuration, ConfigurationChange } from "../../src/domain/configuration.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { storyOf } from "../../src/history/configuration.ts"

const configuration: Configuration = {
  generation: "g1",
  origin: "https://example.com",
  urlDigest: "0123456789ab",
  types: ["invoice.>"],
  sign: "none",
  secrets: [],
  retry: "default",
  maxInFlight: 10,
  redirects: 3,
  headers: []
}
const fact = (change: ConfigurationChange, changes: Partial<Fact> = {}): Fact => ({
  v: 1,
  kind: "endpoint-changed",
  at: change.storedAt,
  tenant: "acme",
  endpoint: "hook",
  change,
  ...changes
})
const added = fact({ revision: 1, storedAt: 10, now: configuration }, { by: "ana", user: "ops" })
const capped = fact({ revision: 4, storedAt: 40, now: { ...configuration, maxInFlight: 3 } })
const unreadable = fact({ revision: 3, storedAt: 30, isUnreadable: true })
const removed = fact({ revision: 5, storedAt: 50 })
const again = fact({ revision: 7, storedAt: 70, now: { ...configuration, generation: "g2" } })

const outline = (facts: ReadonlyArray<Fact>) =>
  storyOf(facts).map(({ change, differences, revision }) => [
    revision,
    change,
    ...differences.map(({ setting }) => setting)
  ])

const all = ["generation", "url", "types", "sign", "secrets", "retry", "maxInFlight"]
const set = [...all, "redirects", "headers"]

describe("the story of an endpoint's configuration", () => {
  it("tells what each change changed, whatever order the facts came in", () => {
    assert.deepStrictEqual(outline([again, removed, capped, unreadable, added]), [
      [1, "added", ...set],
      [3, "unreadable"],
      [4, "changed", "maxInFlight"],
      [5, "removed"],
      [7, "added", ...set]
    ])
  })

  it("tells a change once, and who made it where one of the facts knows", () => {
    const noticed = { ...added, by: undefined }
    for (const facts of [
      [noticed, added],
      [added, noticed]
    ])
      assert.deepStrictEqual(
        storyOf(facts).map(({ by, revision, user }) => [revision, by, user]),
        [[1, "ana", "ops"]]
      )
  })

  it("goes by the time where the bucket has given a revision again", () => {
    const anew = fact({ revision: 1, storedAt: 60, now: { ...configuration, redirects: 0 } })
    assert.deepStrictEqual(outline([anew, capped, added]), [
      [1, "added", ...set],
      [4, "changed", "maxInFlight"],
      [1, "changed", "maxInFlight", "redirects"]
    ])
  })

  it("places a removal that left no trace where it was noticed", () => {
    const traceless = fact({ revision: 9, storedAt: 0 }, { at: 90 })
    assert.deepStrictEqual(outline([traceless, again]), [
      [7, "added", ...set],
      [9, "removed"]
    ])
  })

  it("says of another generation that it is one, where no removal was told", () => {
    assert.deepStrictEqual(outline([added, again]).at(-1), [7, "changed", "generation"])
  })
})
