import { assert, describe, it } from "@effect/vitest"
import { DirectLoad, maxDirectDeliveries } from "../../src/routing/direct-load.ts"

const maxBytes = 80_000

/** Begins as many direct deliveries of a tenant as may begin, and returns their number. */
const fill = (load: DirectLoad, tenant: string, bytes = 1) => {
  const own = load.of(tenant)
  let begun = 0
  for (; load.mayBegin(own); begun++) load.add(own, 1, bytes)
  return begun
}

describe("direct deliveries", () => {
  it("are bounded by their number and their bytes", () => {
    assert.strictEqual(fill(new DirectLoad(maxBytes, () => false), "acme"), maxDirectDeliveries)
    assert.strictEqual(fill(new DirectLoad(maxBytes, () => false), "acme", 1_000), 80)
  })

  it("of one tenant leave an eighth to others, and share what becomes free", () => {
    const load = new DirectLoad(maxBytes, () => true)
    assert.strictEqual(fill(load, "globex"), 672)
    assert.strictEqual(fill(load, "acme"), 96)
    const globex = load.of("globex")
    load.add(globex, -400, -400)
    assert.strictEqual(fill(load, "acme"), 304)
    assert.strictEqual(fill(load, "globex"), 96)
    assert.deepStrictEqual([load.of("acme").deliveries, globex.deliveries], [400, 368])
  })

  it("of one tenant leave bytes to others", () => {
    const load = new DirectLoad(maxBytes, () => true)
    assert.strictEqual(fill(load, "globex", 1_000), 70)
    assert.strictEqual(fill(load, "acme", 1_000), 10)
  })
})
