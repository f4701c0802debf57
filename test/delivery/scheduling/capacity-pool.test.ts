import { assert, describe, it } from "@effect/vitest"
import { CapacityPool } from "../../../src/delivery/scheduling/capacity-pool.ts"
import type {
  CapacityLimits,
  Reservation,
  SpeedClass,
  TenantCapacity
} from "../../../src/delivery/scheduling/tenant-capacity.ts"

const kilobyte = 1024

/** The only tenant's part of a pool, which is all of it. */
const soleTenant = (size: CapacityLimits) => {
  const pool = new CapacityPool(size)
  return { pool, capacity: pool.of("acme") }
}

/** Uses capacity for one request. */
const begin = (capacity: TenantCapacity, slow = false): Reservation => {
  const use = { requests: 0, bytes: 0, slow }
  capacity.take(use, 1, 0)
  return use
}

const paces = ["quick", "slow"] satisfies ReadonlyArray<SpeedClass>

const mayStart = (capacity: TenantCapacity, inFlight = 0) =>
  paces.filter((pace) => capacity.mayStart(pace, inFlight, true))

describe("the capacity of a worker", () => {
  it("is everybody's up to half; from then on there is none for more slow ones", () => {
    const { capacity } = soleTenant({ requests: 16, bytes: 1_024 * kilobyte })
    const uses = Array.from({ length: 7 }, () => begin(capacity, true))
    assert.deepStrictEqual(mayStart(capacity, 5), ["quick", "slow"])
    uses.push(begin(capacity, true))
    assert.deepStrictEqual(mayStart(capacity, 5), ["quick"])
    for (const use of uses) capacity.giveBack(use)
    assert.deepStrictEqual(mayStart(capacity, 5), ["quick", "slow"])
  })

  it("is shared in equal parts once half is used, and the last eighth is for those with nothing under way", () => {
    const { capacity } = soleTenant({ requests: 16, bytes: 1_024 * kilobyte })
    for (let lane = 0; lane < 4; lane++) capacity.lane(1)
    const uses = Array.from({ length: 8 }, () => begin(capacity))
    // 14 in four parts are 3.5 each.
    assert.deepStrictEqual(
      [mayStart(capacity, 2), mayStart(capacity, 3)],
      [["quick", "slow"], ["slow"]]
    )
    while (uses.length < 14) uses.push(begin(capacity))
    assert.deepStrictEqual([mayStart(capacity, 0), mayStart(capacity, 1)], [["quick"], []])
    while (uses.length < 16) uses.push(begin(capacity))
    assert.deepStrictEqual(mayStart(capacity, 0), [])
  })

  it("counts what turns out to be slow with the slow ones, once", () => {
    const { capacity } = soleTenant({ requests: 8, bytes: 1_024 * kilobyte })
    const uses = Array.from({ length: 5 }, () => begin(capacity))
    assert.deepStrictEqual(mayStart(capacity, 0), ["quick", "slow"])
    for (const use of [...uses, ...uses]) capacity.becomesSlow(use)
    assert.deepStrictEqual(mayStart(capacity, 0), ["quick"])
    for (const use of uses.slice(0, 2)) capacity.giveBack(use)
    assert.deepStrictEqual(mayStart(capacity, 0), ["quick", "slow"])
  })

  it("has bytes for what is worth reading, half of them for slow ones", () => {
    const { capacity } = soleTenant({ requests: 8, bytes: 1_024 * kilobyte })
    const use = { requests: 0, bytes: 0, slow: true }
    capacity.take(use, 0, 400 * kilobyte)
    assert.strictEqual(capacity.bytesFor("slow"), 112 * kilobyte)
    assert.strictEqual(capacity.bytesFor("quick"), 624 * kilobyte)
    assert.isFalse(capacity.isTight)
    capacity.take(use, 0, 120 * kilobyte)
    assert.strictEqual(capacity.bytesFor("slow"), 0)
    assert.isTrue(capacity.isTight)
    assert.isFalse(capacity.mayStart("slow", 0, false))
    assert.isTrue(capacity.mayStart("slow", 0, true))
    assert.isTrue(capacity.mayStart("quick", 0, false))
    capacity.giveBack(use)
    assert.strictEqual(capacity.bytesFor("slow"), 512 * kilobyte)
  })

  it("is offered to those that wait in their order, and to the next where one has no use for it", () => {
    const { pool, capacity } = soleTenant({ requests: 1, bytes: 1_024 * kilobyte })
    const told: Array<string> = []
    const waiting = (name: string, uses: boolean) => ({
      turn: () => {
        told.push(name)
        return uses
      }
    })
    const use = begin(capacity)
    capacity.wait("quick", 0, waiting("gone", false))
    capacity.wait("quick", 0, waiting("first", true))
    capacity.wait("quick", 0, waiting("second", true))
    assert.deepStrictEqual(told, [])
    pool.giveBack(capacity, use)
    assert.deepStrictEqual(told, ["gone", "first"])
    pool.next()
    assert.deepStrictEqual(told, ["gone", "first", "second"])
    pool.next()
    assert.strictEqual(told.length, 3)
  })

  it("is not offered to lanes with requests in flight while each has its part", () => {
    const { pool, capacity } = soleTenant({ requests: 16, bytes: 1_024 * kilobyte })
    const told: Array<string> = []
    const waiting = (name: string) => ({
      turn: () => {
        told.push(name)
        return true
      }
    })
    for (let lane = 0; lane < 14; lane++) capacity.lane(1)
    const uses = Array.from({ length: 10 }, () => begin(capacity))
    capacity.wait("quick", 1, waiting("more"))
    for (let round = 0; round < 3; round++) pool.next()
    assert.deepStrictEqual(told, [])
    capacity.wait("quick", 0, waiting("first"))
    pool.next()
    assert.deepStrictEqual(told, ["first"])
    for (const use of uses.slice(3)) pool.giveBack(capacity, use)
    assert.deepStrictEqual(told, ["first", "more"])
  })
})

