import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { CapacityPool } from "../../../src/delivery/scheduling/capacity-pool.ts"
import type { LanePosition } from "../../../src/delivery/scheduling/lane.ts"
import { LaneScheduler } from "../../../src/delivery/scheduling/lane-scheduler.ts"
import type { HostPlace } from "../../../src/endpoints/host-limits.ts"
import { HostLimits } from "../../../src/endpoints/host-limits.ts"

const kilobyte = 1024
const plenty = new CapacityPool({ requests: 1_000, bytes: 1024 * kilobyte })

/** Lanes of cap 1 where nothing else is said, with what they did; each item is of 1 KiB. */
const makeLanes = (
  pool = plenty,
  admitted: (key: string, place: HostPlace) => boolean = () => true
) => {
  const started: Array<string> = []
  const defer: Array<string> = []
  const lasting: Array<string> = []
  const obsolete: Array<string> = []
  const onCapacity: Array<string> = []
  const limits = new Map<string, number>()
  const behind = new Set<string>()
  const held = new Set<string>()
  const over = new Set<string>()
  const running: Array<LanePosition<string>> = []
  const state = {
    ...{ closed: false, tokens: Number.POSITIVE_INFINITY, rateBudget: 1_000 },
    crowdedBy: undefined as string | undefined,
    /** How often a deadline was looked at. */
    looks: 0
  }
  const lanes = new LaneScheduler<string>({
    pool,
    limit: (key) => limits.get(key) ?? 1,
    admit: (key, place) => admitted(key, place) && state.tokens-- > 0,
    rateBudget: () => state.rateBudget,
    hasBacklog: (key) => behind.has(key),
    isHeld: (key) => held.has(key),
    isRetry: (item) => item.startsWith("retry"),
    bytes: () => kilobyte,
    isOver: (item) => {
      state.looks++
      return over.has(item)
    },
    start: (item, position) => {
      started.push(item)
      running.push(position)
    },
    becameSlow: (item) => lasting.push(item),
    endObsolete: (item) => obsolete.push(item),
    defer: (item) => defer.push(item),
    onCapacity: (key) => onCapacity.push(key),
    closed: () => state.closed,
    crowdedBy: () => state.crowdedBy,
    maxQueueMs: 1_000
  })
  /** The first of a lane that is under way is done. */
  const leave = (key: string) => {
    const at = running.findIndex(({ lane }) => lane.key === key)
    const [position] = running.splice(at, at < 0 ? 0 : 1)
    assert(position !== undefined, `nothing is under way for ${key}`)
    lanes.leave(position)
  }
  /** The first request of a lane that has not succeeded has. */
  const record = (key: string) => {
    const position = running.find(({ isRecording, lane }) => lane.key === key && !isRecording)
    assert(position !== undefined, `nothing is under way for ${key}`)
    lanes.recording(position)
  }
  return {
    lanes,
    leave,
    record,
    started,
    defer,
    lasting,
    obsolete,
    onCapacity,
    limits,
    behind,
    held,
    over,
    state
  }
}

