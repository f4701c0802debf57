import { assert, describe, it } from "@effect/vitest"
import { type Kind, plan, randomFrom } from "../../../../src/cli/commands/receive/storm/plan.ts"
import { providers } from "../../../../src/providers/providers.ts"

const planned = (name: string, seed: number, signsBody = true, count = 100) =>
  plan(
    { count, name: "storm-1", type: "a.b", from: 0 },
    providers.get(name) ?? assert.fail(name),
    signsBody,
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
    assert.strictEqual(count(planned("gitlab", 7, false), "forged"), 0)
    assert.strictEqual(count(planned("gitlab", 7, false), "stale"), 0)
    assert.strictEqual(count(planned("gitlab", 7, false), "foreign"), 10)
  })

  it("has a request of each kind for one event, too", () => {
    assert.isAtLeast(planned("stripe", 7, true, 1).length, 8)
  })
})
