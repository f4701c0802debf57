import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { Lanes } from "../../src/delivery/lane.ts"

const patience = 1_000

const makeLanes = () => {
  const started: Array<string> = []
  const state = { closed: false }
  const lanes = new Lanes<string>(
    (item) => started.push(item),
    patience,
    () => state.closed
  )
  return { lanes, started, state }
}

describe("a lane", () => {
  it("starts what comes up to its cap, and the others in their order as places become free", () => {
    const { lanes, started } = makeLanes()
    for (const item of ["1", "2", "3", "4"]) lanes.enter("a", 2, item)
    assert.deepStrictEqual(started, ["1", "2"])
    lanes.leave("a")
    assert.deepStrictEqual(started, ["1", "2", "3"])
    lanes.leave("a")
    lanes.leave("a")
    lanes.leave("a")
    assert.deepStrictEqual(started, ["1", "2", "3", "4"])
    lanes.enter("a", 2, "5")
    assert.deepStrictEqual(started, ["1", "2", "3", "4", "5"])
  })

  it("has nothing to do with another", () => {
    const { lanes, started } = makeLanes()
    for (const item of ["1", "2"]) lanes.enter("a", 1, item)
    lanes.enter("b", 1, "3")
    assert.deepStrictEqual(started, ["1", "3"])
    lanes.leave("b")
    assert.deepStrictEqual(started, ["1", "3"])
  })

  it("takes a raised cap for those in line first, and comes down to a lowered one", () => {
    const { lanes, started } = makeLanes()
    for (const item of ["1", "2", "3", "4"]) lanes.enter("a", 1, item)
    lanes.enter("a", 3, "5")
    assert.deepStrictEqual(started, ["1", "2", "3"])
    lanes.enter("a", 1, "6")
    lanes.leave("a")
    lanes.leave("a")
    assert.deepStrictEqual(started, ["1", "2", "3"])
    lanes.leave("a")
    assert.deepStrictEqual(started, ["1", "2", "3", "4"])
  })

  it("starts nothing more once it is closed, and gives back what stands in line", () => {
    const { lanes, started, state } = makeLanes()
    for (const item of ["1", "2", "3"]) lanes.enter("a", 1, item)
    state.closed = true
    lanes.enter("b", 1, "4")
    lanes.leave("a")
    assert.deepStrictEqual(started, ["1"])
    assert.deepStrictEqual(lanes.drain(), ["2", "3", "4"])
    assert.deepStrictEqual(lanes.drain(), [])
  })
})

describe("what stands in line for too long", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("is given back, and what came later keeps its place", () => {
    const { lanes, started } = makeLanes()
    for (const item of ["1", "2"]) lanes.enter("a", 1, item)
    lanes.enter("b", 1, "3")
    vi.advanceTimersByTime(patience - 1)
    for (const item of ["4", "5"]) lanes.enter("a", 1, item)
    assert.deepStrictEqual(lanes.overdue(), [])
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(lanes.overdue(), ["2"])
    vi.advanceTimersByTime(patience)
    lanes.leave("a")
    assert.deepStrictEqual(started, ["1", "3", "4"])
    assert.deepStrictEqual(lanes.overdue(), ["5"])
    assert.deepStrictEqual(lanes.overdue(), [])
  })
})