describe("a lane", () => {
  it("starts what comes up to its limit, and the others in their order as places become free", () => {
    const { lanes, leave, limits, started } = makeLanes()
    limits.set("a", 2)
    for (const item of ["1", "2", "3", "4"]) lanes.enter("a", item)
    assert.deepStrictEqual(started, ["1", "2"])
    leave("a")
    assert.deepStrictEqual(started, ["1", "2", "3"])
    leave("a")
    leave("a")
    leave("a")
    assert.deepStrictEqual(started, ["1", "2", "3", "4"])
    lanes.enter("a", "5")
    assert.deepStrictEqual(started, ["1", "2", "3", "4", "5"])
  })

  it("lets retries begin while its endpoint is held, also before its backlog, and nothing else", () => {
    const { behind, defer, held, lanes, leave, started } = makeLanes()
    behind.add("a")
    held.add("a")
    for (const item of ["1", "retry 2"]) lanes.enter("a", item)
    assert.deepStrictEqual([started, defer], [["retry 2"], ["1"]])
    leave("a")
    assert.strictEqual(lanes.readBudget("a"), 0)
    assert.isFalse(lanes.isQuick("a", 10))
    held.delete("a")
    assert.isAbove(lanes.readBudget("a"), 0)
    lanes.enter("a", "retry 3")
    assert.deepStrictEqual(defer, ["1", "retry 3"])
  })

  it("starts another one for a success that is recorded, but for no more than eight times its limit", () => {
    const { lanes, leave, limits, record, started } = makeLanes()
    limits.set("a", 2)
    const items = Array.from({ length: 20 }, (_, index) => `${index}`)
    for (const item of items) lanes.enter("a", item)
    record("a")
    assert.deepStrictEqual(started, ["0", "1", "2"])
    assert.deepStrictEqual(lanes.countsOf("a"), { inFlight: 2, inLine: 17 })
    while (lanes.countsOf("a").inFlight > 0) record("a")
    assert.lengthOf(started, 17)
    assert.deepStrictEqual(lanes.countsOf("a"), { inFlight: 0, inLine: 3 })
    leave("a")
    assert.lengthOf(started, 17)
    leave("a")
    assert.lengthOf(started, 19)
    // One after the other stays that: the next waits until the one before is recorded.
    for (const item of ["b1", "b2"]) lanes.enter("b", item)
    record("b")
    assert.notInclude(started, "b2")
    leave("b")
    assert.include(started, "b2")
  })

  it("has nothing to do with another", () => {
    const { lanes, leave, started } = makeLanes()
    for (const item of ["1", "2"]) lanes.enter("a", item)
    lanes.enter("b", "3")
    assert.deepStrictEqual(started, ["1", "3"])
    leave("b")
    assert.deepStrictEqual(started, ["1", "3"])
    assert.deepStrictEqual(lanes.countsOf("a"), { inFlight: 1, inLine: 1 })
    assert.deepStrictEqual(lanes.countsOf("b"), { inFlight: 0, inLine: 0 })
    assert.deepStrictEqual([...lanes.keys()], ["a"])
  })

  it("takes a raised limit for those in line first, and comes down to a lowered one", () => {
    const { lanes, leave, limits, started } = makeLanes()
    for (const item of ["1", "2", "3", "4"]) lanes.enter("a", item)
    limits.set("a", 3)
    lanes.enter("a", "5")
    assert.deepStrictEqual(started, ["1", "2", "3"])
    limits.set("a", 1)
    leave("a")
    leave("a")
    assert.deepStrictEqual(started, ["1", "2", "3"])
    leave("a")
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
    const { lanes, leave, started, state } = makeLanes()
    for (const item of ["1", "2", "3"]) lanes.enter("a", item)
    state.closed = true
    lanes.enter("b", "4")
    leave("a")
    assert.deepStrictEqual(started, ["1"])
    assert.deepStrictEqual(lanes.clear(), ["2", "3", "4"])
    assert.deepStrictEqual(lanes.clear(), [])
  })
})

describe("what cannot wait in line", () => {
  it("is put off: what finds it full, what comes while more waits in the backlog", () => {
    const { behind, lanes, defer, started } = makeLanes()
    for (let item = 0; item < 67; item++) lanes.enter("a", String(item))
    assert.deepStrictEqual(started, ["0"])
    assert.deepStrictEqual(defer, ["65", "66"])
    behind.add("b")
    lanes.enter("b", "late")
    assert.deepStrictEqual(defer, ["65", "66", "late"])
  })

  it("is put off while the endpoint takes nothing, also what stood in line before", () => {
    const { lanes, leave, limits, defer, started } = makeLanes()
    for (const item of ["1", "2", "3"]) lanes.enter("a", item)
    limits.set("a", 0)
    lanes.enter("a", "4")
    lanes.advance("a")
    assert.deepStrictEqual(defer, ["4", "2", "3"])
    leave("a")
    assert.deepStrictEqual(started, ["1"])
  })
})

