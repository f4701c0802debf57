import { assert, describe, it } from "@effect/vitest"
import { activityView } from "../../../src/operations/endpoints/endpoint-view.ts"
import { at, busy, hour, orphan } from "./activities.ts"

describe("what goes on for an endpoint, as JSON", () => {
  it("has null for what nobody knows", () => {
    assert.deepStrictEqual(activityView(busy), {
      partition: 3,
      owner: "w1",
      inFlight: 4,
      waiting: { memory: 12, queue: 20, schedules: 3, backlog: 1_200 },
      lastHour: {
        since: at - hour,
        attempts: 1_204,
        delivered: 1_203,
        successRate: 0.9992,
        p50Ms: 12.4,
        p95Ms: 1_534
      }
    })
    assert.deepStrictEqual(activityView(orphan), {
      partition: 3,
      owner: null,
      inFlight: null,
      waiting: { memory: null, queue: 20, schedules: 3, backlog: 1_200 },
      lastHour: null
    })
  })
})
