import { assert, describe, it } from "@effect/vitest"
import { CopyVerdicts, restartFor } from "../../../src/broker/sources/divergence.ts"
import type { Restart } from "../../../src/domain/names.ts"

/** A sequence that was copied by the last restart before it, and what the comparison says. */
type Seen = readonly [seq: number, verdict: "same" | "lost" | "gone", restart?: Restart]

const isSame = { same: true, lost: false, gone: undefined }

const restarted = (number: number, start: number, lostThrough = 6): Restart => ({
  ...{ number, start, lostThrough },
  copiedThrough: lostThrough
})

const foundIn = (seen: ReadonlyArray<Seen>, current?: Restart) => {
  const verdicts = new CopyVerdicts(current)
  for (const [seq, verdict, restart] of seen)
    verdicts.see({ seq, restart, isSame: isSame[verdict] })
  const found = verdicts.result()
  return found === undefined ? undefined : [found.start, found.from, found.to, found.copied]
}

describe("where what is lost begins", () => {
  it("is known once a copy before it was seen whose message is there", () => {
    const isOpen = (seen: ReadonlyArray<Seen>) => {
      const verdicts = new CopyVerdicts(undefined)
      for (const [seq, verdict, restart] of seen)
        verdicts.see({ seq, restart, isSame: isSame[verdict] })
      return verdicts.isStartOpen
    }
    assert.isFalse(isOpen([]))
    assert.isFalse(isOpen([[1, "same"]]))
    assert.isTrue(isOpen([[3, "lost"]]))
    // What came after the loss says nothing of what was before it.
    assert.isTrue(
      isOpen([
        [2, "gone"],
        [3, "lost"],
        [4, "same"]
      ])
    )
    assert.isFalse(
      isOpen([
        [2, "same"],
        [3, "lost"],
        [4, "same"]
      ])
    )
  })
})

describe("where a source must start again", () => {
  const first = restarted(1, 4)
  const cases: ReadonlyArray<
    readonly [
      name: string,
      seen: ReadonlyArray<Seen>,
      expected: ReadonlyArray<number> | undefined,
      current?: Restart
    ]
  > = [
    ["nowhere where nothing was copied", [], undefined],
    [
      "nowhere where all is the same",
      [
        [1, "same"],
        [2, "same"]
      ],
      undefined
    ],
    [
      "nowhere for what age has removed",
      [
        [1, "gone"],
        [2, "gone"]
      ],
      undefined
    ],
    [
      "after the last message that is the same",
      [
        [3, "same"],
        [4, "lost"],
        [5, "lost"]
      ],
      [4, 4, 5, 5]
    ],
    [
      "before what was given to messages that it does not take",
      [
        [3, "same"],
        [7, "lost"],
        [9, "lost"]
      ],
      [4, 7, 9, 9]
    ],
    ["at the first that is lost where no earlier one was compared", [[7, "lost"]], [7, 7, 7, 7]],
    [
      "at the first that is lost where the one before has expired",
      [
        [6, "gone"],
        [7, "lost"]
      ],
      [7, 7, 7, 7]
    ],
    [
      "where later ones were copied since",
      [
        [3, "same"],
        [4, "lost"],
        [6, "lost"],
        [7, "same"],
        [8, "same"]
      ],
      [4, 4, 6, 8]
    ],
    [
      "behind an equal one on a sequence that was given again",
      [
        [3, "same"],
        [4, "lost"],
        [5, "same"],
        [6, "lost"]
      ],
      [4, 4, 6, 6]
    ],
    [
      "nowhere once it was started again",
      [
        [3, "same"],
        [4, "lost"],
        [6, "lost"]
      ],
      undefined,
      first
    ],
    [
      "nowhere for what was copied again",
      [
        [4, "lost"],
        [5, "lost"],
        [4, "same", first],
        [5, "same", first]
      ],
      undefined,
      first
    ],
    [
      "where it lost the same again",
      [
        [4, "lost"],
        [4, "same", first],
        [5, "lost", first]
      ],
      [5, 5, 5, 5],
      first
    ],
    [
      "where it lost more, below the restart",
      [
        [2, "same"],
        [3, "lost"],
        [4, "lost"],
        [4, "lost", first]
      ],
      [3, 3, 4, 4],
      first
    ],
    [
      "nowhere for what an earlier restart brought",
      [
        [4, "lost"],
        [5, "lost"],
        [4, "same", first],
        [5, "lost", first],
        [5, "same", restarted(2, 5)]
      ],
      undefined,
      restarted(2, 5)
    ]
  ]
  for (const [name, seen, expected, current] of cases)
    it(name, () => {
      assert.deepStrictEqual(foundIn(seen, current), expected)
    })

  it("is told by the restart, with what it brings anew and what again", () => {
    const divergence = {
      target: "T",
      source: "S",
      restarts: 2,
      start: 4,
      from: 5,
      to: 6,
      copied: 9
    }
    const restart = { number: 3, start: 4, lostThrough: 6, copiedThrough: 9 }
    assert.deepStrictEqual(restartFor(divergence), restart)
    assert.strictEqual(restartFor({ ...divergence, copied: 0 }).copiedThrough, 6)
  })
})
