import { assert, describe, it } from "@effect/vitest"
import type { StoreFailure } from "../../src/broker/publish-once.ts"
import type { Progress } from "../../src/domain/delivery.ts"
import { untried } from "../../src/domain/delivery.ts"
import type { Fact, FactKind } from "../../src/domain/fact.ts"
import type { Sighting } from "../../src/history/locate.ts"
import type { RoutingProgress } from "../../src/routing/routing-progress.ts"
import {
  locatedIn,
  noteSighting,
  nothingRouted,
  partStateOf,
  progressOf,
  recoveryStep
} from "../../src/routing/routing-progress.ts"
import { event, planFor, plannedFor, storeFailure } from "./made-routing.ts"

const name = { tenant: "acme", endpoint: "hook", event: `7@${event.at}` }
const place = { stream: "elsewhere", seq: 1, at: event.at }

const waiting = (where: "queue" | "schedules" | "backlog", round = "0"): Sighting => ({
  ...{ ...name, round, where, place, attempts: 0, origin: undefined }
})

const told = (kind: FactKind, changes: Partial<Fact> = {}): Sighting => {
  const fact: Fact = { v: 1, kind, at: 1_000, tenant: "acme", endpoint: "hook", ...changes }
  return { ...name, round: changes.round ?? "0", where: "history", seq: 1, fact }
}

const directly = told("attempt-failed", {
  ...{ attempt: 1, status: 503, nextAttemptAt: 6_000, from: { ...place, stream: "EVENTS" } }
})
const failed: Progress = {
  ...{ attempts: 1, firstAttemptAt: 1_000, lastAttemptAt: 1_000 },
  ...{ nextAttemptAt: 6_000, lastStatus: 503 }
}
const inQueue = told("attempt-failed", { attempt: 2, from: place })

const knownBy = (sightings: ReadonlyArray<Sighting>) => {
  const begun = nothingRouted(event)
  for (const sighting of sightings) noteSighting(begun, sighting, "EVENTS")
  return begun
}

const leave = { _tag: "Leave" } as const
const store = (progress: Progress) => ({ _tag: "Store", progress, mayBeSent: true }) as const

describe("what recovery does about a delivery that was found", () => {
  for (const [where, sightings, step] of [
    ["nowhere", [], store(untried)],
    ["in its queue", [waiting("queue")], leave],
    ["as a schedule", [waiting("schedules")], leave],
    ["in the backlog", [waiting("backlog")], leave],
    ["ended: delivered", [told("delivered")], leave],
    ["ended: delivered by a former owner", [told("delivered-late")], leave],
    ["ended: dead-lettered", [told("dead-lettered")], leave],
    ["attempted from its queue", [inQueue], leave],
    ["failed directly, and nowhere else", [directly], store(failed)],
    ["failed directly, and in its queue since", [directly, waiting("queue")], leave],
    ["in its queue, and failed directly before", [waiting("queue"), directly], leave],
    ["failed directly, and as a schedule since", [directly, waiting("schedules")], leave],
    ["failed directly, and attempted from its queue since", [directly, inQueue], leave],
    ["in its queue in another round", [waiting("queue", "d7")], store(untried)],
    ["ended in another round", [told("delivered", { round: "d7" })], store(untried)]
  ] as const)
    it(where, () => {
      const known = knownBy(sightings)
      assert.deepStrictEqual(recoveryStep({ known }, plannedFor("hook"), false), step)
      assert.deepStrictEqual(locatedIn(known, "hook"), {
        isSent: step._tag === "Leave",
        failed: sightings.some((each) => each === directly) ? failed : undefined
      })
    })

  it("for another endpoint: nothing is known of this one", () => {
    const known = knownBy([waiting("queue"), directly])
    assert.deepStrictEqual(locatedIn(known, "other"), { isSent: false, failed: undefined })
    assert.deepStrictEqual(locatedIn(undefined, "hook"), { isSent: false, failed: undefined })
  })
})

describe("a delivery that recovery stores", () => {
  const locatedFirst = (progress: Omit<RoutingProgress, "known">, isNew: boolean) => {
    const step = recoveryStep({ known: undefined, ...progress }, plannedFor("hook"), isNew)
    return step._tag === "Store" && step.mayBeSent
  }

  it("is located first where somebody may have stored or attempted it", () => {
    assert.isTrue(locatedFirst({}, false), "of a plan that was stored earlier")
    assert.isFalse(locatedFirst({}, true), "of a plan that this recovery stored")
    assert.isTrue(locatedFirst({ tried: new Set(["hook"]) }, false), "which the fan-out tried")
    assert.isFalse(locatedFirst({ tried: new Set(["other"]) }, false), "which it did not try")
  })
})

describe("a part of the plan that recovery comes to", () => {
  const stored = { plan: planFor("hook"), seq: 3 }
  const known = { ...nothingRouted(event), parts: [stored] }
  const asked = { plan: planFor("hook"), at: 5 }

  for (const [what, progress, part, state] of [
    ["was stored earlier", { known }, 0, { _tag: "Stored", part: stored }],
    ["was stored earlier, and asked for", { known, asked }, 0, { _tag: "Stored", part: stored }],
    ["was asked for", { known: undefined, asked }, 0, { _tag: "Asked", ...asked }],
    ["is behind those that are stored", { known }, 1, { _tag: "Unplanned" }],
    ["is behind the one that was asked for", { known: undefined, asked }, 1, { _tag: "Unplanned" }],
    ["is the first of an event without a plan", { known: undefined }, 0, { _tag: "Unplanned" }]
  ] as const)
    it(what, () => assert.deepStrictEqual(partStateOf(progress, part), state))
})

describe("a fan-out that recovery must continue", () => {
  const plan = planFor("a", "b", "c", "d", "e")
  const stored = { plan, seq: 3 }
  const planCommit = { at: 5, event, plan, stored }

  it("has sent what it came to and did not fail with", () => {
    const { known, tried } = progressOf({
      ...{ planCommit, began: 1, begun: 4, failed: new Map([["a", failed]]) },
      failures: new Map<string, StoreFailure>([
        ["b", storeFailure("rejected")],
        ["c", storeFailure("timeout")],
        ["d", "unknown"]
      ])
    })
    assert.deepStrictEqual(known?.parts, [stored])
    assert.deepStrictEqual([...(known?.sent ?? [])], ["a"])
    assert.deepStrictEqual([...(tried ?? [])], ["c", "d"], "a refusal stores nothing")
    assert.strictEqual(known?.failed.get("a"), failed)
  })

  it("has sent all that it came to where it was only too slow", () => {
    const state = { planCommit, began: 1, begun: 2, failures: undefined, failed: undefined }
    const { known, tried } = progressOf(state)
    assert.deepStrictEqual([...(known?.sent ?? [])], ["a", "b"])
    assert.strictEqual(tried?.size, 0)
  })

  it("is as if it had not begun where its plan may not count", () => {
    const unstored = { ...planCommit, stored: undefined }
    const state = { planCommit: unstored, began: 1, begun: 1, failures: undefined }
    assert.deepStrictEqual(progressOf({ ...state, failed: undefined }), {
      ...{ known: undefined, began: 1, asked: unstored }
    })
  })
})
