import { assert, describe, it } from "@effect/vitest"
import { placeOf } from "../../../src/operations/history/event-facts.ts"
import type { LoggedRound } from "../../../src/projection/delivery-log.ts"

const round = (
  beganAt: number | null,
  seq: number,
  { recorded = [], repeats = 0, state = "delivered" }: Partial<LoggedRound> = {}
) => ({ beganAt, seq, state, repeats, recorded }) as unknown as LoggedRound

const attempts = [7, 12].map((seq) => ({ seq })) as unknown as LoggedRound["recorded"]

describe("where the facts about an event are", () => {
  for (const [name, rounds, expected] of [
    ["from its beginning to its end", [round(1_000, 5)], { since: 1_000, to: 5 }],
    [
      "over all its rounds",
      [round(1_000, 5), round(5_000, 30, { state: "dead-lettered" }), round(2_000, 9)],
      { since: 1_000, to: 30 }
    ],
    [
      "up to an attempt that was recorded after its end",
      [round(1_000, 5, { recorded: attempts })],
      { since: 1_000, to: 12 }
    ],
    [
      "without an end while one of them waits",
      [round(1_000, 5), round(2_000, 6, { state: "waiting" })],
      { since: 1_000, to: undefined }
    ],
    ["anywhere if a beginning is not known", [round(null, 5), round(1, 2)], undefined],
    ["anywhere if a fact repeats another one", [round(1, 2, { repeats: 1 })], undefined],
    ["anywhere if the log has none", [], undefined],
    [
      "anywhere if there are more than the log shows",
      Array.from({ length: 1_000 }, () => round(1, 2)),
      undefined
    ]
  ] as const)
    it(name, () => assert.deepStrictEqual(placeOf({ rounds }), expected))
})
