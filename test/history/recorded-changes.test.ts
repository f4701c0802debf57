import { assert, describe, it } from "@effect/vitest"
import { RecordedChanges } from "../../src/history/audit/configuration-versions.ts"

interface Told {
  readonly of?: string
  readonly revision?: number
  readonly at?: number
  readonly now?: object | undefined
  readonly isUnreadable?: true
}

const fact = ({ at = 10, of = "hook", ...told }: Told) => ({
  ...{ tenant: "acme", endpoint: of },
  change: { revision: 1, storedAt: at, now: { types: ["a"], sign: "standard" }, ...told }
})

const conflicts = (...told: ReadonlyArray<Told>) => {
  const recorded = new RecordedChanges()
  return told.map((one) => recorded.add(fact(one)).conflict !== undefined)
}

describe("facts of changes of endpoints", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Told>, ReadonlyArray<boolean>]> = [
    [
      "agree where they are equal, in whatever order",
      [{}, { now: { sign: "standard", types: ["a"] } }],
      [false, false]
    ],
    ["do not where the configuration is another", [{}, { now: { types: ["b"] } }], [false, true]],
    ["do not where one says that it was removed", [{}, { now: undefined }], [false, true]],
    ["do not where they give a revision to two endpoints", [{}, { of: "b" }], [false, true]],
    ["do not where one was stored earlier", [{}, { at: 9 }], [false, true]],
    [
      "agree after the bucket lost its end",
      [{}, { at: 11, now: {} }, { of: "b", at: 12 }],
      [false, false, false]
    ],
    [
      "agree where one version could not read it",
      [{ isUnreadable: true, now: undefined }, {}],
      [false, false]
    ],
    ["agree about several revisions", [{}, { revision: 2, now: {} }], [false, false]],
    [
      "count for nothing where they are false",
      [{}, { at: 9, now: {} }, { at: 9 }, { at: 9, now: {} }],
      [false, true, true, true]
    ],
    ["have no revision where a removal left no entry", [{}, { at: 0, of: "b" }], [false, false]]
  ]
  for (const [name, told, expected] of cases)
    it(name, () => {
      assert.deepStrictEqual(conflicts(...told), expected)
    })

  it("are reported once, however often they are read", () => {
    const recorded = new RecordedChanges()
    const told = [{}, { now: {} }]
    assert.deepStrictEqual(
      [...told, ...told].map((one) => recorded.add(fact(one)).isNew),
      [true, true, false, false]
    )
  })
})
