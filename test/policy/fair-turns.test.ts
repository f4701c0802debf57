import { assert, describe, it } from "@effect/vitest"
import { FairLine, FairTime } from "../../src/policy/fair-turns.ts"

/** Lets each key want all it can get, turn by turn, and returns how long each had the thread. */
const shared = (turnMs: Readonly<Record<string, number>>, forMs: number) => {
  const line = new FairTime<string>()
  const had = Object.fromEntries(Object.keys(turnMs).map((key) => [key, 0]))
  for (const key of Object.keys(turnMs)) line.add(key, key)
  for (let now = 0; now < forMs; ) {
    const key = line.next(now) ?? ""
    const ms = turnMs[key] ?? 0
    now += ms
    line.charge(key, ms, now)
    line.add(key, key)
    had[key] = (had[key] ?? 0) + ms
  }
  return had
}

describe("turns of a thread's time", () => {
  it("go to the key that has used least of it, and of one key to what came first", () => {
    const line = new FairTime<string>()
    line.charge("a", 5, 0)
    line.charge("b", 1, 0)
    for (const item of ["a1", "a2", "b1", "c1"]) line.add(item.charAt(0), item)
    const taken = Array.from({ length: 5 }, () => line.next(0))
    assert.deepStrictEqual(taken, ["c1", "b1", "a1", "a2", undefined])
  })

  it("go to the rest of what was begun before what is new of a key", () => {
    const line = new FairTime<string>()
    line.add("a", "new")
    line.add("a", "begun", true)
    assert.strictEqual(line.size, 2)
    assert.strictEqual(line.next(0), "begun")
    assert.strictEqual(line.next(0), "new")
  })

  const cases = [
    { name: "two keys alike", turnMs: { a: 1, b: 1 }, parts: { a: 1 / 2, b: 1 / 2 } },
    { name: "one with long turns", turnMs: { a: 40, b: 1 }, parts: { a: 1 / 2, b: 1 / 2 } },
    { name: "three", turnMs: { a: 10, b: 1, c: 3 }, parts: { a: 1 / 3, b: 1 / 3, c: 1 / 3 } }
  ]
  for (const { name, parts, turnMs } of cases)
    it(`are equal parts of the time: ${name}`, () => {
      const forMs = 10_000
      const had = shared(turnMs, forMs)
      for (const [key, part] of Object.entries(parts))
        assert.closeTo((had[key] ?? 0) / forMs, part, 0.02)
    })

  it("forget what was used long ago", () => {
    const line = new FairTime<string>()
    line.charge("a", 100, 0)
    assert.closeTo(line.usedBy("a", 1_000), 50, 0.001)
    line.charge("b", 1, 10_000)
    line.add("b", "b")
    line.add("a", "a")
    assert.strictEqual(line.next(10_000), "a")
  })

  it("are not waited for by a key with less than half of what the last one had used", () => {
    const line = new FairTime<string>()
    line.charge("a", 10, 0)
    line.charge("b", 4, 0)
    line.charge("c", 6, 0)
    line.add("a", "a1")
    line.add("a", "a2")
    assert.isFalse(line.mayPass("b", 0))
    line.next(0)
    const passing = ["a", "b", "c", "d"].filter((key) => line.mayPass(key, 0))
    assert.deepStrictEqual(passing, ["b", "d"])
    line.add("d", "d1")
    assert.isFalse(line.mayPass("d", 0), "what came before is first")
    line.charge("b", 2, 0)
    assert.isFalse(line.mayPass("b", 0))
  })

  it("leave out what was taken out", () => {
    const line = new FairTime<string>()
    line.add("a", "a1")
    line.add("a", "a2", true)
    line.remove("a", "a2")
    line.remove("b", "a1")
    assert.strictEqual(line.size, 1)
    assert.strictEqual(line.next(0), "a1")
    assert.strictEqual(line.size, 0)
  })
})

const drained = (line: FairLine<string>): ReadonlyArray<string | undefined> => {
  const taken: Array<string | undefined> = []
  for (let item = line.next(); item !== undefined; item = line.next()) taken.push(item)
  return taken
}

describe("a fair line", () => {
  it("takes one of each key after the other, and of one key in its order", () => {
    const line = new FairLine<string>(10)
    for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) line.add(item.charAt(0), item)
    assert.strictEqual(line.next(), "a1")
    line.add("d", "d1")
    assert.deepStrictEqual(drained(line), ["b1", "c1", "a2", "d1", "c2", "a3"])
  })

  it("refuses what is too much of one key, and only of that", () => {
    const line = new FairLine<string>(2)
    assert.deepStrictEqual(
      ["a1", "a2", "a3", "b1"].map((item) => line.add(item.charAt(0), item)),
      [true, true, false, true]
    )
    line.next()
    assert.isTrue(line.add("a", "a4"))
    assert.deepStrictEqual(drained(line), ["b1", "a2", "a4"])
  })

  it("forgets what was taken out", () => {
    const line = new FairLine<string>(2)
    line.add("a", "a1")
    line.add("a", "a2")
    line.remove("a", "a1")
    line.remove("b", "b1")
    assert.deepStrictEqual(drained(line), ["a2"])
  })
})
