import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { RequestRates, Slots } from "../../../src/api/tokens/caller-limits.ts"
import type { Caller } from "../../../src/operations/caller.ts"
import { systemTimers, useTimers } from "../../../src/time/timers.ts"

const callerOf = (tenant: string, id: string) =>
  ({ tenant, token: { id } }) as Pick<Caller["Service"], "tenant" | "token">

/** Takes slots with one token after the other until one of them has none left for its tenant. */
const takeAll = (slots: Slots["Service"]["requests"], tenant: string): ReadonlyArray<number> => {
  const taken: Array<number> = []
  for (;;) {
    const caller = callerOf(tenant, `${tenant} ${taken.length}`)
    let count = 0
    let refused = slots.take(caller)
    for (; refused === undefined; refused = slots.take(caller)) count++
    taken.push(count)
    if (refused === "tenant") return taken
  }
}

describe("what goes on for callers at the same time", () => {
  it("is 512 requests, 256 of one tenant and 128 of one token", () => {
    const { requests } = Slots.make()
    assert.deepStrictEqual(takeAll(requests, "acme"), [128, 128, 0])
    assert.deepStrictEqual(takeAll(requests, "globex"), [128, 0])
    // One for the tenant that asks, and one that is left for the next.
    for (const id of ["acme 0", "acme 1"]) requests.give(callerOf("acme", id))
    assert.isUndefined(requests.take(callerOf("globex", "one more")))
  })

  it("is 256 streams, 128 of one tenant and 16 of one token", () => {
    const { streams } = Slots.make()
    assert.deepStrictEqual(takeAll(streams, "acme"), [...Array.from({ length: 8 }, () => 16), 0])
    assert.deepStrictEqual(takeAll(streams, "globex"), [16, 16, 16, 16, 0])
  })
})

const waitOf = (rates: RequestRates, id: string, perSecond: number) =>
  rates.take(id, perSecond).waitMs

describe("RequestRates", () => {
  let now = 0
  let restore: () => void
  beforeEach(() => {
    now = 1_000
    restore = useTimers({ ...systemTimers, monotonicMs: () => now })
  })
  afterEach(() => restore())

  it("lets so many go at once, and then so many a second", () => {
    const rates = new RequestRates()
    const first = Array.from({ length: 10 }, () => waitOf(rates, "a", 10))
    assert.deepStrictEqual(
      first,
      Array.from({ length: 10 }, () => 0)
    )
    assert.strictEqual(waitOf(rates, "a", 10), 100)
    now += 50
    assert.strictEqual(waitOf(rates, "a", 10), 50)
    now += 50
    assert.strictEqual(waitOf(rates, "a", 10), 0)
    assert.isAbove(waitOf(rates, "a", 10), 0)
  })

  it("says how many more may go at once", () => {
    const rates = new RequestRates()
    const left = Array.from({ length: 4 }, () => rates.take("a", 3).left)
    assert.deepStrictEqual(left, [2, 1, 0, 0])
    now += 700
    assert.strictEqual(rates.take("a", 3).left, 1)
  })

  it("saves no more than a second's worth, and keeps tokens apart", () => {
    const rates = new RequestRates()
    now += 3_600_000
    const taken = Array.from({ length: 4 }, () => waitOf(rates, "a", 3))
    assert.deepStrictEqual(taken.slice(0, 3), [0, 0, 0])
    assert.isAbove(taken[3] ?? 0, 0)
    assert.strictEqual(waitOf(rates, "b", 3), 0)
  })
})
