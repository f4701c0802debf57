import { assert, describe, it } from "@effect/vitest"
import { featureLevels, levelProblem, ownLevels } from "../../src/domain/feature-level.ts"

describe("levelProblem", () => {
  const known = { oldest: 2, newest: 3 }

  it("is none at a version's own level and the one before", () => {
    assert.strictEqual(levelProblem(3, known), undefined)
    assert.strictEqual(levelProblem(2, known), undefined)
  })

  it("says which version to run where the data is newer", () => {
    assert.strictEqual(
      levelProblem(4, known),
      "this installation is at feature level 4, and this version of Petrel knows levels 2 to 3: run the version that raised it, or a newer one"
    )
  })

  it("says how to get there where the data is older by more than one level", () => {
    assert.strictEqual(
      levelProblem(1, known),
      "this installation is at feature level 1, and this version of Petrel knows levels 2 to 3: run a version that knows both 1 and 2, raise the level with `petrel upgrade`, then run this one"
    )
  })

  it("names a single level as such", () => {
    assert.include(levelProblem(2, { oldest: 1, newest: 1 }), "knows level 1 only")
  })
})

describe("the levels of this version", () => {
  it("are the newest, and the one before where there is one", () => {
    assert.strictEqual(ownLevels.newest, featureLevels.length)
    assert.isAtLeast(ownLevels.oldest, 1)
    assert.isAtMost(ownLevels.newest - ownLevels.oldest, 1)
  })
})
