import { assert, describe, it } from "@effect/vitest"
import type { EndpointNow } from "../../../src/delivery/introspection/endpoint-activity.ts"
import { activityView } from "../../../src/operations/endpoints/activity-view.ts"

const hour = 3_600_000
const at = new Date("2026-06-03T10:32:00").getTime()

const busy: EndpointNow = {
  partition: 3,
  owner: "w1",
  told: {
    since: at - hour,
    inFlight: 4,
    inLine: 12,
    attempts: 1_204,
    delivered: 1_203,
    p50Ms: 12.4,
    p95Ms: 1_534
  },
  waiting: { queue: 20, schedules: 3, backlog: 1_200 }
}
const orphan: EndpointNow = { ...busy, owner: undefined, told: undefined }

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
