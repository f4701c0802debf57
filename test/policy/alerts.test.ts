import { assert, describe, it } from "@effect/vitest"
import { Duration, Schema } from "effect"
import type { AlertName } from "../../src/domain/alert.ts"
import type { AlertReading, Transition } from "../../src/policy/alert-reading.ts"
import { transitionOf } from "../../src/policy/alert-reading.ts"
import { defaultThresholds, withSettings } from "../../src/policy/alert-thresholds.ts"
import type { AlertCounts } from "../../src/policy/alert-window.ts"
import { AlertWindow, Growth, noAlertCounts } from "../../src/policy/alert-window.ts"
import {
  endpointReadings,
  incomingReadings,
  isSimplyWell,
  successReadings,
  tenantReadings
} from "../../src/policy/alerts.ts"
import { systemReadings } from "../../src/policy/system-alerts.ts"

const minute = 60_000
const start = 1_000_000 * minute
const well = {
  isOpen: false,
  closedFor: 60 * minute,
  isDisabled: false,
  inARow: "none" as const,
  isSuspended: false,
  failuresInRow: 0
}

const readings = (counts: Partial<AlertCounts>, state = well, thresholds = defaultThresholds) => {
  const all = endpointReadings({ ...noAlertCounts, ...counts }, state, thresholds)
  return new Map(all.map((reading) => [reading.name, reading]))
}

const bad = (found: ReadonlyMap<AlertName, AlertReading>): ReadonlyArray<AlertName> =>
  [...found.values()].flatMap(({ name, state }) => (state === "bad" ? [name] : []))

const samples = 100

