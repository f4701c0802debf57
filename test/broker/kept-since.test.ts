import { assert, describe, it } from "@effect/vitest"
import { DiscardPolicy } from "@nats-io/jetstream"
import type { Held } from "../../src/broker/kept-since.ts"
import { keptSince, notingRaise, undroppedSince } from "../../src/broker/kept-since.ts"

const hour = 3_600_000
const now = Date.parse("2026-11-22T20:00:00.000Z")
const first = now - 2 * hour

const held = ({
  config,
  state
}: {
  config?: Partial<Held["config"]>
  state?: Partial<Held["state"]>
} = {}): Held => ({
  ts: new Date(now).toISOString(),
  config: { discard: DiscardPolicy.Old, max_age: 24 * hour * 1e6, max_bytes: -1, ...config },
  state: {
    ...{ bytes: 1_000, messages: 10, first_seq: 5, first_ts: new Date(first).toISOString() },
    ...state
  }
})

describe("what the broker has not dropped", () => {
  it("goes back as far as the age, where that is what bounds the stream", () => {
    assert.strictEqual(undroppedSince(held()), now - 24 * hour)
    assert.strictEqual(undroppedSince(held({ config: { max_age: 0 } })), 0)
    assert.strictEqual(undroppedSince(held({ state: { first_seq: 1 } })), 0)
  })

  it("goes back to the first message of a stream that is full, and drops its oldest", () => {
    const full = { max_bytes: 1_010 }
    assert.strictEqual(undroppedSince(held({ config: full })), first)
    assert.strictEqual(undroppedSince(held({ config: full, state: { messages: 0 } })), now)
    assert.strictEqual(undroppedSince(held({ config: { max_bytes: 2_000 } })), now - 24 * hour)
    const refusing = { ...full, discard: DiscardPolicy.New }
    assert.strictEqual(undroppedSince(held({ config: refusing })), now - 24 * hour)
  })

  it("remembers what a limit had dropped that was raised since", () => {
    const raised = notingRaise({ max_age: 0 }, held({ config: { metadata: { mine: "1" } } }))
    assert.deepStrictEqual(raised, {
      metadata: { mine: "1", "petrel-kept-since": new Date(now - 24 * hour).toISOString() }
    })
    assert.strictEqual(undroppedSince(held({ config: { max_age: 0, ...raised } })), now - 24 * hour)
    const full = held({ config: { max_bytes: 1_010 } })
    const { metadata = {} } = notingRaise({ max_bytes: -1 }, full)
    assert.strictEqual(undroppedSince(held({ config: { metadata } })), first)
  })

  it("notes nothing where no limit is raised, or nothing was dropped", () => {
    assert.deepStrictEqual(notingRaise({ max_age: hour * 1e6, max_bytes: 5_000 }, held()), {})
    assert.deepStrictEqual(notingRaise({ max_age: 0 }, held({ state: { first_seq: 1 } })), {})
    const refusing = held({ config: { discard: DiscardPolicy.New, max_bytes: 1_010 } })
    assert.deepStrictEqual(notingRaise({ max_bytes: 2_000 }, refusing), {})
  })

  it("has all since the first message, or since it is empty", () => {
    assert.strictEqual(keptSince(held()), first)
    assert.strictEqual(keptSince(held({ state: { messages: 0 } })), now)
    assert.strictEqual(keptSince(held({ state: { first_seq: 0 } })), 0)
  })
})
