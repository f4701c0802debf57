import { assert, describe, it } from "@effect/vitest"
import {
  attemptSpanId,
  attemptTraceparent,
  routingSpanId,
  sampledTrace,
  spanIdOf,
  withParentId
} from "../../src/domain/trace-context.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const parentId = "00f067aa0ba902b7"
const zeros = (bytes: number) => "00".repeat(bytes)

const delivery = {
  ...{ tenant: "acme", endpoint: "hook", eventSeq: 7, eventAt: 1_800_000_000_000, round: "0" }
}

describe("sampledTrace", () => {
  it.each([
    [`00-${traceId}-${parentId}-01`, { traceId, parentId }],
    [`00-${traceId}-${parentId}-03`, { traceId, parentId }],
    [`00-${traceId}-${parentId}-ff`, { traceId, parentId }],
    [`01-${traceId}-${parentId}-01`, { traceId, parentId }],
    [`00-${traceId}-${parentId}-00`, undefined],
    [`00-${traceId}-${parentId}-02`, undefined],
    [`00-${traceId}-${parentId}-10`, undefined],
    [`ff-${traceId}-${parentId}-01`, undefined],
    [`00-${zeros(16)}-${parentId}-01`, undefined],
    [`00-${traceId}-${zeros(8)}-01`, undefined],
    [`00-${traceId.toUpperCase()}-${parentId}-01`, undefined],
    [`00-${traceId}-${parentId}-01-more`, undefined],
    ["", undefined],
    [undefined, undefined]
  ])("reads %j as %j", (text, trace) => {
    assert.deepStrictEqual(sampledTrace(text), trace)
  })
})

describe("withParentId", () => {
  it("leaves version, trace id and flags as they are", () => {
    assert.strictEqual(
      withParentId(`01-${traceId}-${parentId}-03`, "1122334455667788"),
      `01-${traceId}-1122334455667788-03`
    )
  })
})

describe("spanIdOf", () => {
  it.each([
    ["00f067aa0ba902b7ffff", "00f067aa0ba902b7"],
    [`${zeros(8)}ffff`, `${zeros(7)}01`]
  ])("takes of %j %j, which is never zero", (digest, id) => {
    assert.strictEqual(spanIdOf(digest), id)
  })
})

describe("attemptSpanId", () => {
  const id = attemptSpanId(delivery, 1)

  it("is 8 bytes, and always the same for one attempt", () => {
    assert.match(id, /^[0-9a-f]{16}$/)
    assert.strictEqual(attemptSpanId({ ...delivery }, 1), id)
    // Workers of two versions must agree with a console about it.
    assert.strictEqual(id, "00b53fbf8d4a7c58")
    assert.strictEqual(routingSpanId(delivery), "ddd4676b75e25f03")
  })

  it.each([
    ["attempt", delivery, 2],
    ["round", { ...delivery, round: "1" }, 1],
    ["endpoint", { ...delivery, endpoint: "other" }, 1],
    ["tenant", { ...delivery, tenant: "beta" }, 1],
    ["sequence", { ...delivery, eventSeq: 8 }, 1],
    ["time", { ...delivery, eventAt: 1_800_000_000_001 }, 1]
  ] as const)("is another one with another %s", (_, other, attempt) => {
    assert.notStrictEqual(attemptSpanId(other, attempt), id)
  })

  it("is not the routing's, which only the event decides", () => {
    assert.notStrictEqual(routingSpanId(delivery), id)
    assert.strictEqual(
      routingSpanId({ ...delivery, eventSeq: 7 }),
      routingSpanId({ eventSeq: 7, eventAt: delivery.eventAt })
    )
    assert.notStrictEqual(routingSpanId({ ...delivery, eventSeq: 8 }), routingSpanId(delivery))
  })
})

describe("attemptTraceparent", () => {
  it("names the attempt's span where the trace is sampled, and else stays as it is", () => {
    const sampled = `00-${traceId}-${parentId}-01`
    const unsampled = `00-${traceId}-${parentId}-00`
    assert.strictEqual(
      attemptTraceparent(sampled, delivery, 2),
      `00-${traceId}-${attemptSpanId(delivery, 2)}-01`
    )
    assert.strictEqual(attemptTraceparent(unsampled, delivery, 2), unsampled)
  })
})
