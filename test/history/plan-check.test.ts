import { assert, describe, it } from "@effect/vitest"
import { PlanCheck } from "../../src/history/audit/plan-check.ts"

/** How an endpoint of acme is from a revision on; stored at so many seconds. */
const change = (
  endpoint: string,
  revision: number,
  seconds: number,
  now?: { readonly types: ReadonlyArray<string>; readonly disabled?: object; readonly g?: string }
) => ({
  kind: "endpoint-changed",
  ...{ tenant: "acme", endpoint },
  change: {
    ...{ revision, storedAt: seconds * 1_000 },
    ...(now === undefined
      ? {}
      : { now: { generation: now.g ?? "g", types: now.types, disabled: now.disabled } })
  }
})

interface Made {
  /** Revision of the bucket, when the event was stored and when the plan was, s. */
  readonly at: readonly [directory: number, event: number, plan?: number]
  readonly type?: string
  /** With the revision that the router saw. */
  readonly to: Readonly<Record<string, number>>
  readonly skipped?: ReadonlyArray<string>
  readonly part?: number
  readonly last?: boolean
  readonly g?: string
}

const plan = (
  check: PlanCheck,
  { at, g = "g", last = true, part = 0, skipped = [], to, type = "a.b" }: Made
) => {
  const [directory, event, stored = event] = at
  const endpoints = Object.entries(to).map(([id, revision]) => ({
    id,
    revision,
    generation: g,
    deadline: 0
  }))
  const found = check.plan(
    {
      plan: {
        part,
        last,
        directory,
        endpoints,
        skipped: skipped.map((id) => ({ id, reason: "endpoint-disabled" }))
      }
    },
    { tenant: "acme", type, eventSeq: 1, eventAt: event * 1_000, storedAt: stored * 1_000 }
  )
  return found.map(({ endpoint, kind }) => `${kind} ${endpoint ?? ""}`.trim())
}

const all = { types: [">"] }
const check = (...changes: ReadonlyArray<ReturnType<typeof change>>) => {
  const made = new PlanCheck(0)
  for (const each of changes) assert.strictEqual(made.change(each), "read")
  return made
}

