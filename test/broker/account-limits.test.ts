import { assert, describe, it } from "@effect/vitest"
import { limitProblem } from "../../src/broker/account-limits.ts"

const none = {
  max_streams: -1,
  max_consumers: -1,
  max_ack_pending: -1,
  max_bytes_required: false,
  storage_max_stream_bytes: -1
}
const MiB = 1024 ** 2
const demand = {
  streams: 3,
  added: [
    { name: "EVENTS", maxBytes: 512 * MiB },
    { name: "HISTORY", maxBytes: 256 * MiB },
    { name: "KV_health", maxBytes: -1 }
  ],
  ackPending: 1_000
}

describe("the limits of an account", () => {
  for (const [what, limits, problem] of [
    ["none", {}, undefined],
    ["as many streams as there will be", { max_streams: 6 }, undefined],
    [
      "one stream too few",
      { max_streams: 5 },
      "has 3, and 3 more are to be made: raise its max_streams to 6"
    ],
    ["few consumers", { max_consumers: 19 }, "raise its max_consumers to 20 at least"],
    ["enough consumers", { max_consumers: 20 }, undefined],
    [
      "few unacknowledged messages",
      { max_ack_pending: 999 },
      "Petrel's need 1000: raise its max_ack_pending"
    ],
    ["enough of them", { max_ack_pending: 1_000 }, undefined],
    [
      "only bounded streams",
      { max_bytes_required: true },
      "1 of Petrel's have none, such as KV_health"
    ],
    ["small streams", { storage_max_stream_bytes: 512 * MiB - 1 }, "EVENTS is to take 512 MiB"],
    ["streams that are large enough", { storage_max_stream_bytes: 512 * MiB }, undefined]
  ] as const)
    it(`are in the way or not: ${what}`, () => {
      const said = limitProblem({ ...none, ...limits }, demand)
      if (problem === undefined) assert.isUndefined(said)
      else assert.include(said, problem)
    })

  it("do not concern what is there already", () => {
    const limits = {
      ...none,
      max_streams: 3,
      max_bytes_required: true,
      storage_max_stream_bytes: 1
    }
    assert.isUndefined(limitProblem(limits, { ...demand, added: [] }))
  })
})