describe("what comes from the backlog", () => {
  it("is wanted up to eight times the limit, less what stands in line, and not at all while there is none", () => {
    const { lanes, limits, state } = makeLanes()
    limits.set("a", 3)
    assert.strictEqual(lanes.readBudget("a"), 24)
    for (const item of ["1", "2", "3", "4"]) lanes.refill("a", item)
    assert.strictEqual(lanes.readBudget("a"), 23)
    limits.set("a", 100)
    assert.strictEqual(lanes.readBudget("b"), 8)
    limits.set("b", 100)
    assert.strictEqual(lanes.readBudget("b"), 64)
    limits.set("b", 0)
    assert.strictEqual(lanes.readBudget("b"), 0)
    limits.set("b", 5)
    state.rateBudget = 2
    assert.strictEqual(lanes.readBudget("b"), 2)
    state.closed = true
    assert.strictEqual(lanes.readBudget("b"), 0)
  })
  it("is read while memory is short once nothing stands in line: one large one, or several small ones", () => {
    const pool = new CapacityPool({ requests: 1_000, bytes: 1024 * kilobyte })
    const { lanes, limits, state } = makeLanes(pool)
    limits.set("a", 10)
    // The tenant of all keys here.
    pool.of("").take({ requests: 0, bytes: 0, slow: false }, 0, 600 * kilobyte)
    assert.strictEqual(lanes.readBudget("a", 2 * kilobyte), 2)
    assert.strictEqual(lanes.readBudget("a", 100), 10)
    assert.strictEqual(lanes.readBudget("a", 64 * kilobyte), 1)
    assert.strictEqual(lanes.readBudget("a"), 1)
    state.rateBudget = 3
    assert.strictEqual(lanes.readBudget("a", 100), 3)
    state.rateBudget = 0
    assert.strictEqual(lanes.readBudget("a", 100), 1)
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
    const { lanes, leave, defer, started } = makeLanes()
    for (const item of ["1", "2"]) lanes.enter("a", item)
    lanes.refill("a", "from the backlog")
    lanes.enter("b", "3")
    vi.advanceTimersByTime(999)
    for (const item of ["4", "5"]) lanes.enter("a", item)
    lanes.tick()
    assert.deepStrictEqual(defer, [])
    vi.advanceTimersByTime(1)
    lanes.tick()
    assert.deepStrictEqual(defer, ["2"])
    leave("a")
    assert.deepStrictEqual(started, ["1", "3", "from the backlog"])
    vi.advanceTimersByTime(1_000)
    lanes.tick()
    assert.deepStrictEqual(defer, ["2", "4", "5"])
  })

  it("is looked at in turn where very many wait, and takes no more time each time", () => {
    const pool = new CapacityPool({ requests: 1_000, bytes: 8_192 * kilobyte })
    const { lanes, over, started, state } = makeLanes(pool)
    state.tokens = 0
    for (let n = 0; n < 4_000; n++) lanes.refill(`endpoint ${n}`, `${n}`)
    over.add("3999")
    for (let ticks = 1; ticks <= 8; ticks++) {
      const before = state.looks
      lanes.tick()
      assert.isAtMost(state.looks - before, 1_000)
    }
    assert.strictEqual(state.looks, 4_000)
    assert.deepStrictEqual(started, ["3999"])
  })

  it("ends where its time is over, whatever its endpoint takes", () => {
    const { lanes, over, started, state } = makeLanes()
    state.tokens = 0
    for (const item of ["1", "2", "3"]) lanes.refill("a", item)
    over.add("2")
    lanes.tick()
    assert.deepStrictEqual(started, ["2"])
  })
})

describe("an endpoint that is slow", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("has no line that would take too long, and one that is quick has", () => {
    const { lanes, leave, limits, defer } = makeLanes()
    for (const key of ["slow", "quick"]) {
      limits.set(key, 2)
      lanes.enter(key, "first")
      lanes.enter(key, "second")
      lanes.answered(key, key === "slow" ? 30_000 : 2)
      leave(key)
      for (let item = 0; item < 200; item++) lanes.enter(key, `${key} ${item}`)
    }
    // One takes the free place; those behind it would wait for 15 s and more.
    assert.strictEqual(defer.length, 199)
    assert.isTrue(defer.every((item) => item.startsWith("slow")))
  })

  it("is known for it once something has been under way for a second, and told of", () => {
    const { lanes, lasting, limits, defer } = makeLanes()
    limits.set("a", 2)
    lanes.enter("a", "1")
    vi.advanceTimersByTime(999)
    lanes.tick()
    assert.deepStrictEqual(lasting, [])
    vi.advanceTimersByTime(1)
    lanes.tick()
    lanes.tick()
    assert.deepStrictEqual(lasting, ["1"])
    lanes.enter("a", "2")
    lanes.enter("a", "3")
    assert.deepStrictEqual([lasting, defer], [["1", "2"], ["3"]])
  })

  it("is known for it while most of what is under way lasts, however quick its other answers are", () => {
    const { lanes, leave, limits } = makeLanes()
    limits.set("a", 3)
    for (const item of ["1", "2", "3"]) lanes.enter("a", item)
    vi.advanceTimersByTime(1_000)
    lanes.tick()
    for (let n = 0; n < 20; n++) lanes.answered("a", 1)
    leave("a")
    assert.isFalse(lanes.isQuick("a", 64))
    leave("a")
    leave("a")
    assert.isTrue(lanes.isQuick("a", 64))
  })

  it("is brought what waits in its backlog one by one, also after a while without anything", () => {
    const { lanes, leave, limits } = makeLanes()
    limits.set("a", 3)
    lanes.enter("a", "1")
    lanes.answered("a", 5_000)
    leave("a")
    assert.strictEqual(lanes.readBudget("a"), 1)
    vi.advanceTimersByTime(3_599_000)
    lanes.tick()
    assert.strictEqual(lanes.readBudget("a"), 1)
    vi.advanceTimersByTime(2_000)
    lanes.tick()
    assert.strictEqual(lanes.readBudget("a"), 24)
  })

  it("leaves half of the capacity to the others, and is put off beyond", () => {
    const pool = new CapacityPool({ requests: 8, bytes: 1024 * kilobyte })
    const { lanes, limits, defer, started } = makeLanes(pool)
    limits.set("slow", 100)
    lanes.enter("slow", "first")
    vi.advanceTimersByTime(2_000)
    lanes.tick()
    for (let item = 0; item < 10; item++) lanes.enter("slow", `slow ${item}`)
    assert.deepStrictEqual(lanes.countsOf("slow"), { inFlight: 4, inLine: 0 })
    assert.strictEqual(defer.length, 7)
    lanes.enter("other", "1")
    assert.strictEqual(started.at(-1), "1")
  })
})

