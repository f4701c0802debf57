import { assert, describe, it } from "@effect/vitest"
import { type Kind, plan, randomFrom } from "../../../../src/cli/commands/receive/storm/plan.ts"
import { signedBy } from "../../../../src/cli/commands/receive/storm/senders.ts"
import { providers } from "../../../../src/providers/providers.ts"
import type { ProviderSettings } from "../../../../src/providers/settings.ts"

const signs = (name: string, settings: Partial<ProviderSettings>, secret: string) =>
  signedBy(providers.get(name) ?? assert.fail(name), { secrets: [], ...settings }, secret)

const planned = (
  name: string,
  seed: number,
  {
    secret = "whsec_a",
    count = 100,
    ...settings
  }: Partial<ProviderSettings> & {
    readonly secret?: string
    readonly count?: number
  } = {}
) =>
  plan(
    { count, name: "storm-1", type: "a.b", from: 0 },
    signs(name, settings, secret),
    randomFrom(seed)
  )

const count = (all: ReturnType<typeof plan>, kind: Kind) =>
  all.filter((one) => one.kind === kind).length

describe("the plan of a storm", () => {
  it("is the same for the same seed, and another one for another", () => {
    assert.deepStrictEqual(planned("stripe", 7), planned("stripe", 7))
    assert.notDeepEqual(planned("stripe", 7), planned("stripe", 8))
  })

  it("has each event once, some again right behind, and others with ids of their own", () => {
    const all = planned("stripe", 7)
    const firsts = all.filter(({ kind }) => kind === "first").map(({ event }) => event.id)
    assert.lengthOf(new Set(firsts), 100)
    assert.lengthOf(firsts, 100)
    const beside = all.filter(
      ({ event, kind }, place) =>
        kind === "repeat" && all[place - 1]?.kind === "first" && all[place - 1]?.event === event
    )
    assert.isAbove(beside.length, 8)
    assert.isAbove(count(all, "repeat"), beside.length)
    const good = new Set(firsts)
    for (const { event, kind } of all)
      assert.strictEqual(good.has(event.id), kind === "first" || kind === "repeat", kind)
  })

  it("has nothing that the receivers of a provider cannot see", () => {
    for (const kind of ["stale", "future", "forged", "unsigned", "foreign"] as const)
      assert.strictEqual(count(planned("stripe", 7), kind), 10, kind)
    // GitHub signs no time, Zoom's is not looked at, Mailgun does not sign the body.
    for (const name of ["github", "zoom", "mailgun"])
      for (const kind of ["stale", "future"] as const)
        assert.strictEqual(count(planned(name, 7), kind), 0, name)
    assert.strictEqual(count(planned("mailgun", 7), "forged"), 0)
    const byToken = planned("gitlab", 7, { secret: "token" })
    assert.strictEqual(count(byToken, "forged"), 0)
    assert.strictEqual(count(byToken, "stale"), 0)
    assert.strictEqual(count(byToken, "foreign"), 10)
    // A sender of one's own may sign a time, or none.
    const scheme = { header: "x-mac" }
    assert.strictEqual(count(planned("hmac", 7, { scheme }), "stale"), 0)
    const timed = { ...scheme, signed: "{timestamp}{body}", timestampHeader: "x-time" }
    assert.strictEqual(count(planned("hmac", 7, { scheme: timed }), "stale"), 10)
  })

  it("has a request of each kind for one event, too", () => {
    assert.isAtLeast(planned("stripe", 7, { count: 1 }).length, 8)
  })
})
