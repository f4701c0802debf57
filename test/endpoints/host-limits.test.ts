import { assert, describe, it } from "@effect/vitest"
import type { HostPlace } from "../../src/endpoints/host-limits.ts"
import { HostLimits } from "../../src/endpoints/host-limits.ts"
import type { SharedHost } from "../../src/endpoints/inherited-settings.ts"

const shared = (changes: Partial<SharedHost> = {}): SharedHost => ({
  ...{ host: "h.example", tenant: "acme", tenantCap: undefined, systemCap: undefined },
  ...changes
})

/** Lanes of one worker that owns all partitions, unless it is told otherwise. */
const makeWorld = () => {
  const state = { hashes: [0], version: 1 }
  /** How often it was asked which endpoints a host has. */
  const asked = { count: 0 }
  const limits = new HostLimits({
    of: () => {
      asked.count++
      return state
    }
  })
  const started: Array<string> = []
  /** A lane with deliveries in line; `limit` of its own. */
  const lane = (name: string, host: SharedHost, limit = 100) => {
    const running: Array<HostPlace> = []
    const its = { inLine: 0 }
    const beginOne = (): boolean => {
      if (its.inLine === 0 || running.length >= limit) return false
      const line = limits.lineFor(host, self)
      if (line === undefined) return false
      line.take(self)
      running.push({ lane: self, hostLine: line })
      its.inLine--
      started.push(name)
      return true
    }
    const self = { turn: beginOne }
    return {
      enter: (count = 1) => {
        its.inLine += count
        while (beginOne());
      },
      leave: () => {
        const place = running.shift()
        assert.isDefined(place, `${name} has nothing in flight`)
        place?.hostLine?.release(self)
        while (beginOne());
      },
      giveUp: () => {
        its.inLine = 0
      },
      get inFlight() {
        return running.length
      },
      get inLine() {
        return its.inLine
      }
    }
  }
  return { limits, lane, started, state, asked }
}

describe("the cap of a host", () => {
  it("is shared by the endpoints of a tenant, and another tenant's have their own", () => {
    const { lane } = makeWorld()
    const [a, b] = [lane("a", shared({ tenantCap: 2 })), lane("b", shared({ tenantCap: 2 }))]
    const other = lane("other", shared({ tenant: "umbrella", tenantCap: 2 }))
    for (const one of [a, b, other]) one.enter(5)
    assert.strictEqual(a.inFlight + b.inFlight, 2)
    assert.strictEqual(other.inFlight, 2)
  })

  it("is one for all tenants where the system has it, beside a tenant's own", () => {
    const { lane } = makeWorld()
    const a = lane("a", shared({ tenantCap: 2, systemCap: 5 }))
    const b = lane("b", shared({ tenant: "umbrella", systemCap: 5 }))
    a.enter(9)
    b.enter(9)
    assert.deepStrictEqual([a.inFlight, b.inFlight], [2, 3])
    b.leave()
    assert.deepStrictEqual([a.inFlight, b.inFlight], [2, 3])
  })

  it("passes thousands of waiting lanes of a tenant that has its part at one look", () => {
    const { asked, lane } = makeWorld()
    const other = lane("other", shared({ tenant: "umbrella", systemCap: 100 }))
    other.enter(38)
    const lanes = Array.from({ length: 2_000 }, (_, n) => lane(`${n}`, shared({ systemCap: 100 })))
    for (const one of lanes) one.enter()
    const inFlight = () => lanes.reduce((sum, one) => sum + one.inFlight, 0)
    assert.strictEqual(inFlight(), 50)
    asked.count = 0
    // What is left now is for a third tenant.
    other.leave()
    assert.strictEqual(inFlight(), 50)
    assert.isBelow(asked.count, 20)
    for (let n = 0; n < 37; n++) other.leave()
    assert.strictEqual(inFlight(), 100)
  })

  it("does not hold up another host", () => {
    const { lane } = makeWorld()
    lane("a", shared({ tenantCap: 1 })).enter(9)
    const other = lane("b", shared({ host: "other.example", tenantCap: 1 }))
    other.enter(9)
    assert.strictEqual(other.inFlight, 1)
  })

  it("gives those that wait their turns in order", () => {
    const { lane, started } = makeWorld()
    const host = shared({ tenantCap: 1 })
    const [a, b, c] = [lane("a", host), lane("b", host), lane("c", host)]
    for (const one of [a, b, c]) one.enter(3)
    const inFlight = () => [a, b, c].find((one) => one.inFlight > 0)
    for (let count = 0; count < 9; count++) inFlight()?.leave()
    // The second of the first lane stood in line before the others came.
    assert.deepStrictEqual(started, ["a", "a", "b", "c", "a", "b", "c", "b", "c"])
  })

  it("gives tenants their turns, however many endpoints one has", () => {
    const { lane, started } = makeWorld()
    const many = ["a", "b", "c"].map((name) => lane(name, shared({ systemCap: 1 })))
    const few = lane("z", shared({ tenant: "umbrella", systemCap: 1 }))
    for (const one of [...many, few]) one.enter(3)
    for (let count = 0; count < 5; count++) [...many, few].find((one) => one.inFlight > 0)?.leave()
    // The second of the first lane stood in line before the others came.
    assert.deepStrictEqual(started, ["a", "a", "z", "b", "z", "c"])
  })

  it("is not used up by a slow endpoint while others have requests", () => {
    const { lane } = makeWorld()
    const host = shared({ tenantCap: 8 })
    const [slow, quick] = [lane("slow", host), lane("quick", host)]
    quick.enter(1)
    slow.enter(50)
    assert.strictEqual(slow.inFlight, 6)
    quick.enter(1)
    assert.strictEqual(quick.inFlight, 2)
    for (let count = 0; count < 20; count++) {
      quick.leave()
      quick.enter(1)
    }
    assert.strictEqual(quick.inLine, 0)
  })

  it("is taken up by one alone", () => {
    const { lane } = makeWorld()
    const only = lane("a", shared({ tenantCap: 8 }))
    only.enter(50)
    assert.strictEqual(only.inFlight, 8)
  })

  it("passes over a lane that has nothing more to send", () => {
    const { lane } = makeWorld()
    const host = shared({ tenantCap: 1 })
    const [a, b, c] = [lane("a", host), lane("b", host), lane("c", host)]
    for (const one of [a, b, c]) one.enter()
    b.giveUp()
    a.leave()
    assert.deepStrictEqual([a.inFlight, b.inFlight, c.inFlight], [0, 0, 1])
  })

  it("is divided by the owners of partitions with endpoints of the host, as they change", () => {
    const { lane, limits, state } = makeWorld()
    const host = shared({ tenantCap: 4 })
    limits.assign([["w1"], ["w2"]])
    const one = lane("a", host)
    one.enter(9)
    assert.strictEqual(one.inFlight, 4)
    assert.strictEqual(limits.shareOf(host), 4)
    Object.assign(state, { hashes: [0, 1], version: 2 })
    assert.strictEqual(limits.shareOf(host), 2)
    one.leave()
    one.leave()
    assert.strictEqual(one.inFlight, 2)
    limits.assign([["w1"], ["w1"]])
    limits.tick()
    assert.strictEqual(one.inFlight, 3)
    limits.tick()
    assert.strictEqual(limits.isFull(host), false)
  })

  it("is forgotten with the last request", () => {
    const { lane, limits } = makeWorld()
    const one = lane("a", shared({ tenantCap: 1 }))
    one.enter(1)
    limits.tick()
    assert.strictEqual(limits.size, 1)
    one.leave()
    limits.tick()
    assert.strictEqual(limits.size, 0)
  })
})