describe("what alerts are raised about", () => {
  it("is the guides' thresholds, unless others are set", () => {
    const delivered = { delivered: samples, tried: samples, attempts: samples }
    assert.deepStrictEqual(bad(readings(delivered)), [])
    assert.deepStrictEqual(bad(readings({ delivered: 98, pending: 2 })), ["success-low"])
    assert.deepStrictEqual(bad(readings({ delivered: 94, pending: 6 })), [
      "success-low",
      "success-critical"
    ])
    assert.deepStrictEqual(bad(readings({ ...delivered, retried: 11 })), ["retries-high"])
    assert.deepStrictEqual(bad(readings({ delivered: 98, refused: 2 })), ["permanent-high"])
    assert.deepStrictEqual(bad(readings({ ...delivered, attempts: 201 })), ["attempts-high"])
    assert.deepStrictEqual(bad(readings({ ...delivered, dead: 1 })), ["dead-letters"])
    assert.deepStrictEqual(bad(readings({}, { ...well, isOpen: true })), ["circuit-opened"])
    assert.deepStrictEqual(bad(readings({}, { ...well, isDisabled: true })), ["endpoint-disabled"])
    assert.deepStrictEqual(bad(readings({}, { ...well, isSuspended: true })), [
      "endpoint-suspended"
    ])
    assert.isFalse(isSimplyWell(noAlertCounts, { ...well, isSuspended: true }, defaultThresholds))
    const lax = withSettings(defaultThresholds, {
      successWarnPercent: 90,
      successCriticalPercent: "off"
    })
    assert.deepStrictEqual(bad(readings({ delivered: 94, pending: 6 }, well, lax)), [])
    const off = withSettings(defaultThresholds, "off")
    const all = { ...delivered, retried: 100, refused: 100, dead: 100, pending: 100 }
    const given = { ...well, isOpen: true, isDisabled: true, isSuspended: true }
    assert.deepStrictEqual(bad(readings(all, given, off)), [])
  })

  it("is how long success takes: the median and the last of a hundred", () => {
    const taking = (ms: ReadonlyArray<number>) => {
      const window = new AlertWindow(10 * minute)
      for (const took of ms) window.attempt({ verdict: "delivered", attempt: 1, at: start, took })
      return bad(readings(window.read(start)))
    }
    const many = (count: number, ms: number) => Array.from({ length: count }, () => ms)
    assert.deepStrictEqual(taking(many(samples, 3_000)), [])
    assert.deepStrictEqual(taking(many(samples, 7_000)), ["median-slow"])
    assert.deepStrictEqual(taking([...many(97, 100), ...many(3, 400_000)]), ["p99-slow"])
  })

  const few = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
  const many = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))
  it.prop(
    "is nothing of an endpoint that is simply well",
    [many, few, few, few, Schema.Array(few), Schema.Boolean],
    ([delivered, pending, again, dead, slow, isOpen]) => {
      const times = [delivered, ...Array.from({ length: 47 }, () => 0), ...slow]
      const attempts = delivered + again
      const counts = { delivered, tried: delivered, pending, dead, attempts, times }
      const state = { ...well, isOpen }
      if (isSimplyWell({ ...noAlertCounts, ...counts }, state, defaultThresholds))
        assert.deepStrictEqual(bad(readings(counts, state)), [])
      else assert.isTrue(pending + again + dead + slow.length > 0 || isOpen)
    }
  )

  it("is no single failure of a few: below the samples no share is judged", () => {
    const three = { tried: 3, pending: 1, retried: 1, delivered: 2, attempts: 2 }
    assert.deepStrictEqual(bad(readings(three)), [])
    const few = withSettings(defaultThresholds, { samples: 3 })
    assert.includeMembers([...bad(readings(three, well, few))], ["success-low", "retries-high"])
  })

  it("is not a failure that a later attempt has made good", () => {
    const window = new AlertWindow(10 * minute)
    const failed = { verdict: "retry", attempt: 1, at: start } as const
    for (let n = 0; n < 40; n++) window.attempt(failed)
    const again = { verdict: "delivered", attempt: 2, at: start + minute, firstAt: start } as const
    for (let n = 0; n < 40; n++) window.attempt(again)
    const found = successReadings(window.read(start + minute), false, defaultThresholds)
    assert.deepStrictEqual(
      found.map(({ state }) => state),
      ["good", "good"]
    )
  })

  it("is what fails now, however many of the failures of before are made good meanwhile", () => {
    const window = new AlertWindow(10 * minute)
    const before = start - 30 * minute
    for (let n = 0; n < 50; n++) {
      window.attempt({ verdict: "delivered", attempt: 3, at: start, firstAt: before })
      window.attempt({ verdict: "retry", attempt: 1, at: start })
    }
    const [warn, critical] = successReadings(window.read(start), false, defaultThresholds)
    assert.deepInclude(warn, { state: "bad", value: 50 })
    assert.deepInclude(critical, { state: "bad", value: 50 })
  })

  it("is dead letters of before together with what fails now", () => {
    const window = new AlertWindow(10 * minute)
    for (let n = 0; n < 10; n++) {
      window.dead(start, start - 30 * minute)
      window.attempt({ verdict: "retry", attempt: 1, at: start })
      window.attempt({ verdict: "delivered", attempt: 1, at: start })
    }
    const [warn] = successReadings(window.read(start), false, defaultThresholds)
    assert.strictEqual(Math.round(warn?.value ?? 0), 33)
  })

  it("is dead letters of a tenant, which nothing but a quiet window clears", () => {
    const reading = (dead: number, thresholds = defaultThresholds) =>
      tenantReadings({ ...noAlertCounts, openCircuits: 0, dead }, thresholds).find(
        ({ name }) => name === "tenant-dead-letters"
      )
    assert.include(reading(99), { state: "between", quiet: false })
    assert.include(reading(100), { state: "bad", value: 100, threshold: 100 })
    assert.include(reading(0), { state: "between", quiet: true })
    const few = withSettings(defaultThresholds, { tenantDeadLetters: 3 })
    assert.include(reading(3, few), { state: "bad" })
    assert.include(reading(500, withSettings(few, "off")), { state: "off" })
  })

  it("is sources that refuse, what their providers lost, and what is in quarantine, until there is none", () => {
    const none = { refusing: 0, quarantined: 0, lost: 0 }
    const states = (
      changes: Partial<Parameters<typeof incomingReadings>[0]>,
      thresholds = defaultThresholds
    ) =>
      incomingReadings({ ...none, ...changes }, thresholds).map(
        ({ quiet, state }) => `${state} ${quiet}`
      )
    const [good, bad] = ["good true", "bad false"]
    assert.deepStrictEqual(states({}), [good, good, good])
    assert.deepStrictEqual(states({ refusing: 1 }), [bad, good, good])
    assert.deepStrictEqual(states({ lost: 1 }), [good, bad, good])
    assert.deepStrictEqual(states({ quarantined: 1 }), [good, good, bad])
    assert.deepStrictEqual(states({ quarantined: undefined }), [good, good, "unknown false"])
    const few = withSettings(defaultThresholds, { quarantined: 3, sourcesRefusing: "off" })
    assert.deepStrictEqual(states({ refusing: 9, quarantined: 2 }, few), [
      ...["off true", good, "between false"]
    ])
  })

  it("is failures in a row while no circuit is open, until the next success", () => {
    const reading = (failuresInRow: number | undefined, isOpen = false) =>
      readings({}, { ...well, failuresInRow, isOpen } as typeof well).get("failures-in-row")
    assert.include(reading(19), { state: "between" })
    assert.include(reading(20), { state: "bad", value: 20, threshold: 20 })
    assert.include(reading(20, true), { state: "between" })
    assert.include(reading(0), { state: "good" })
    assert.include(reading(undefined), { state: "unknown", quiet: false })
    assert.isFalse(isSimplyWell(noAlertCounts, { ...well, failuresInRow: 1 }, defaultThresholds))
  })

  it("is many open circuits, something missing, a failed disk, and waiting that has grown and goes on growing", () => {
    const state = {
      ...{ circuitsOpen: 0, deadLetters: 0, growth: undefined, isMissing: false, unroutedMs: 0 },
      ...{ failing: 0, outboxMs: 0, outboxSetAside: 0 }
    }
    const names = (changes: Partial<Parameters<typeof systemReadings>[0]>) =>
      systemReadings({ ...state, ...changes }, defaultThresholds)
        .filter((reading) => reading.state === "bad")
        .map(({ name }) => name)
    assert.deepStrictEqual(names({}), [])
    assert.deepStrictEqual(names({ circuitsOpen: 9 }), [])
    assert.deepStrictEqual(names({ circuitsOpen: 10 }), ["circuits-open"])
    assert.deepStrictEqual(names({ deadLetters: 999 }), [])
    assert.deepStrictEqual(names({ deadLetters: 1_000 }), ["system-dead-letters"])
    assert.deepStrictEqual(names({ isMissing: true }), ["deliveries-missing"])
    assert.deepStrictEqual(names({ failing: 1 }), ["disk-failed"])
    assert.deepStrictEqual(names({ outboxMs: 59_000 }), [])
    assert.deepStrictEqual(names({ outboxMs: 60_000 }), ["outbox-stuck"])
    assert.deepStrictEqual(names({ outboxSetAside: 1 }), ["outbox-set-aside"])
    assert.deepStrictEqual(names({ unroutedMs: 299_000 }), [])
    assert.deepStrictEqual(names({ unroutedMs: 301_000 }), ["events-unrouted"])
    assert.deepStrictEqual(names({ unroutedMs: undefined }), [])
    assert.deepStrictEqual(names({ growth: { by: 1_000, goesOn: true } }), ["waiting-growing"])
    assert.deepStrictEqual(names({ growth: { by: 999, goesOn: true } }), [])
    assert.deepStrictEqual(names({ growth: { by: 5_000, goesOn: false } }), [])
  })
})

