import type { EndpointNow } from "../../../src/delivery/introspection/endpoint-activity.ts"

export const hour = 3_600_000
export const at = new Date("2026-06-03T10:32:00").getTime()

export const busy: EndpointNow = {
  partition: 3,
  owner: "w1",
  answer: {
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
export const orphan: EndpointNow = { ...busy, owner: undefined, answer: undefined }
