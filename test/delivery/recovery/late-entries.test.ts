import { assert, describe, it } from "@effect/vitest"
import { isHandledBy, isUndecided } from "../../../src/delivery/recovery/late-entries.ts"
import { RecordedAttempts } from "../../../src/delivery/recovery/partition-memory.ts"
import type { Fact, FactKind, Place } from "../../../src/domain/fact.ts"
import { placeName } from "../../../src/domain/fact.ts"
import type { Sighting } from "../../../src/history/locate.ts"
import { deliveryOf, now } from "../made-deliveries.ts"

const backlog = (seq: number, entry = 1): Place => ({ stream: "BACKLOG", seq, entry, at: now })
const queue = (seq: number): Place => ({ stream: "QUEUE", seq, at: now })

const origin = placeName(queue(3))
const late = {
  place: backlog(5),
  delivery: deliveryOf({ origin, progress: { attempts: 2 } })
}
const about = { tenant: "acme", endpoint: "hook", event: "7@1", round: "0" }

const messageAt = (
  where: "backlog" | "queue",
  place: Place,
  { attempts = 2, from }: { readonly attempts?: number; readonly from?: Place } = {}
): Sighting => ({
  ...{ ...about, where, place, attempts },
  origin: from === undefined ? undefined : placeName(from)
})

const factOf = (kind: FactKind, changes: Partial<Fact> = {}): Sighting => ({
  ...{ ...about, where: "history", seq: 1 },
  fact: { v: 1, kind, at: now, tenant: "acme", endpoint: "hook", ...changes }
})

describe("a delivery that a former owner stored late", () => {
  for (const [what, sighting, expected] of [
    ["it was delivered", factOf("delivered"), true],
    ["it became a dead letter", factOf("dead-lettered"), true],
    ["an attempt failed before", factOf("attempt-failed", { attempt: 2, from: queue(3) }), false],
    ["one failed since", factOf("attempt-failed", { attempt: 3, from: queue(4) }), true],
    [
      "one failed where else it was moved to",
      factOf("attempt-failed", { attempt: 1, from: backlog(6), origin }),
      true
    ],
    ["one failed there", factOf("attempt-failed", { attempt: 3, from: backlog(5), origin }), false],
    ["it is seen itself", messageAt("backlog", backlog(5), { from: queue(3) }), false],
    ["it is still where it came from", messageAt("queue", queue(3)), true],
    [
      "it was stored once more from there",
      messageAt("backlog", backlog(6), { from: queue(3) }),
      true
    ],
    ["it is seen where it was before", messageAt("backlog", backlog(2)), false],
    ["it is seen with fewer attempts", messageAt("queue", queue(1), { attempts: 1 }), false],
    ["it is seen with more attempts", messageAt("queue", queue(9), { attempts: 3 }), true]
  ] as const)
    it(`${expected ? "goes on elsewhere" : "goes on there"} where ${what}`, () => {
      assert.strictEqual(isHandledBy(late, sighting), expected)
    })

  it("is undecided until it is delivered from there", () => {
    const owners = [
      { owner: 1, after: 0 },
      { owner: 2, after: 4 }
    ]
    const known = { recordedAttempts: new RecordedAttempts() }
    const undecided = (seq: number, writer?: number) =>
      isUndecided(owners, known, backlog(seq), writer)
    assert.deepStrictEqual(
      [undecided(5, 1), undecided(4, 1), undecided(5, 2), undecided(5)],
      [true, false, false, false]
    )
    known.recordedAttempts.add(backlog(5), 0)
    assert.isFalse(undecided(5, 1))
  })
})
