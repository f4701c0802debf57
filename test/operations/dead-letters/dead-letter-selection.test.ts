import { assert, describe, it } from "@effect/vitest"
import type { DeadLetterSelection } from "../../../src/operations/dead-letters/dead-letter-selection.ts"
import {
  countReasons,
  selectionProblem
} from "../../../src/operations/dead-letters/dead-letter-selection.ts"
import { DeadLettersNotFound } from "../../../src/operations/refusals.ts"

describe("a selection of dead letters", () => {
  const fieldsOf = (selection: DeadLetterSelection) =>
    selectionProblem(selection, "discard")?.problems.map(({ field }) => field)

  it("is refused where it is empty, and where it says all and some", () => {
    assert.deepStrictEqual(fieldsOf({}), [""])
    assert.deepStrictEqual(fieldsOf({ id: [] }), [""])
    assert.deepStrictEqual(fieldsOf({ all: true, reason: "permanent" }), ["all"])
    assert.deepStrictEqual(fieldsOf({ all: true, id: [1] }), ["all"])
  })

  it.each<[DeadLetterSelection]>([
    [{ all: true }],
    [{ all: true, id: [] }],
    [{ id: [1] }],
    [{ since: 0 }],
    [{ tenant: "acme" }]
  ])("is taken: %j", (selection) => {
    assert.isUndefined(fieldsOf(selection))
  })

  it("names what does not exist, the first ten of many", () => {
    assert.match(
      new DeadLettersNotFound({ ids: [7] }).message,
      /^there is no dead letter 7: it was/
    )
    const ids = Array.from({ length: 12 }, (_, n) => n + 1)
    assert.match(new DeadLettersNotFound({ ids }).message, /^.* 1, 2, .*, 10 and 2 more: they were/)
  })

  it("is counted by reason, the most first", () => {
    const letters = (["attempts", "permanent", "permanent"] as const).map((reason) => ({ reason }))
    assert.deepStrictEqual(Object.entries(countReasons(letters)), [
      ["permanent", 2],
      ["attempts", 1]
    ])
  })
})
