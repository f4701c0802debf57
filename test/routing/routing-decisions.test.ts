import { assert, describe, it } from "@effect/vitest"
import type { Progress } from "../../src/domain/delivery.ts"
import { firstRound, untried } from "../../src/domain/delivery.ts"
import { eventName } from "../../src/domain/event.ts"
import type { Fact, Plan } from "../../src/domain/fact.ts"
import type { Sighting } from "../../src/history/locate.ts"
import type { PartialRouting } from "../../src/routing/partial-routing.ts"
import { noteSighting, nothingRouted } from "../../src/routing/partial-routing.ts"
import type { DirectEnd } from "../../src/routing/partition-owner.ts"
import { afterDirectEnd, missingOf } from "../../src/routing/routing-decisions.ts"

const failed: Progress = { attempts: 1, lastStatus: 503, nextAttemptAt: 9 }

describe("after its direct attempt a delivery", () => {
  const ends = {
    delivered: { _tag: "Delivered" },
    untried: { _tag: "Untried" },
    failed: { _tag: "Failed", progress: failed },
    unknown: { _tag: "Unknown" }
  } as const satisfies Record<string, DirectEnd>

  for (const [end, is, isTooLate, isPlanUnsure] of [
    ["delivered", "done", false, false],
    ["delivered", "done", true, false],
    ["delivered", "locate", false, true],
    ["untried", "route", false, false],
    ["untried", "route", true, false],
    ["untried", "locate", false, true],
    ["failed", "queue", false, false],
    ["failed", "locate", true, false],
    ["failed", "locate", false, true],
    ["unknown", "locate", false, false],
    ["unknown", "locate", true, true]
  ] as const) {
    const late = isTooLate ? ", late" : ""
    const unsure = isPlanUnsure ? ", with another plan perhaps" : ""
    it(`that is ${end}${late}${unsure}: ${is}`, () => {
      assert.strictEqual(afterDirectEnd(ends[end], isTooLate, isPlanUnsure), is)
    })
  }
})

const event = { eventSeq: 7, eventAt: 1_000 }
const name = eventName(event)
const plannedFor = (id: string) => ({ id, generation: "g", revision: 1, deadline: 9_000 })
const plan: Plan = {
  part: 0,
  last: true,
  endpoints: ["a", "b", "c"].map(plannedFor),
  skipped: []
}
const begun = (changes: Partial<PartialRouting> = {}): PartialRouting => ({
  ...nothingRouted({ tenant: "acme", at: event.eventAt }),
  ...changes
})

describe("the deliveries of a plan that are missing", () => {
  const missing = (isNew: boolean, progress: Parameters<typeof missingOf>[2]) =>
    missingOf(plan, isNew, progress).map(({ mayBeStored, planned, progress }) => [
      planned.id,
      progress,
      mayBeStored
    ])

  it("are all of a plan that was stored just now, and nobody can have stored any", () => {
    assert.deepStrictEqual(missing(true, { known: undefined }), [
      ["a", untried, false],
      ["b", untried, false],
      ["c", untried, false]
    ])
  })

  it("are looked for first where the plan was stored earlier", () => {
    assert.deepStrictEqual(missing(false, { known: undefined }), [
      ["a", untried, true],
      ["b", untried, true],
      ["c", untried, true]
    ])
  })

  it("are none of those that were found, and have the progress of a failed direct attempt", () => {
    const known = begun({ sent: new Set(["a"]), failed: new Map([["b", failed]]) })
    assert.deepStrictEqual(missing(false, { known }), [
      ["b", failed, true],
      ["c", untried, true]
    ])
  })

  it("are looked for only where this router tried them, if it began the event itself", () => {
    const known = begun({ sent: new Set(["a"]) })
    assert.deepStrictEqual(missing(false, { known, tried: new Set(["b"]) }), [
      ["b", untried, true],
      ["c", untried, false]
    ])
  })
})

describe("what is found of a delivery whose routing has begun", () => {
  const events = "EVENTS"
  const about = { tenant: "acme", endpoint: "a", event: name, round: firstRound }
  const place = { stream: "DELIVERIES_0", seq: 3, at: 2_000 }
  const header = () => undefined
  const factOf = (kind: Fact["kind"], stream: string): Fact => ({
    ...{ v: 1, kind, at: 2_000, tenant: "acme", endpoint: "a" },
    ...{ ...event, round: firstRound, attempt: 1, status: 503 },
    from: { ...place, stream }
  })
  const inHistory = (kind: Fact["kind"], stream = "DELIVERIES_0"): Sighting => ({
    ...{ ...about, where: "history", seq: 5 },
    fact: factOf(kind, stream)
  })
  const waiting = (where: "queue" | "schedules" | "backlog"): Sighting => ({
    ...{ ...about, where, place, header }
  })

  for (const [what, sighting, is] of [
    ["in its queue", waiting("queue"), "sent"],
    ["as a schedule", waiting("schedules"), "sent"],
    ["in its backlog", waiting("backlog"), "sent"],
    ["its success", inHistory("delivered"), "sent"],
    ["its late success", inHistory("delivered-late"), "sent"],
    ["its dead letter's fact", inHistory("dead-lettered"), "sent"],
    ["a failed attempt from the queue", inHistory("attempt-failed"), "sent"],
    ["a failed direct attempt", inHistory("attempt-failed", events), "failed"],
    ["another round of it", { ...waiting("queue"), round: "r1" }, "nothing"],
    ["another event's", { ...waiting("queue"), event: "8@1000" }, "nothing"]
  ] as const)
    it(`${what}: ${is}`, () => {
      const routing = begun()
      noteSighting(new Map([[name, routing]]), sighting, events)
      assert.strictEqual(routing.sent.has("a"), is === "sent")
      assert.strictEqual(routing.failed.get("a")?.lastStatus, is === "failed" ? 503 : undefined)
    })
})
