import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { healthRows, listRow } from "../../../../src/cli/commands/endpoint/view.ts"
import type { Endpoint } from "../../../../src/domain/endpoint.ts"
import type { Health } from "../../../../src/domain/health.ts"
import { healthy } from "../../../../src/domain/health.ts"
import { blankEndpoint } from "../../../../src/operations/endpoints/endpoint-change.ts"
import {
  activityView,
  endpointHealthView
} from "../../../../src/operations/endpoints/endpoint-view.ts"

const at = (time: string) => new Date(`2026-06-03T${time}`).getTime()
const now = at("10:32:00")
const endpoint: Endpoint = blankEndpoint({ tenant: "acme", id: "hook" }, "g", now)
const viewOf = (health: Health, changes: Partial<Endpoint> = {}) =>
  endpointHealthView({ endpoint: { ...endpoint, ...changes }, revision: 1 }, health)
const rows = (health: Health, changes: Partial<Endpoint> = {}) =>
  Object.fromEntries(healthRows(viewOf(health, changes), now))

const open: Health = {
  ...healthy("g"),
  circuit: {
    state: "open",
    since: at("10:30:00"),
    coolDown: 150_000,
    until: at("10:32:30"),
    lastProbe: "e.hook",
    why: "the probe failed: 503"
  },
  failuresInRow: 7,
  failingSince: at("10:20:00"),
  giveUpAt: at("10:20:00") + 5 * 24 * 3_600_000,
  lastStatus: 503
}

describe("how an endpoint fares, for people", () => {
  it("is a closed circuit and its settings where all is well", () => {
    assert.deepStrictEqual(rows(healthy("g")), {
      circuit: "closed",
      opens:
        "at 5 failures in a row or 50% of at least 20 in 1 min; events wait; probed after 30 s, up to 15 min, until 2 succeed",
      "gives up": "after 5 d of failures, or 100 permanent ones in a row: disabled then"
    })
  })

  it("tells of an open circuit when it is probed, and of the failures when they end it all", () => {
    const { circuit, failing } = rows(open)
    assert.strictEqual(circuit, "open since 10:30:00 (the probe failed: 503), probed at 10:32:30")
    assert.strictEqual(
      failing,
      "since 10:20:00, 7 in a row, the last: 503; disabled if it goes on until 2026-06-08 10:20:00"
    )
  })

  it("tells that nothing comes to probe it with, how far a probe got, and that traffic comes back", () => {
    const overdue = { ...open, circuit: { ...open.circuit, until: now - 1 } }
    assert.match(rows(overdue).circuit ?? "", /, probed with the next delivery$/)
    const half: Health = {
      ...open,
      circuit: { ...open.circuit, state: "half-open", successes: 1 }
    }
    assert.match(rows(half).circuit ?? "", /^half-open since 10:30:00 .*, 1 of 2 probes succeeded$/)
    const ramping: Health = {
      ...healthy("g"),
      circuit: { state: "closed", since: at("10:31:00"), coolDown: 30_000 }
    }
    assert.strictEqual(rows(ramping).circuit, "closed since 10:31:00, and traffic comes back")
  })

  it("tells until when the receiver wants to be left alone, which a probe waits for, too", () => {
    const held = rows({ ...open, notBefore: at("11:00:00") })
    assert.strictEqual(held["left alone"], "until 11:00:00, as the receiver asked")
    assert.match(held.circuit ?? "", /, probed at 11:00:00$/)
    assert.notProperty(rows({ ...healthy("g"), notBefore: now }), "left alone")
  })

  it("counts permanent failures", () => {
    assert.strictEqual(
      rows({ ...healthy("g"), permanentInRow: 3, lastStatus: 422 }).failing,
      "3 permanent failures in a row, the last: 422"
    )
  })

  it("says what is otherwise than usual about its circuit", () => {
    const circuit = {
      failures: 3,
      rate: "none",
      onOpen: "dead-letter",
      coolDown: Duration.seconds(5)
    } as const
    assert.strictEqual(
      rows(healthy("g"), { circuit }).opens,
      "at 3 failures in a row; events are dead-lettered; probed after 5 s, up to 15 min, until 2 succeed"
    )
  })

  it("tells whether it is suspended instead of disabled, and at what", () => {
    const circuit = { onGiveUp: "suspend" } as const
    const { failing = "", "gives up": givesUp = "" } = rows(open, { circuit })
    assert.match(givesUp, /: suspended then; disabled at a 410$/)
    assert.match(failing, /; suspended if it goes on until/)
    const both = { circuit: { ...circuit, onGone: "suspend" } } as const
    assert.match(rows(open, both)["gives up"] ?? "", /: suspended then$/)
  })

  it("is one word in a list", () => {
    const idle = activityView({
      partition: 0,
      owner: undefined,
      answer: undefined,
      waiting: { queue: 0, schedules: 0, backlog: 0 }
    })
    const word = (health: Health, changes: Partial<Endpoint> = {}) =>
      listRow({ ...viewOf(health, changes), ...idle })[1]
    const paused = { paused: { at: 0, by: "cli" } }
    const disabled = { disabled: { at: 0, by: "cli", reason: "gone" } }
    const suspended = { suspended: { at: 0, by: "w1", reason: "gone" } }
    assert.deepStrictEqual(
      [
        ...[word(healthy("g")), word(open), word(open, paused)],
        ...[word(open, { ...paused, ...suspended }), word(open, { ...paused, ...disabled })]
      ],
      ["enabled", "open", "paused", "suspended", "disabled"]
    )
  })
})
