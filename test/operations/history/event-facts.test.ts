import { assert, describe, it } from "@effect/vitest"
import { periodOf } from "../../../src/operations/history/event-facts.ts"
import type { LoggedRound } from "../../../src/projection/delivery-log.ts"

const round = (beganAt: number | null, at: number, state = "delivered") =>
  ({ beganAt, at, state }) as LoggedRound

describe("where the facts about an event are", () => {
  for (const [name, rounds, expected] of [
    ["from its beginning to its end", [round(1_000, 1_500)], { since: 900, until: 1_600 }],
    [
      "over all its rounds",
      [round(1_000, 1_500), round(5_000, 9_000, "dead-lettered"), round(2_000, 2_001)],
      { since: 900, until: 9_100 }
    ],
    [
      "without an end while one of them waits",
      [round(1_000, 1_500), round(2_000, 2_000, "waiting")],
      { since: 900, until: Number.POSITIVE_INFINITY }
    ],
    ["anywhere if a beginning is not known", [round(null, 1_500), round(1, 2)], undefined],
    ["anywhere if the log has none", [], undefined],
    [
      "anywhere if there are more than the log shows",
      Array.from({ length: 1_000 }, () => round(1, 2)),
      undefined
    ]
  ] as const)
    it(name, () => assert.deepStrictEqual(periodOf({ rounds }, 100), expected))
})