describe("the capacity of several tenants", () => {
  const size = { requests: 64, bytes: 1_024 * kilobyte }
  /** Fills what a tenant may use with requests of lanes that have nothing else in flight. */
  const fill = (capacity: TenantCapacity, slow = false): Array<Reservation> => {
    const uses: Array<Reservation> = []
    while (capacity.mayStart(slow ? "slow" : "quick", 0, true)) {
      capacity.lane(1)
      uses.push(begin(capacity, slow))
    }
    return uses
  }
  const both = (hasOthers = true) => {
    const pool = new CapacityPool(size, () => hasOthers)
    return { pool, acme: pool.of("acme"), globex: pool.of("globex") }
  }

  it("is one tenant's but for an eighth while no other wants any, and all of it where there is no other", () => {
    assert.lengthOf(fill(both().acme), 56)
    assert.lengthOf(fill(both(false).acme), 64)
  })

  it("is never all one tenant's, however many of its requests are slow: another gets an eighth at once and an equal part in time", () => {
    const { acme, globex, pool } = both()
    const uses = fill(acme)
    for (const use of uses) acme.becomesSlow(use)
    const others = fill(globex)
    assert.deepStrictEqual([uses.length, others.length], [56, 8])
    // Half of what it may use now is for its slow endpoints.
    for (const use of others) globex.giveBack(use)
    assert.lengthOf(fill(globex, true), 4)
    assert.isFalse(acme.mayStart("quick", 0, true))
    for (const use of uses) pool.giveBack(acme, use)
    assert.lengthOf(fill(globex, true), 24)
  })

  it("goes to the tenant with less as requests end, until both have the same", () => {
    const { acme, globex, pool } = both()
    const uses = fill(acme)
    const begun: Array<string> = []
    const lane = (capacity: TenantCapacity) => {
      const waiter = {
        turn: () => {
          if (!capacity.mayStart("quick", 0, true)) {
            capacity.wait("quick", 0, waiter)
            return false
          }
          begun.push(capacity.tenant)
          begin(capacity)
          capacity.wait("quick", 0, waiter)
          return true
        }
      }
      return waiter
    }
    acme.wait("quick", 0, lane(acme))
    fill(globex)
    globex.wait("quick", 0, lane(globex))
    for (const use of uses.splice(0, 24)) pool.giveBack(acme, use)
    assert.deepStrictEqual(new Set(begun), new Set(["globex"]))
    assert.deepStrictEqual([acme.load.requests, globex.load.requests], [32, 32])
    // From here on they take turns.
    for (const use of uses.splice(0, 8)) pool.giveBack(acme, use)
    assert.deepStrictEqual([acme.load.requests, globex.load.requests], [32, 32])
  })

  it("has bytes for each tenant, whatever another holds", () => {
    const { acme, globex } = both()
    const use = { requests: 0, bytes: 0, slow: false }
    acme.take(use, 0, acme.bytesFor("quick"))
    assert.strictEqual(use.bytes, 896 * kilobyte)
    assert.strictEqual(acme.bytesFor("quick"), 0)
    assert.strictEqual(globex.bytesFor("quick"), 128 * kilobyte)
    assert.strictEqual(globex.bytesFor("slow"), 64 * kilobyte)
  })

  it("remembers no more idle tenants than some, and every one that is busy", () => {
    const pool = new CapacityPool({ requests: 10_000, bytes: 1_024 * kilobyte })
    const busy = Array.from({ length: 500 }, (_, n) => {
      const capacity = pool.of(`busy${n}`)
      begin(capacity)
      return capacity
    })
    for (let n = 0; n < 5_000; n++) pool.of(`idle${n}`)
    assert.deepStrictEqual(
      busy.map(({ tenant }) => pool.of(tenant)),
      busy
    )
    assert.lengthOf([...pool.loads()], 500)
  })
})