describe("deliveries of a tenant that crowds the queue", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("do not hold up those of others for longer than a moment, while they wait or are under way", () => {
    const { lanes, leave, lasting, defer, started, state } = makeLanes()
    for (const key of ["globex.a", "acme.a"]) {
      lanes.enter(key, `${key} 1`)
      lanes.enter(key, `${key} 2`)
    }
    state.crowdedBy = "globex"
    vi.advanceTimersByTime(99)
    lanes.tick()
    assert.deepStrictEqual([lasting, defer], [[], []])
    vi.advanceTimersByTime(1)
    lanes.tick()
    assert.deepStrictEqual([lasting, defer], [["globex.a 1"], ["globex.a 2"]])
    // What would wait goes to the backlog at once; what can begin does.
    state.crowdedBy = undefined
    lanes.enter("globex.a", "globex.a 3")
    assert.strictEqual(defer.at(-1), "globex.a 3")
    lanes.enter("globex.b", "globex.b 1")
    assert.strictEqual(started.at(-1), "globex.b 1")
    // It is over a second after it was last seen.
    vi.advanceTimersByTime(800)
    lanes.tick()
    leave("globex.b")
    vi.advanceTimersByTime(200)
    lanes.tick()
    lanes.enter("globex.c", "globex.c 1")
    lanes.enter("globex.c", "globex.c 2")
    assert.deepStrictEqual(lanes.countsOf("globex.c"), { inFlight: 1, inLine: 1 })
  })
})

describe("a request whose endpoint becomes unavailable", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("is ended once it has taken longer than usual ones do, and no other is", () => {
    const { lanes, leave, obsolete } = makeLanes()
    lanes.enter("a", "1")
    lanes.enter("b", "2")
    lanes.becameUnavailable("a")
    lanes.becameUnavailable("c")
    vi.advanceTimersByTime(4_999)
    lanes.tick()
    assert.deepStrictEqual(obsolete, [])
    vi.advanceTimersByTime(1)
    lanes.tick()
    assert.deepStrictEqual(obsolete, ["1"])
    leave("a")
    lanes.tick()
    lanes.enter("a", "3")
    vi.advanceTimersByTime(6_000)
    lanes.tick()
    assert.deepStrictEqual(obsolete, ["1"])
  })
})

