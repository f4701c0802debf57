import { assert, describe, it } from "@effect/vitest"
import { TenantSpace } from "../../../src/delivery/retry/stream-space.ts"

const roomOf = (byEndpoint: Readonly<Record<string, number>>, maxBytes: number | undefined) => {
  const room = new TenantSpace()
  const bytes = Object.values(byEndpoint).reduce((sum, bytes) => sum + bytes, 0)
  room.read({ bytes, maxBytes, byEndpoint: new Map(Object.entries(byEndpoint)) })
  return room
}

describe("what endpoints take of a room", () => {
  it("is full for who has his share, and not for others", () => {
    const room = roomOf({ "loud.a": 600, "loud.b": 10, "calm.a": 10 }, 1_000)
    assert.isTrue(room.isFull("loud.a"))
    assert.isFalse(room.isFull("loud.b"))
    assert.isFalse(room.isFull("loud.new"))
    assert.isFalse(room.isFull("calm.a"))
    assert.isFalse(room.isFull("new.a"))
  })

  it("is full for all of a tenant's once it holds half more than its share", () => {
    const room = roomOf({ "loud.a": 500, "loud.b": 260, "calm.a": 10 }, 1_000)
    assert.isTrue(room.isFull("loud.new"))
    assert.isFalse(room.isFull("calm.a"))
  })

  it("is all of a single tenant's, whose endpoints have parts of it", () => {
    const room = roomOf({ "acme.a": 700, "acme.b": 10 }, 1_000)
    assert.isTrue(room.isFull("acme.a", 1, true))
    assert.isFalse(room.isFull("acme.b", 1, true))
    assert.isTrue(roomOf({ "acme.a": 750 }, 1_000).isFull("acme.a", 1, true))
    assert.isFalse(roomOf({ "acme.a": 740 }, 1_000).isFull("acme.a", 1, true))
  })

  it("counts what is stored after a reading", () => {
    const room = roomOf({}, 1_000)
    assert.isFalse(room.isFull("loud.a"))
    room.stored("loud.a", 501)
    assert.isTrue(room.isCrowded)
    assert.isTrue(room.isFull("loud.a"))
    assert.isFalse(room.isFull("calm.a"))
    room.stored("loud.a", -501)
    assert.isFalse(room.isFull("loud.a"))
  })

  it("is full sooner for what may take half of it", () => {
    const room = roomOf({ "loud.a": 260 }, 1_000)
    assert.isTrue(room.isFull("loud.a", 0.5))
    assert.isFalse(room.isFull("calm.a", 0.5))
    assert.isFalse(room.isFull("loud.a"))
  })

  it("is never full without a limit", () =>
    assert.isFalse(roomOf({ "loud.a": 1e12 }, undefined).isFull("loud.a")))
})