describe("a plan that is made again from the facts", () => {
  const usual = () =>
    check(
      change("x", 3, 1, all),
      change("y", 5, 2, { types: ["a.*"] }),
      change("z", 7, 3, { types: ["b"] })
    )

  it("is right where it names whom the event was for", () => {
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], to: { x: 3, y: 5 } }), [])
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], type: "b", to: { x: 3, z: 7 } }), [])
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], type: "petrel.alert.x", to: {} }), [])
  })

  it("omits an endpoint that is neither in it nor skipped", () => {
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], to: { x: 3 } }), ["plan-omits y"])
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], to: {} }), [
      "plan-omits x",
      "plan-omits y"
    ])
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], to: { x: 3 }, skipped: ["y"] }), [
      "plan-omits y"
    ])
  })

  it("adds one that did not want the event, or that no fact tells of", () => {
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], to: { x: 3, y: 5, z: 7 } }), [
      "plan-adds z"
    ])
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], to: { w: 6, x: 3, y: 5 } }), [
      "plan-adds w"
    ])
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], to: { x: 4, y: 5 } }), ["plan-adds x"])
    assert.deepStrictEqual(plan(usual(), { at: [7, 100], g: "other", to: { x: 3, y: 5 } }), [
      "plan-adds x",
      "plan-adds y"
    ])
  })

  it("is judged by the revision that it names, not by what was changed since", () => {
    const changed = usual()
    changed.change(change("y", 9, 200, { types: ["c"] }))
    changed.change(change("z", 10, 201, all))
    changed.change(change("x", 11, 202))
    assert.deepStrictEqual(plan(changed, { at: [7, 100], to: { x: 3, y: 5 } }), [])
    assert.deepStrictEqual(plan(changed, { at: [11, 300], to: { z: 10 } }), [])
    assert.deepStrictEqual(plan(changed, { at: [11, 300], to: { x: 3, y: 5 } }), [
      "plan-omits z",
      "plan-adds x",
      "plan-adds y"
    ])
    assert.deepStrictEqual(plan(changed, { at: [7, 100], to: { x: 3, y: 5, z: 10 } }), [
      "plan-adds z",
      "plan-adds z"
    ])
  })

  it("is judged alike, however many types there are", () => {
    const many = Array.from({ length: 500 }, (_, n) => change(`e${n}`, n + 1, 1, all))
    const checked = check(...many)
    const to = Object.fromEntries(many.map(({ endpoint }, n) => [endpoint, n + 1]))
    // More than are cached, of an earlier revision as well.
    for (let n = 0; n < 1_100; n++)
      assert.deepStrictEqual(plan(checked, { at: [500, 100], type: `t.${n}`, to }), [])
    checked.change(change("e0", 600, 200, { types: ["t.1098"] }))
    for (const type of ["t.0", "t.1099"])
      assert.deepStrictEqual(plan(checked, { at: [600, 300], type, to }), ["plan-adds e0"])
    const after = { ...to, e0: 600 }
    assert.deepStrictEqual(plan(checked, { at: [600, 300], type: "t.1098", to: after }), [])
    assert.deepStrictEqual(plan(checked, { at: [500, 100], type: "t.1099", to }), [])
  })

  it("skips those that are disabled, and those that nobody can read", () => {
    const some = check(
      change("off", 2, 1, { ...all, disabled: {} }),
      {
        ...change("odd", 3, 1),
        change: { revision: 3, storedAt: 1_000, isUnreadable: true }
      } as never,
      change("on", 4, 1, all)
    )
    assert.deepStrictEqual(plan(some, { at: [4, 100], to: { on: 4 }, skipped: ["odd", "off"] }), [])
    assert.deepStrictEqual(plan(some, { at: [4, 100], to: { on: 4 }, skipped: ["off"] }), [])
    assert.deepStrictEqual(plan(some, { at: [4, 100], to: { on: 4 } }), ["plan-omits off"])
    assert.deepStrictEqual(plan(some, { at: [4, 100], to: { off: 2, on: 4 } }), ["plan-adds off"])
  })

  it("is stale where the endpoint had been changed long before the event was stored", () => {
    assert.deepStrictEqual(plan(usual(), { at: [5, 12], to: { x: 3, y: 5 } }), [])
    assert.deepStrictEqual(plan(usual(), { at: [5, 14], to: { x: 3, y: 5 } }), ["plan-stale"])
    const cluster = new PlanCheck(300_000)
    cluster.change(change("x", 3, 1, all))
    assert.deepStrictEqual(plan(cluster, { at: [2, 14], to: {} }), [])
    assert.deepStrictEqual(plan(cluster, { at: [2, 312], to: {} }), ["plan-stale"])
  })

  it("may not know a change that another one took the place of before it could be seen", () => {
    const changed = usual()
    changed.change(change("x", 8, 100, { types: ["c"] }))
    changed.change(change("x", 10, 101, all))
    // Of x, revision 8 was gone when the watch came to it, and 10 was not shown yet.
    assert.deepStrictEqual(plan(changed, { at: [9, 101, 102], to: { x: 3, y: 5 } }), [])
    assert.deepStrictEqual(plan(changed, { at: [9, 100, 100], to: { x: 3, y: 5 } }), [
      "plan-adds x"
    ])
    const slow = usual()
    slow.change(change("x", 8, 100, { types: ["c"] }))
    slow.change(change("x", 10, 140, all))
    assert.deepStrictEqual(plan(slow, { at: [9, 141, 142], to: { x: 3, y: 5 } }), ["plan-adds x"])
  })

  it("speaks, in parts, of those after the part before, each at its own revision", () => {
    const many = check(change("a", 1, 1, all), change("b", 2, 1, all), change("c", 3, 1, all))
    assert.deepStrictEqual(plan(many, { at: [3, 9], part: 0, last: false, to: { a: 1 } }), [])
    many.change(change("a", 4, 9))
    many.change(change("d", 5, 9, all))
    assert.deepStrictEqual(plan(many, { at: [5, 9], part: 1, last: false, to: { b: 2 } }), [])
    assert.deepStrictEqual(plan(many, { at: [5, 9], part: 2, to: { d: 5 } }), ["plan-omits c"])
  })

  it("counts revisions anew where the bucket has lost its end", () => {
    const lost = usual()
    lost.change(change("y", 5, 50, { types: ["c"] }))
    assert.deepStrictEqual(plan(lost, { at: [7, 100], to: { x: 3 } }), [])
    lost.change(change("z", 6, 0))
    assert.deepStrictEqual(plan(lost, { at: [6, 100], type: "b", to: { x: 3 } }), [])
  })

  describe("with deadlines", () => {
    const retry = { backoff: { kind: "fixed", delay: "1 second" }, window: "10 minutes" }
    const retryFor = { "a.>": "stripe", "a.b": "github", "a.*.c": { window: "1 minute" } }
    const minute = 60_000
    const found = (
      now: object,
      deadline: number,
      { type = "a.b", storedAt = 100_000, revision = 3, generation = "g" } = {}
    ) => {
      const made = new PlanCheck(0)
      const change = { revision: 3, storedAt: 50_000, now: { generation: "g", ...all, ...now } }
      made.change({ tenant: "acme", endpoint: "x", change })
      const endpoints = [{ id: "x", revision, generation, deadline: 100_000 + deadline }]
      return made
        .plan(
          { plan: { part: 0, last: true, directory: 3, endpoints, skipped: [] } },
          { tenant: "acme", type, eventSeq: 1, eventAt: 100_000, storedAt }
        )
        .map(({ kind, says }) => `${kind}: ${says}`)
    }

    it("is right where each comes after the event by the window of the type's policy", () => {
      assert.deepStrictEqual(found({ retry }, 10 * minute), [])
      assert.deepStrictEqual(found({ retry: "stripe" }, 72 * 60 * minute), [])
      const both = { retry, retryFor }
      assert.deepStrictEqual(found(both, 10 * minute, { type: "b" }), [])
      assert.deepStrictEqual(found(both, 4 * 60 * minute), [])
      assert.deepStrictEqual(found(both, 72 * 60 * minute, { type: "a.d" }), [])
      assert.deepStrictEqual(found(both, minute, { type: "a.d.c" }), [])
    })

    it("is wrong where one comes sooner or later", () => {
      const [said = "", ...others] = found({ retry, retryFor }, 10 * minute)
      assert.strictEqual(
        said,
        "plan-deadline: the event's plan, made from revision 3 of the endpoints, gives it 600 s for a.b, and its retry policy gave 14400 s (revision 3)"
      )
      assert.deepStrictEqual(others, [])
      assert.lengthOf(found({ retry }, 10 * minute + 1), 1)
      assert.lengthOf(found({ retry }, 0), 1)
    })

    it("is not judged by a policy that this version does not know", () => {
      for (const now of [{}, { retry: "of-later" }, { retry: { window: "long" } }])
        assert.deepStrictEqual(found(now, 1), [])
      assert.deepStrictEqual(found({ retry, retryFor: { "a.b": "of-later" } }, 1), [])
    })

    it("is not judged by a configuration that may have come after it", () => {
      assert.deepStrictEqual(found({ retry }, 1, { storedAt: 49_000 }), [])
      // What is wrong with its revision or generation is said by itself.
      assert.notInclude(found({ retry }, 1, { revision: 2 }).join(), "plan-deadline")
      assert.notInclude(found({ retry }, 1, { generation: "other" }).join(), "plan-deadline")
    })
  })

  it("is not judged where it names no revision", () => {
    const some = usual()
    const event = { tenant: "acme", type: "a", eventSeq: 1, eventAt: 5_000, storedAt: 5_000 }
    assert.deepStrictEqual(
      some.plan({ plan: { part: 0, last: true, endpoints: [], skipped: [] } }, event),
      []
    )
    assert.deepStrictEqual([some.unknown, some.unknownUntil, some.recomputed], [1, 5_000, 0])
  })
})