describe("lanes that wait for capacity", () => {
  it("have equal parts of it, whatever their caps and whoever came first", () => {
    const pool = new CapacityPool({ requests: 16, bytes: 1024 * kilobyte })
    const { lanes, leave, limits } = makeLanes(pool)
    const keys = ["a", "b", "c"]
    const underWay = () => keys.map((key) => lanes.countsOf(key).inFlight)
    for (const key of keys) {
      limits.set(key, 10)
      for (let item = 0; item < 30; item++) lanes.enter(key, `${key}${item}`)
    }
    // The first has what was free when nobody else was there.
    assert.deepStrictEqual(underWay(), [10, 4, 1])
    for (let n = 0; n < 8; n++) leave("a")
    assert.deepStrictEqual(underWay(), [4, 4, 4])
    for (const key of [...keys, ...keys]) leave(key)
    assert.deepStrictEqual(underWay(), [4, 4, 4])
  })

  it("leave some for one that has nothing under way", () => {
    const pool = new CapacityPool({ requests: 16, bytes: 1024 * kilobyte })
    const { lanes, limits, started } = makeLanes(pool)
    limits.set("a", 100)
    for (let item = 0; item < 30; item++) lanes.enter("a", `a${item}`)
    assert.strictEqual(started.length, 14)
    lanes.enter("b", "b")
    assert.strictEqual(started.at(-1), "b")
  })

  it("hear of it where the capacity that becomes free is another partition's", () => {
    const pool = new CapacityPool({ requests: 2, bytes: 1024 * kilobyte })
    const here = makeLanes(pool)
    const there = makeLanes(pool)
    here.lanes.enter("a", "1")
    here.lanes.enter("b", "2")
    there.lanes.enter("c", "3")
    assert.deepStrictEqual(there.started, [])
    here.leave("a")
    here.leave("b")
    assert.deepStrictEqual(there.started, ["3"])
  })
})

describe("the bodies of what is brought from backlogs", () => {
  it("are bounded for all endpoints together, and the bound is given back with each that is done", () => {
    const pool = new CapacityPool({ requests: 100, bytes: 128 * kilobyte })
    const { lanes, leave, limits, onCapacity } = makeLanes(pool)
    for (const key of ["a", "b"]) limits.set(key, 100)
    lanes.awaitCapacity("b")
    const reserved = lanes.reserve("a", 100 * kilobyte)
    assert.strictEqual(reserved.bytes, 100 * kilobyte)
    assert.strictEqual(lanes.readBudget("b"), 0)
    lanes.awaitCapacity("b")
    lanes.awaitCapacity("b")
    assert.deepStrictEqual(onCapacity, [])
    reserved.giveBack()
    assert.deepStrictEqual(onCapacity, ["b"])
    assert.strictEqual(lanes.readBudget("b"), 64)
    for (let item = 0; item < 65; item++) lanes.refill("a", String(item))
    assert.strictEqual(lanes.readBudget("b"), 0)
    for (let item = 0; item < 65; item++) leave("a")
    assert.strictEqual(lanes.reserve("b", 1024 * kilobyte).bytes, 128 * kilobyte)
  })
})

describe("lanes of one host", () => {
  const shared = {
    ...{ host: "h.example", tenant: "acme", tenantCap: 2, systemCap: undefined }
  }

  /** Lanes of two partitions whose endpoints share a host with a cap of 2, but for `other`. */
  const makeShared = () => {
    const hosts = new HostLimits({ of: () => ({ hashes: [0], version: 1 }) })
    const admit = (key: string, place: HostPlace) => {
      if (key === "other") return true
      const line = hosts.lineFor(shared, place.lane)
      line?.take(place.lane)
      place.hostLine = line
      return line !== undefined
    }
    const partitions = [makeLanes(plenty, admit), makeLanes(plenty, admit)] as const
    for (const { limits } of partitions) limits.set("a", 9).set("b", 9)
    return { hosts, partitions }
  }

  it("share its cap over partitions, and begin in turn when a request ends", () => {
    const { hosts, partitions } = makeShared()
    const [one, two] = partitions
    for (const item of ["1", "2", "3"]) one.lanes.enter("a", item)
    for (const item of ["4", "5"]) two.lanes.enter("b", item)
    two.lanes.enter("other", "6")
    assert.deepStrictEqual([one.started, two.started], [["1", "2"], ["6"]])
    one.leave("a")
    assert.deepStrictEqual(
      [one.started, two.started],
      [
        ["1", "2"],
        ["6", "4"]
      ]
    )
    one.leave("a")
    two.leave("b")
    assert.deepStrictEqual(
      [one.started, two.started],
      [
        ["1", "2", "3"],
        ["6", "4", "5"]
      ]
    )
    one.leave("a")
    two.leave("b")
    hosts.tick()
    assert.strictEqual(hosts.size, 0)
  })

  it("pass their turn on where what waited has left the line", () => {
    const { partitions } = makeShared()
    const [one, two] = partitions
    for (const item of ["1", "2", "3"]) one.lanes.enter("a", item)
    two.lanes.enter("b", "4")
    assert.deepStrictEqual(one.lanes.clear(), ["3"])
    one.leave("a")
    assert.deepStrictEqual(two.started, ["4"])
  })
})
