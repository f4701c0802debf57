import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { Lanes } from "../../src/delivery/lane.ts"

/** Lanes of cap 1 where nothing else is said, with what they did. */
const makeLanes = () => {
  const started: Array<string> = []
  const putOff: Array<string> = []
  const limits = new Map<string, number>()
  const behind = new Set<string>()
  const state = { closed: false, tokens: Number.POSITIVE_INFINITY }
  const lanes = new Lanes<string>({
    limit: (key) => limits.get(key) ?? 1,
    admit: () => state.tokens-- > 0,
    isBehind: (key) => behind.has(key),
    start: (item) => started.push(item),
    putOff: (item) => putOff.push(item),
    closed: () => state.closed,
    patience: 1_000
  })
  return { lanes, started, putOff, limits, behind, state }
}

describe("a lane", () => {
  it("starts what comes up to its limit, and the others in their order as places become free", () => {
    const { lanes, limits, started } = makeLanes()
    limits.set("a", 2)
    for (const item of ["1", "2", "3", "4"]) lanes.enter("a", item)
    assert.deepStrictEqual(started, ["1", "2"])
    lanes.leave("a", 1)
    assert.deepStrictEqual(started, ["1", "2", "3"])
    lanes.leave("a", 1)
    lanes.leave("a", 1)
    lanes.leave("a", 1)
    assert.deepStrictEqual(started, ["1", "2", "3", "4"])
    lanes.enter("a", "5")
    assert.deepStrictEqual(started, ["1", "2", "3", "4", "5"])
  })

  it("has nothing to do with another", () => {
    const { lanes, started } = makeLanes()
    for (const item of ["1", "2"]) lanes.enter("a", item)
    lanes.enter("b", "3")
    assert.deepStrictEqual(started, ["1", "3"])
    lanes.leave("b", 1)
    assert.deepStrictEqual(started, ["1", "3"])
    assert.deepStrictEqual([lanes.inFlight("a"), lanes.inFlight("b"), lanes.inFlight()], [1, 0, 1])
  })

  it("takes a raised limit for those in line first, and comes down to a lowered one", () => {
    const { lanes, limits, started } = makeLanes()
    for (const item of ["1", "2", "3", "4"]) lanes.enter("a", item)
    limits.set("a", 3)
    lanes.enter("a", "5")
    assert.deepStrictEqual(started, ["1", "2", "3"])
    limits.set("a", 1)
    lanes.leave("a", 1)
    lanes.leave("a", 1)
    assert.deepStrictEqual(started, ["1", "2", "3"])
    lanes.leave("a", 1)
    assert.deepStrictEqual(started, ["1", "2", "3", "4"])
  })

  it("starts no more than is admitted, and goes on when it is asked to look again", () => {
    const { lanes, limits, started, state } = makeLanes()
    limits.set("a", 10)
    state.tokens = 1
    for (const item of ["1", "2", "3"]) lanes.enter("a", item)
    assert.deepStrictEqual(started, ["1"])
    state.tokens = 1
    lanes.advance("a")
    assert.deepStrictEqual(started, ["1", "2"])
    state.tokens = 1
    lanes.advance()
    assert.deepStrictEqual(started, ["1", "2", "3"])
  })

  it("starts nothing more once it is closed, and gives back what stands in line", () => {
    const { lanes, started, state } = makeLanes()
    for (const item of ["1", "2", "3"]) lanes.enter("a", item)
    state.closed = true
    lanes.enter("b", "4")
    lanes.leave("a", 1)
    assert.deepStrictEqual(started, ["1"])
    assert.deepStrictEqual(lanes.clear(), ["2", "3", "4"])
    assert.deepStrictEqual(lanes.clear(), [])
  })
})

describe("what cannot wait in line", () => {
  it("is put off: what finds it full, what comes while more waits in the backlog", () => {
    const { behind, lanes, putOff, started } = makeLanes()
    for (let item = 0; item < 67; item++) lanes.enter("a", String(item))
    assert.deepStrictEqual(started, ["0"])
    assert.deepStrictEqual(putOff, ["65", "66"])
    behind.add("b")
    lanes.enter("b", "late")
    assert.deepStrictEqual(putOff, ["65", "66", "late"])
  })

  it("is put off where the line is known to take too long, and waits in a longer one that moves", () => {
    const { lanes, limits, putOff } = makeLanes()
    for (const key of ["slow", "quick"]) {
      limits.set(key, 2)
      lanes.enter(key, "first")
      lanes.enter(key, "second")
      lanes.leave(key, key === "slow" ? 30_000 : 2)
      for (let item = 0; item < 200; item++) lanes.enter(key, `${key} ${item}`)
    }
    // One takes the free place, one stands in line: those behind it would wait for 15 s and more.
    assert.strictEqual(putOff.length, 198)
    assert.isTrue(putOff.every((item) => item.startsWith("slow")))
  })

  it("is put off while the endpoint takes nothing, also what stood in line before", () => {
    const { lanes, limits, putOff, started } = makeLanes()
    for (const item of ["1", "2", "3"]) lanes.enter("a", item)
    limits.set("a", 0)
    lanes.enter("a", "4")
    lanes.advance("a")
    assert.deepStrictEqual(putOff, ["4", "2", "3"])
    lanes.leave("a", 1)
    assert.deepStrictEqual(started, ["1"])
  })
})

describe("what comes from the backlog", () => {
  it("is wanted up to twice the limit, less what stands in line, and not at all while there is none", () => {
    const { lanes, limits, state } = makeLanes()
    limits.set("a", 3)
    assert.strictEqual(lanes.wants("a"), 6)
    for (const item of ["1", "2", "3", "4"]) lanes.refill("a", item)
    assert.strictEqual(lanes.wants("a"), 5)
    limits.set("a", 100)
    assert.strictEqual(lanes.wants("b"), 2)
    limits.set("b", 100)
    assert.strictEqual(lanes.wants("b"), 64)
    limits.set("b", 0)
    assert.strictEqual(lanes.wants("b"), 0)
    limits.set("b", 5)
    state.closed = true
    assert.strictEqual(lanes.wants("b"), 0)
  })
})

describe("what stands in line for too long", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("is put off where it came from the queue, and what came later keeps its place", () => {
    const { lanes, putOff, started } = makeLanes()
    for (const item of ["1", "2"]) lanes.enter("a", item)
    lanes.refill("a", "from the backlog")
    lanes.enter("b", "3")
    vi.advanceTimersByTime(999)
    for (const item of ["4", "5"]) lanes.enter("a", item)
    lanes.overdue()
    assert.deepStrictEqual(putOff, [])
    vi.advanceTimersByTime(1)
    lanes.overdue()
    assert.deepStrictEqual(putOff, ["2"])
    lanes.leave("a", 1)
    assert.deepStrictEqual(started, ["1", "3", "from the backlog"])
    vi.advanceTimersByTime(1_000)
    lanes.overdue()
    assert.deepStrictEqual(putOff, ["2", "4", "5"])
  })
})
