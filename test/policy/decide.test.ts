import { assert, describe, it } from "@effect/vitest"
import type { Progress } from "../../src/domain/delivery.ts"
import {
  appliedSince,
  decide,
  decisionAfter,
  endingOf,
  isSuspect,
  type KnownDelivery,
  mayBeApplied,
  type NextMove,
  nakDelayMs,
  pauseAfterDefectMs,
  pauseBeforeTrialMs,
  type StoredDecision,
  waitBy,
  waitUntil
} from "../../src/policy/decide.ts"

const now = 1_000_000
const deadline = now + 60_000
const hour = 3_600_000
const untried: Progress = { attempts: 0 }
const twice: Progress = { attempts: 2, lastAttemptAt: now - 5_000, nextAttemptAt: now }

/** A delivery of the queue whose turn has come, about which nothing special is known. */
const usual: KnownDelivery = {
  goal: { _tag: "Attempt" },
  now,
  deadline,
  progress: untried,
  stored: undefined,
  areStoresOpen: true,
  endpoint: "live",
  isEndpointKnown: true,
  isCounted: true,
  mayAttempt: true,
  isClockTrusted: true,
  deliveryCount: 1,
  isCleared: false,
  wasPaused: false
}

const stored = (
  decision: StoredDecision["decision"],
  rest: Partial<StoredDecision> = {}
): StoredDecision => ({
  ...{ decision, decidedAt: now - 1_000, progress: twice, isOutcomeRecorded: true },
  ...rest
})

const nak = (at: number, rest: Partial<StoredDecision> = {}) => stored({ _tag: "Nak", at }, rest)
const trying = (times: number) => stored({ _tag: "Trying", times })
const resume = (of: StoredDecision): NextMove => ({ _tag: "Resume", stored: of })
const attempt = (progress = untried, trial?: number): NextMove => ({
  _tag: "Attempt",
  progress,
  trial
})
const end = (
  reason: Extract<NextMove, { _tag: "End" }>["reason"],
  progress = untried
): NextMove => ({ _tag: "End", progress, reason })
const redeliver = (delayMs: number, why: "pause" | "ours"): NextMove => ({
  _tag: "Redeliver",
  delayMs,
  why
})

type Row = readonly [what: string, known: Partial<KnownDelivery>, move: NextMove]

const table = (rows: ReadonlyArray<Row>) => {
  for (const [what, known, move] of rows)
    it(what, () => assert.deepStrictEqual(decide({ ...usual, ...known }), move))
}

describe("a delivery whose turn has come", () => {
  table([
    ["is attempted", {}, attempt()],
    ["is asked for its endpoint first", { endpoint: undefined }, { _tag: "AskEndpoint" }],
    ["waits until outcomes can be recorded", { areStoresOpen: false }, { _tag: "AwaitStores" }],
    ["ends where its endpoint was removed", { endpoint: "removed" }, end("endpoint-removed")],
    ["ends where its endpoint is disabled", { endpoint: "disabled" }, end("endpoint-disabled")],
    ["ends at its deadline", { now: deadline }, end("deadline")],
    ["is attempted just before its deadline", { now: deadline - 1 }, attempt()],
    [
      "ends for its endpoint rather than for its deadline",
      { endpoint: "removed", now: deadline },
      end("endpoint-removed")
    ],
    ["is left to another owner", { mayAttempt: false }, redeliver(1_000, "ours")],
    [
      "comes back soon where its endpoint was made just now",
      { isEndpointKnown: false },
      redeliver(250, "ours")
    ],
    [
      "comes back soon where its endpoint was enabled since its turn came",
      { isCounted: false },
      redeliver(250, "ours")
    ],
    [
      "ends without being counted",
      { isCounted: false, endpoint: "disabled" },
      end("endpoint-disabled")
    ]
  ])
})

