import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Health, healthy } from "../../../src/domain/health.ts"
import { blankEndpoint } from "../../../src/operations/endpoints/endpoint-change.ts"
import {
  activityView,
  CircuitView,
  circuitView
} from "../../../src/operations/endpoints/endpoint-view.ts"
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

const since = 1_800_000_000_000
const open: Health = {
  ...healthy("g"),
  circuit: {
    state: "open",
    since,
    coolDown: 150_000,
    until: since + 150_000,
    lastProbe: "e.hook",
    why: "the probe failed: 503"
  }
}
const endpoint = blankEndpoint({ tenant: "acme", id: "hook" }, "g", since)
const encode = Schema.encodeSync(CircuitView)
const json = (health?: Health) => encode(circuitView(endpoint, health))

describe("a circuit as JSON", () => {
  const settings = {
    failures: 5,
    rate: { percent: 50, of: 20, over: "1 minute" },
    coolDown: "30 seconds",
    maxCoolDown: "15 minutes",
    successes: 2,
    onOpen: "backlog" as const,
    giveUpAfter: "5 days",
    onGiveUp: "disable" as const,
    onGone: "disable" as const,
    permanentFailures: 100
  }

  it("is what --circuit takes, in full", () => {
    assert.deepStrictEqual(json(), settings)
  })

  it("has its state beside the settings where that is known", () => {
    assert.deepStrictEqual(json(healthy("g")), { ...settings, state: "closed" })
    assert.deepStrictEqual(json(open), {
      ...settings,
      state: "open",
      since,
      nextProbeAt: since + 150_000,
      lastProbe: "e.hook",
      why: "the probe failed: 503"
    })
  })

  it("says until when the receiver asked to be left alone, and that deliveries come back", () => {
    const notBefore = since + 500_000
    assert.deepInclude(json({ ...open, notBefore }), { nextProbeAt: notBefore })
    const circuit = { state: "closed", since, coolDown: 30_000 } as const
    assert.deepInclude(json({ ...healthy("g"), circuit }), { state: "closed", ramping: true })
  })
})