describe("how much what waits has grown", () => {
  it("is not known before somebody has watched for a window", () => {
    const growth = new Growth()
    for (let look = 0; look < 10; look++) growth.note(start + look * minute, look * 100)
    assert.isUndefined(growth.within(10 * minute, start + 9 * minute))
    growth.note(start + 10 * minute, 1_000)
    assert.deepStrictEqual(growth.within(10 * minute, start + 10 * minute), {
      by: 1_000,
      goesOn: true
    })
  })

  it("does not go on where the latest half of the window brought no more", () => {
    const growth = new Growth()
    const waiting = [0, 500, 1_000, 1_500, 2_000, 2_500, 2_500, 2_400, 2_300, 2_200, 2_100]
    for (const [look, count] of waiting.entries()) growth.note(start + look * minute, count)
    assert.deepStrictEqual(growth.within(10 * minute, start + 10 * minute), {
      by: 2_100,
      goesOn: false
    })
  })
})

/** What readings one after the other lead to. */
const follow = (
  states: ReadonlyArray<Pick<AlertReading, "quiet" | "state">>,
  watched: boolean
): ReadonlyArray<Transition> => {
  const done: Array<Transition> = []
  let isRaised = false
  for (const reading of states) {
    const transition = transitionOf(isRaised, reading, watched)
    if (transition === undefined) continue
    done.push(transition)
    isRaised = transition === "raise"
  }
  return done
}

const counted = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 }))
const anyReading = Schema.Struct({
  state: Schema.Literals(["bad", "good", "between", "unknown", "off"]),
  quiet: Schema.Boolean
})