describe("a worker whose clock may be wrong", () => {
  const later = redeliver(1_000, "ours")
  table([
    ["attempts nothing", { isClockTrusted: false }, later],
    ["ends nothing at its deadline", { isClockTrusted: false, now: deadline * 2 }, later],
    ["applies no decision", { isClockTrusted: false, stored: nak(now + 9_000) }, later],
    ["releases what has ended", { isClockTrusted: false, stored: "released" }, { _tag: "Release" }]
  ])
})

describe("a delivery that comes too early", () => {
  const due = (ms: number): Progress => ({ attempts: 1, nextAttemptAt: now + ms })
  table([
    ["is attempted where it is 1 ms early", { progress: due(1) }, attempt(due(1))],
    ["is NAKed for the rest", { progress: due(700) }, redeliver(700, "ours")],
    [
      "is NAKed for up to a second without a record",
      { progress: due(1_000) },
      redeliver(1_000, "ours")
    ],
    [
      "waits by a stored decision for more, as after a direct attempt",
      { progress: due(1_001) },
      { _tag: "Postpone", progress: due(1_001), at: now + 1_001 }
    ]
  ])
})

describe("a delivery whose direct attempt was final", () => {
  const ended: Progress = { attempts: 1, ends: "permanent" }
  table([
    ["ends for that reason", { progress: ended }, end("permanent", ended)],
    [
      "ends whatever its endpoint is",
      { progress: ended, endpoint: undefined },
      end("permanent", ended)
    ],
    [
      "goes on with the decision that was stored meanwhile",
      { progress: ended, stored: nak(now + 9_000) },
      resume(nak(now + 9_000))
    ]
  ])
})

describe("a decision that is found after a crash", () => {
  const dead = stored({ _tag: "Dead", reason: "attempts" })
  const schedule = stored({ _tag: "Schedule", at: now + 5_000 })
  const past = stored({ _tag: "Schedule", at: now - 5_000 })
  const unrecorded = nak(now - 1, { isOutcomeRecorded: false })
  table([
    ["was released: the message is released again", { stored: "released" }, { _tag: "Release" }],
    ["is a dead letter", { stored: dead }, resume(dead)],
    ["is a dead letter, past the deadline", { stored: dead, now: deadline }, resume(dead)],
    [
      "is a dead letter while nothing is stored",
      { stored: dead, areStoresOpen: false },
      resume(dead)
    ],
    ["is a dead letter of a removed endpoint", { stored: dead, endpoint: "removed" }, resume(dead)],
    ["is a schedule", { stored: schedule }, resume(schedule)],
    ["is a schedule whose time has passed", { stored: past }, resume(past)],
    ["is a NAK that is not due", { stored: nak(now + 2) }, resume(nak(now + 2))],
    ["is a NAK whose outcome is not recorded", { stored: unrecorded }, resume(unrecorded)],
    [
      "is a NAK of a clock that was an hour ahead: attempted",
      { stored: nak(now + hour + 5_000, { decidedAt: now + hour }) },
      attempt(twice)
    ],
    [
      "is a NAK of another worker whose clock is a little ahead",
      { stored: nak(now + 25_000, { decidedAt: now + 20_000 }) },
      resume(nak(now + 25_000, { decidedAt: now + 20_000 }))
    ],
    ["is a NAK that is due: attempted", { stored: nak(now) }, attempt(twice)],
    ["is a NAK that is due within the tolerance", { stored: nak(now + 1) }, attempt(twice)],
    [
      "is a NAK that is due, of a disabled endpoint",
      { stored: nak(now), endpoint: "disabled" },
      end("endpoint-disabled", twice)
    ],
    [
      "is a NAK that is due, past the deadline",
      { stored: nak(now), now: deadline },
      end("deadline", twice)
    ],
    [
      "is a NAK that is due, in another's partition",
      { stored: nak(now), mayAttempt: false },
      redeliver(1_000, "ours")
    ]
  ])
})

