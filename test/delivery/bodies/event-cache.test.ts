import { assert, describe, it } from "@effect/vitest"
import { EventCache } from "../../../src/delivery/bodies/event-cache.ts"

const fill = (cache: EventCache<number>, tenant: string, from: number, to: number) => {
  for (let n = from; n <= to; n++) cache.add(tenant, `${tenant}${n}`, n, 10)
}

const kept = (cache: EventCache<number>, tenant: string, to: number) =>
  Array.from({ length: to }, (_, index) => index + 1).filter(
    (n) => cache.get(`${tenant}${n}`) !== undefined
  )

describe("the cache of events", () => {
  it("drops what was not used for longest", () => {
    const cache = new EventCache<number>(50)
    fill(cache, "a", 1, 5)
    assert.strictEqual(cache.get("a1"), 1)
    fill(cache, "a", 6, 7)
    assert.strictEqual(cache.bytes, 50)
    assert.deepStrictEqual(kept(cache, "a", 7), [1, 4, 5, 6, 7])
  })

  it("leaves others their half, however much one tenant reads", () => {
    const cache = new EventCache<number>(100)
    fill(cache, "b", 1, 5)
    fill(cache, "a", 1, 1_000)
    assert.deepStrictEqual(kept(cache, "b", 5), [1, 2, 3, 4, 5])
    assert.deepStrictEqual(kept(cache, "a", 1_000), [996, 997, 998, 999, 1_000])
    assert.strictEqual(cache.bytes, 100)
  })

  it("lets one tenant have all of it while nobody else has anything, and take it back", () => {
    const cache = new EventCache<number>(100)
    fill(cache, "a", 1, 10)
    assert.lengthOf(kept(cache, "a", 10), 10)
    for (let n = 1; n <= 5; n++) {
      fill(cache, "b", n, n)
      kept(cache, "a", 10)
    }
    assert.lengthOf(kept(cache, "b", 5), 5)
    assert.lengthOf(kept(cache, "a", 10), 5)
  })

  it("does not keep what takes more than half of it, and nothing twice", () => {
    const cache = new EventCache<number>(100)
    cache.add("a", "big", 1, 51)
    cache.add("a", "one", 1, 10)
    cache.add("a", "one", 1, 10)
    assert.strictEqual(cache.bytes, 10)
    assert.isUndefined(cache.get("big"))
  })
})
