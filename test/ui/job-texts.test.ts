import { assert, describe, it } from "@effect/vitest"
import type { Job } from "../../src/client/client.ts"
import {
  askedText,
  isOver,
  recoveryPlanText,
  replayPlanText,
  resultText,
  retryPlanText,
  untilOver
} from "../../ui/job-texts.ts"

const job = (changes: Partial<Job>): Job => ({
  ...{ id: "job-1", tenant: "acme", state: "done", by: "Ada", createdAt: "2026-03-04T10:30:00Z" },
  ...{ kind: "replay", asked: {}, takeovers: 0 },
  ...changes
})

const retried = {
  ...{ endpoints: 1, moved: 0, inFlight: 0, inBacklog: 0, left: 0 },
  ...{ skipped: [], skippedElsewhere: 0 }
}

const redelivery = {
  ...{ selected: 0, redeliver: 0, reasons: {}, gone: 0, before: 0, deliveredLate: 0 },
  superseded: 0,
  ...{ skipped: [], skippedElsewhere: 0 }
}

describe("A job", () => {
  it("is looked at until it is over", () => {
    const states = ["waiting", "running", "done", "failed", "cancelled"] as const
    assert.deepStrictEqual(
      states.map((state) => [isOver({ state }), untilOver(1_000)({ state })]),
      [
        [false, 1_000],
        [false, 1_000],
        [true, undefined],
        [true, undefined],
        [true, undefined]
      ]
    )
  })

  it("says what came of it, of each kind, and nothing of what came of none", () => {
    assert.strictEqual(
      resultText(job({ result: { replayed: 1_200, delivered: 3, underWay: 0, gone: 1 } })),
      "1,200 sent again; 3 delivered already; 1 not kept any more"
    )
    assert.strictEqual(
      resultText(
        job({
          kind: "redelivery",
          result: { redelivered: 2, skipped: [{ count: 4 }], skippedElsewhere: 1 }
        })
      ),
      "2 sent again; 5 for endpoints that take nothing now"
    )
    assert.strictEqual(
      resultText(job({ kind: "retry", result: { ...retried, moved: 7, left: 2 } })),
      "7 tried at once; 2 left as before"
    )
    assert.strictEqual(
      resultText(
        job({ kind: "recovery", result: { retried, redelivered: 5, before: 1, superseded: 2 } })
      ),
      "0 tried at once; 5 sent again; 1 sent again before, by this or another redelivery; 2 left out for newer dead letters of the same deliveries"
    )
    const held = { skipped: [{ endpoint: "hook", why: "acme/hook is paused" }] }
    assert.strictEqual(
      resultText(
        job({ kind: "recovery", result: { retried: { ...retried, ...held }, redelivered: 1 } })
      ),
      "0 tried at once; acme/hook is paused; 1 sent again"
    )
    assert.strictEqual(resultText(job({ state: "failed", problem: "it broke" })), "it broke")
  })

  it("says what it was asked for", () => {
    assert.strictEqual(
      askedText(
        job({
          asked: {
            ...{ endpoint: "billing", types: ["a.*", "b"], onlyMissing: true },
            ...{ since: "2026-03-01T00:00:00Z", until: "2026-03-02T00:00:00Z" }
          }
        })
      ),
      "billing, types a.*, b, onlyMissing, since 2026-03-01T00:00:00Z, until 2026-03-02T00:00:00Z"
    )
  })
})

describe("A plan", () => {
  it("counts what would be sent, by type or reason, and offers nothing to start where that is nothing", () => {
    const replay = {
      ...{ id: "r", since: "", until: "", before: 2, delivered: 0, underWay: 0, unrouted: 0 },
      ...{ replay: 5, types: { "a.b": 1, "a.c": 3 }, otherTypes: 1 }
    }
    assert.deepStrictEqual(replayPlanText(replay), {
      sends: 5,
      says: "5 to be sent; 2 sent by this replay before",
      of: [
        ["a.c", 3],
        ["a.b", 1],
        ["other types", 1]
      ]
    })
    assert.strictEqual(retryPlanText({ ...retried, inFlight: 3 }).sends, 0)
    assert.strictEqual(retryPlanText({ ...retried, inBacklog: 3 }).sends, 3)
    const recovery = recoveryPlanText({
      ...redelivery,
      ...{ redeliver: 2, reasons: { attempts: 2 }, before: 1, superseded: 3 },
      retried: { ...retried, moved: 4 }
    })
    assert.strictEqual(recovery.sends, 6)
    assert.strictEqual(
      recovery.says,
      "of the dead letters 2 to be sent again; of what waits 4 to be tried now; 1 sent again before; 3 left out for newer dead letters of the same deliveries"
    )
    assert.deepStrictEqual(recovery.of, [["attempts", 2]])
  })
})
