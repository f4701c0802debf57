import { assert, describe, it } from "@effect/vitest"
import { HeldEvents } from "../../src/routing/held-events.ts"

/** Holds as many as it may. Returns what lets go of each. */
const holdAll = (held: HeldEvents, tenant: string, bytes = 1) => {
  const all: Array<() => void> = []
  for (;;) {
    const letGo = held.hold(tenant, bytes)
    if (letGo === undefined) return all
    all.push(letGo)
  }
}

describe("events that are held", () => {
  it("are half of the number for one tenant, and leave some for each that follows", () => {
    const held = new HeldEvents(1_000_000)
    const first = holdAll(held, "acme")
    assert.lengthOf(first, 1_024)
    assert.isTrue(held.isFull("acme", 1))
    assert.isFalse(held.isFull("globex", 1))
    assert.lengthOf(holdAll(held, "globex"), 512)
    // Whoever came later has no more, but is not the one for whom the others wait.
    assert.isFalse(held.isFull("globex", 1))
    assert.isTrue(held.isFull("acme", 1))
    for (const letGo of first) letGo()
    assert.isFalse(held.isFull("acme", 1))
    assert.strictEqual(held.size, 512)
  })

  it("are half of the bytes for one tenant, of which the largest event takes an eighth", () => {
    const held = new HeldEvents(800)
    assert.isFalse(held.isFull("acme", 1_000_000))
    assert.lengthOf(holdAll(held, "acme", 1_000_000), 4)
    assert.isTrue(held.isFull("acme", 100))
    assert.lengthOf(holdAll(held, "globex", 100), 2)
  })
})
