import { assert, describe, it } from "@effect/vitest"
import { problemsOf } from "../../src/worker/readiness.ts"

const ready = {
  ...{ isConnected: true, isKnown: true, isHistoryOpen: true, delivers: true, isStopping: false },
  isReturning: false,
  clockSkewMs: 29_000,
  overdue: [],
  waits: [],
  failedPulls: [],
  unanswered: []
}

describe("problemsOf", () => {
  it.each([
    [{}, []],
    [{ isStopping: true, isConnected: false }, ["the worker is stopping"]],
    [{ isConnected: false, isHistoryOpen: false }, ["the broker is not connected"]],
    [{ isHistoryOpen: false }, ["the history takes no facts: nothing new is sent"]],
    [
      { unanswered: ["PETREL_DEAD", "KV_petrel_retries"] },
      ["the broker acknowledges nothing that is to be stored in PETREL_DEAD, KV_petrel_retries"]
    ],
    [
      {
        waits: ["the broker takes no retry records", "the broker takes no deliveries"],
        failedPulls: ["PETREL_EVENTS", "PETREL_DELIVERIES_0"]
      },
      [
        "the broker takes no retry records",
        "the broker takes no deliveries",
        "the broker gives no messages of PETREL_EVENTS, PETREL_DELIVERIES_0: a stream or consumer is missing, or this user may not ask for them"
      ]
    ],
    [{ isKnown: false }, ["the worker's heartbeats are not seen in the bucket of workers"]],
    [
      { clockSkewMs: -3_600_000 },
      [
        "this machine's clock is 3600.0 s behind the broker's: nothing is routed or sent until they agree"
      ]
    ],
    [{ delivers: false }, ["the worker has not begun to deliver"]],
    [
      { delivers: false, isReturning: true },
      [
        "the worker was cut off from the others, and takes partitions one lease period after its return"
      ]
    ],
    [{ isReturning: true }, []],
    [{ overdue: [3] }, ["the lease of partition 3 was not renewed in time"]],
    [
      { overdue: [3, 5], isHistoryOpen: false },
      [
        "the history takes no facts: nothing new is sent",
        "the lease of partitions 3, 5 was not renewed in time"
      ]
    ]
  ])("of %j are %j", (changes, problems) => {
    assert.deepStrictEqual(problemsOf({ ...ready, ...changes }), problems)
  })
})