describe("a message that may crash its workers", () => {
  table([
    ["is marked before its attempt", { deliveryCount: 3 }, attempt(untried, 1)],
    ["is not where this worker gave it back", { deliveryCount: 9, isCleared: true }, attempt()],
    [
      "is not where each delivery was an attempt",
      { deliveryCount: 4, stored: nak(now) },
      attempt(twice)
    ],
    [
      "is where deliveries exceed the attempts",
      { deliveryCount: 5, stored: nak(now) },
      attempt(twice, 1)
    ],
    ["is paused where a mark is found", { stored: trying(1) }, redeliver(1_000, "pause")],
    ["is paused for longer each time", { stored: trying(4) }, redeliver(8_000, "pause")],
    ["is tried again after the pause", { stored: trying(4), wasPaused: true }, attempt(twice, 5)],
    [
      "ends as a defect at the deadline",
      { stored: trying(4), now: deadline },
      end("defect", twice)
    ],
    [
      "ends for its endpoint where that is gone",
      { stored: trying(4), endpoint: "removed", wasPaused: true },
      end("endpoint-removed", twice)
    ]
  ])
})

describe("a delivery that cannot wait in memory", () => {
  const relocate: KnownDelivery["goal"] = { _tag: "Relocate" }
  const reject: KnownDelivery["goal"] = { _tag: "End", reason: "backlog-full" }
  table([
    ["moves", { goal: relocate }, { _tag: "Relocate", progress: untried }],
    [
      "moves with the progress of the stored decision",
      { goal: relocate, stored: nak(now) },
      { _tag: "Relocate", progress: twice }
    ],
    [
      "moves without a mark and without the live endpoint",
      { goal: relocate, deliveryCount: 9, isEndpointKnown: false },
      { _tag: "Relocate", progress: untried }
    ],
    ["ends where it may not move", { goal: reject }, end("backlog-full")],
    ["ends at its deadline instead", { goal: reject, now: deadline }, end("deadline")],
    [
      "does not move before its time",
      { goal: relocate, stored: nak(now + 500) },
      resume(nak(now + 500))
    ],
    ["stays for another owner", { goal: relocate, mayAttempt: false }, redeliver(1_000, "ours")]
  ])
})

describe("a failed attempt", () => {
  it("waits by NAK, and as a schedule where many wait", () => {
    const step = { _tag: "Retry", at: now + 1, delay: 1 } as const
    assert.deepStrictEqual(decisionAfter(step, 9, 10), { _tag: "Nak", at: now + 1 })
    assert.deepStrictEqual(decisionAfter(step, 10, 10), { _tag: "Schedule", at: now + 1 })
    assert.deepStrictEqual(waitUntil(now, 20_000, undefined), { _tag: "Schedule", at: now })
    assert.deepStrictEqual(waitUntil(now, 0, 0), { _tag: "Schedule", at: now })
  })

  it("ends where no attempt is left", () => {
    const step = { _tag: "Dead", reason: "attempts" } as const
    assert.deepStrictEqual(decisionAfter(step, 0, 10), step)
  })
})

describe("an end", () => {
  it("respects what was decided before", () => {
    const decisions = [
      undefined,
      { _tag: "Dead", reason: "deadline" },
      { _tag: "Schedule", at: now },
      { _tag: "Nak", at: now },
      { _tag: "Trying", times: 1 }
    ] as const
    assert.deepStrictEqual(
      decisions.map((decision) => endingOf(decision && { decision })),
      ["end", "apply", "unless-moved", "record-first", "record-first"]
    )
  })
})

describe("the delay of a NAK", () => {
  const rows = [
    ["lasts until its time", now, 5_000],
    ["is what is left of it", now + 4_000, 1_000],
    ["is over at its time", now + 5_000, 0],
    ["is over where the clock was set an hour forward", now + hour, 5_000 - hour],
    ["is no longer where the clock was set an hour back", now - hour, 5_000]
  ] as const
  for (const [what, at, delay] of rows)
    it(what, () => assert.strictEqual(nakDelayMs(now + 5_000, now, at), delay))
})

