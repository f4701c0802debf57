import { assert, describe, it } from "@effect/vitest"
import { healthy } from "../../../src/domain/health.ts"
import type { Situation } from "../../../src/operations/deliveries/delivery-blockers.ts"
import { blockersOf } from "../../../src/operations/deliveries/delivery-blockers.ts"
import { readDeliveryId } from "../../../src/operations/deliveries/explain-delivery.ts"
import { blankEndpoint } from "../../../src/operations/endpoints/endpoint-change.ts"

const now = 1_800_000_000_000
const endpoint = blankEndpoint({ tenant: "acme", id: "hook" }, "g", now)
const answer = { since: now, inFlight: 0, inLine: 0, attempts: 0, delivered: 0 }
const waiter = {
  ...{ tenant: "acme", endpoint: "hook", eventSeq: 7, eventAt: now, round: "0" },
  ...{ stream: "PETREL_DELIVERIES_0", seq: 3, deadline: now + 60_000 }
}
const healthyOne: Situation = {
  round: { round: "0", state: 0, attempts: [], repeats: 0 },
  waiter,
  isInRouter: false,
  endpoint,
  health: healthy("g"),
  activity: {
    partition: 0,
    owner: "w1",
    answer,
    waiting: { queue: 1, schedules: 0, backlog: 0 }
  }
}
const { activity, round } = healthyOne
const open = { state: "open", since: now, until: now + 5_000, why: "503" } as const

describe("what blocks a delivery", () => {
  it.each<[what: string, changes: Partial<Situation>, by: ReadonlyArray<string>]>([
    ["nothing but its turn", {}, ["turn"]],
    ["its event is with a router", { waiter: undefined, isInRouter: true }, ["event"]],
    [
      "its host has a cap, and some wait",
      {
        endpoint: { ...endpoint, url: "https://h.example/x" },
        activity: { ...activity, waiting: { queue: 0, schedules: 0, backlog: 3 } },
        settings: { tenant: undefined, system: { v: 1, updatedAt: now, hostCap: 5 } }
      },
      ["host-cap"]
    ],
    [
      "its request is in flight, from its event",
      { waiter: undefined, isInRouter: true, task: { mode: "sending", forMs: 1_300 } },
      ["answer"]
    ],
    ["its failure is decided about", { task: { mode: "deciding", forMs: 30 } }, ["outcome"]],
    ["its success is recorded", { task: { mode: "recording", forMs: 30 } }, ["outcome"]],
    ["it stands in line", { task: { mode: "waiting", forMs: 30 } }, ["turn"]],
    [
      "it stands in line of an endpoint that is paused",
      {
        task: { mode: "waiting", forMs: 30 },
        endpoint: { ...endpoint, paused: { at: now, by: "x" } }
      },
      ["paused"]
    ],
    ["it is not found", { waiter: undefined }, ["missing"]],
    [
      "its worker's clock is wrong",
      { activity: { ...activity, answer: { ...answer, clockSkewMs: -600_000 } } },
      ["clock"]
    ],
    [
      "its worker's clock is off, and it sends",
      { activity: { ...activity, answer: { ...answer, clockSkewMs: 20_000 } } },
      ["turn"]
    ],
    ["it is unreadable", { waiter: { ...waiter, deadline: undefined } }, ["unreadable"]],
    [
      "it has ended, and nobody works",
      { waiter: { ...waiter, ends: "attempts" }, activity: { ...activity, owner: undefined } },
      ["no-worker", "dead-letters"]
    ],
    ["its endpoint is removed", { endpoint: undefined }, ["endpoint-removed"]],
    [
      "its endpoint is disabled",
      { endpoint: { ...endpoint, disabled: { at: now, by: "x", reason: "410" } } },
      ["endpoint-disabled"]
    ],
    [
      "its endpoint is suspended",
      { endpoint: { ...endpoint, suspended: { at: now, by: "x", reason: "410" } } },
      ["suspended"]
    ],
    [
      "its next attempt is not due, its endpoint is paused and its circuit open",
      {
        round: { ...round, waits: { until: now + 1_000 } },
        endpoint: { ...endpoint, paused: { at: now, by: "x" } },
        health: { ...healthy("g"), circuit: open, notBefore: now + 9_000 }
      },
      ["time", "paused", "circuit", "retry-after"]
    ],
    [
      "the endpoint has all requests it may have, and a rate",
      {
        endpoint: { ...endpoint, maxInFlight: 2, rate: { perSecond: 1, burst: 1 } },
        activity: {
          ...activity,
          answer: { ...answer, inFlight: 2 },
          waiting: { queue: 1, schedules: 0, backlog: 5 }
        }
      },
      ["cap", "rate"]
    ]
  ])("%s", (_, changes, by) => {
    const found = blockersOf({ ...healthyOne, ...changes }, now)
    assert.deepStrictEqual(
      found.map((blocker) => blocker.by),
      by
    )
  })

  it("says until when, where that is known", () => {
    const health = { ...healthy("g"), circuit: open, notBefore: now + 9_000 }
    const untils = blockersOf({ ...healthyOne, health }, now).map(({ until }) => until)
    assert.deepStrictEqual(untils, [now + 9_000, now + 9_000])
  })
})

describe("a delivery's id", () => {
  it("is split at its last dot", () => {
    assert.deepStrictEqual(readDeliveryId("acme.a.b.hook"), { event: "acme.a.b", endpoint: "hook" })
    for (const text of ["hook", ".hook", "acme.a."]) assert.isUndefined(readDeliveryId(text))
  })
})
