import { assert, describe, it } from "@effect/vitest"
import { TenantSpace } from "../../../src/delivery/retry/stream-space.ts"

const spaceOf = (byEndpoint: Readonly<Record<string, number>>, maxBytes: number | undefined) => {
  const space = new TenantSpace()
  const bytes = Object.values(byEndpoint).reduce((sum, bytes) => sum + bytes, 0)
  space.read({ bytes, maxBytes, byEndpoint: new Map(Object.entries(byEndpoint)) })
  return space
}

describe("what endpoints take of a space", () => {
  it("is full for who has his share, and not for others", () => {
    const space = spaceOf({ "loud.a": 600, "loud.b": 10, "calm.a": 10 }, 1_000)
    assert.isTrue(space.isFull("loud.a"))
    assert.isFalse(space.isFull("loud.b"))
    assert.isFalse(space.isFull("loud.new"))
    assert.isFalse(space.isFull("calm.a"))
    assert.isFalse(space.isFull("new.a"))
  })

  it("is full for all of a tenant's once it holds half more than its share", () => {
    const space = spaceOf({ "loud.a": 500, "loud.b": 260, "calm.a": 10 }, 1_000)
    assert.isTrue(space.isFull("loud.new"))
    assert.isFalse(space.isFull("calm.a"))
  })

  it("is all of a single tenant's, whose endpoints have parts of it", () => {
    const space = spaceOf({ "acme.a": 700, "acme.b": 10 }, 1_000)
    assert.isTrue(space.isFull("acme.a", 1, true))
    assert.isFalse(space.isFull("acme.b", 1, true))
    assert.isTrue(spaceOf({ "acme.a": 750 }, 1_000).isFull("acme.a", 1, true))
    assert.isFalse(spaceOf({ "acme.a": 740 }, 1_000).isFull("acme.a", 1, true))
  })

  it("counts what is stored after a reading", () => {
    const space = spaceOf({}, 1_000)
    assert.isFalse(space.isFull("loud.a"))
    space.stored("loud.a", 501)
    assert.isTrue(space.isCrowded)
    assert.isTrue(space.isFull("loud.a"))
    assert.isFalse(space.isFull("calm.a"))
    space.stored("loud.a", -501)
    assert.isFalse(space.isFull("loud.a"))
  })

  it("is full sooner for what may take half of it", () => {
    const space = spaceOf({ "loud.a": 260 }, 1_000)
    assert.isTrue(space.isFull("loud.a", 0.5))
    assert.isFalse(space.isFull("calm.a", 0.5))
    assert.isFalse(space.isFull("loud.a"))
  })

  it("is never full without a limit", () =>
    assert.isFalse(spaceOf({ "loud.a": 1e12 }, undefined).isFull("loud.a")))
})