describe("a decision that was made at some time", () => {
  const window = 60_000
  const rows = [
    ["just now is not applied yet", now, false],
    ["within the window is not applied yet", now - window, false],
    ["longer ago may be applied, and its message id forgotten", now - window - 1, true],
    ["an hour in the future may be, at whatever time that was", now + hour, true]
  ] as const
  for (const [what, decidedAt, may] of rows)
    it(what, () => assert.strictEqual(mayBeApplied(decidedAt, now, window), may))

  it("is searched for from then, or from when its message was stored if that is in the future", () => {
    const storedAt = now - hour
    assert.strictEqual(appliedSince(now - 5, storedAt, now), now - 5)
    assert.strictEqual(appliedSince(now + 20_000, storedAt, now), now + 20_000)
    assert.strictEqual(appliedSince(now + hour, storedAt, now), storedAt)
  })
})

describe("a delivery that somebody wants to be tried now", () => {
  const goal = { _tag: "Hurry" } as const
  const relocate = (progress: Progress): NextMove => ({
    _tag: "Relocate",
    progress: { ...progress, nextAttemptAt: now }
  })
  const late = { ...twice, nextAttemptAt: now + hour }
  const waiting = nak(now + hour, { progress: late })
  table([
    ["does not wait for the time that was decided", { goal, stored: waiting }, relocate(late)],
    ["nor for the time that its message carries", { goal, progress: late }, relocate(late)],
    [
      "is recorded first, where its last attempt is not",
      { goal, stored: { ...waiting, isOutcomeRecorded: false } },
      { _tag: "RecordOutcome", stored: { ...waiting, isOutcomeRecorded: false } }
    ],
    [
      "ends where it had ended",
      { goal, stored: stored({ _tag: "Dead", reason: "attempts" }) },
      resume(stored({ _tag: "Dead", reason: "attempts" }))
    ],
    [
      "still waits after attempts that were not survived",
      { goal, stored: trying(1) },
      redeliver(1_000, "pause")
    ],
    [
      "ends for its endpoint",
      { goal, stored: waiting, endpoint: "disabled" },
      end("endpoint-disabled", late)
    ],
    [
      "ends at its deadline",
      { goal, now: deadline, stored: { ...waiting } },
      end("deadline", late)
    ],
    [
      "waits while another worker may own it",
      { goal, stored: waiting, mayAttempt: false },
      redeliver(1_000, "ours")
    ]
  ])
})

describe("a message that may crash its workers", () => {
  it("is suspect from three deliveries beyond its recorded attempts on", () => {
    const suspects = [
      [2, 0],
      [3, 0],
      [5, 3],
      [6, 3]
    ] as const
    assert.deepStrictEqual(
      suspects.map(([deliveries, recorded]) => isSuspect(deliveries, recorded)),
      [false, true, false, true]
    )
  })

  it("is paused twice as long after each attempt that was not survived, up to 5 minutes", () => {
    assert.deepStrictEqual(
      [1, 2, 3, 12, 5_000].map(pauseBeforeTrialMs),
      [1_000, 2_000, 4_000, 300_000, 300_000]
    )
  })

  it("is paused in the same way after defects", () => {
    assert.deepStrictEqual([0, 1, 2, 12].map(pauseAfterDefectMs), [1_000, 2_000, 4_000, 300_000])
  })
})

describe("a retry", () => {
  it("waits as a NAK while few do", () => {
    assert.strictEqual(waitBy(0), "nak")
    assert.strictEqual(waitBy(19_999), "nak")
  })

  it("waits as a schedule of the broker once as many wait as NAKs as may", () => {
    assert.strictEqual(waitBy(20_000), "schedule")
    assert.strictEqual(waitBy(1_000_000), "schedule")
    assert.strictEqual(waitBy(2, 3), "nak")
    assert.strictEqual(waitBy(3, 3), "schedule")
  })
})