describe("an alert", () => {
  it.prop(
    "is raised and cleared in turn, whatever is read",
    [Schema.Array(anyReading), Schema.Boolean],
    ([states, watched]) => {
      for (const [place, transition] of follow(states, watched).entries())
        assert.strictEqual(transition, place % 2 === 0 ? "raise" : "clear")
    }
  )

  it.prop(
    "is raised once by a share that wavers about its threshold",
    [Schema.NonEmptyArray(Schema.Finite.check(Schema.isBetween({ minimum: 98, maximum: 99.4 })))],
    ([shares]) => {
      const states = shares.flatMap((share) => {
        const counts = {
          ...noAlertCounts,
          delivered: share * 100,
          pending: (100 - share) * 100
        }
        return successReadings(counts, false, defaultThresholds).slice(0, 1)
      })
      assert.isAtMost(follow(states, true).length, 1)
    }
  )

  it.prop(
    "is never raised about shares of fewer deliveries than it takes",
    [counted, counted, counted, Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 }))],
    ([delivered, pending, dead, least]) => {
      const thresholds = { ...defaultThresholds, samples: least }
      const counts = { ...noAlertCounts, delivered, pending, dead }
      const total = delivered + pending + dead
      for (const { state } of successReadings(counts, false, thresholds))
        if (total < least) assert.notStrictEqual(state, "bad")
    }
  )

  it("is not over while a circuit is open, unless enough is delivered", () => {
    const stateOf = (counts: Partial<AlertCounts>, openCircuits: number) => {
      const found = [
        ...tenantReadings({ ...noAlertCounts, ...counts, openCircuits }, defaultThresholds),
        ...readings(counts, { ...well, isOpen: openCircuits > 0 }).values()
      ].filter(({ name }) => name.startsWith("success-"))
      assert.strictEqual(found.length, 4)
      return [...new Set(found.map((reading) => transitionOf(true, reading, true)))]
    }
    assert.deepStrictEqual(stateOf({}, 0), ["clear"])
    assert.deepStrictEqual(stateOf({}, 1), [undefined])
    assert.deepStrictEqual(stateOf({ delivered: 3 }, 1), [undefined])
    assert.deepStrictEqual(stateOf({ delivered: samples }, 1), ["clear"])
  })

  it("stays where too few are left to judge, until there is nothing bad for a whole window", () => {
    const raised = readings({ delivered: 50, pending: 50 }).get("success-low")
    const fewLeft = readings({ delivered: 2, pending: 3 }).get("success-low")
    const quiet = readings({ delivered: 2 }).get("success-low")
    if (raised === undefined || fewLeft === undefined || quiet === undefined)
      throw new Error("gone")
    assert.strictEqual(transitionOf(false, raised, true), "raise")
    assert.isUndefined(transitionOf(true, fewLeft, true))
    assert.strictEqual(transitionOf(true, quiet, true), "clear")
    // Who has just begun to watch knows of nothing bad, and not that there was none.
    assert.isUndefined(transitionOf(true, quiet, false))
    const isWell = readings({ delivered: 100 }).get("success-low")
    if (isWell === undefined) throw new Error("gone")
    assert.strictEqual(transitionOf(true, isWell, false), "clear")
  })

  it("about dead letters stays for a window after the last, also with a new owner", () => {
    const none = readings({ delivered: 100 }).get("dead-letters")
    if (none === undefined) throw new Error("gone")
    assert.isUndefined(transitionOf(true, none, false))
    assert.strictEqual(transitionOf(true, none, true), "clear")
  })

  it("about a circuit stays until it has been closed for a window", () => {
    const after = (closedFor: number) => readings({}, { ...well, closedFor }).get("circuit-opened")
    const soon = after(9 * minute)
    const later = after(10 * minute)
    if (soon === undefined || later === undefined) throw new Error("gone")
    assert.isUndefined(transitionOf(true, soon, true))
    assert.strictEqual(transitionOf(true, later, false), "clear")
  })
})

describe("thresholds", () => {
  it("are as they are one level up, but for what is set", () => {
    const set = { p99Time: Duration.minutes(1), deadLetters: "off", circuitOpened: "off" } as const
    const found = withSettings(defaultThresholds, set)
    const changed = { p99Time: minute, deadLetters: undefined, circuitOpened: undefined }
    assert.deepStrictEqual(found, { ...defaultThresholds, ...changed })
    assert.strictEqual(withSettings(found, { circuitOpened: "on" }).circuitOpened, 1)
    assert.strictEqual(withSettings(found, undefined), found)
  })
})
