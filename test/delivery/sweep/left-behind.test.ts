import { assert, describe, it } from "@effect/vitest"
import { hasLeft } from "../../../src/delivery/sweep/left-behind.ts"
import type { Fact, FactKind } from "../../../src/domain/fact.ts"
import { placeName } from "../../../src/domain/fact.ts"
import type { Sighting } from "../../../src/history/locate.ts"
import { now, placeOf } from "../made-deliveries.ts"

const place = placeOf(3)
const about = { tenant: "acme", endpoint: "hook", event: "7@1", round: "0" }

/** A message of the same round. */
const messageAt = (
  where: "backlog" | "queue" | "schedules",
  seq: number,
  { attempts = 0, origin }: { readonly attempts?: number; readonly origin?: string } = {}
): Sighting => ({ ...about, where, place: placeOf(seq), attempts, origin })

const factOf = (kind: FactKind, changes: Partial<Fact> = {}): Sighting => ({
  ...{ ...about, where: "history", seq: 1 },
  fact: { v: 1, kind, at: now, tenant: "acme", endpoint: "hook", ...changes }
})

const from = { origin: placeName(place) }
const tried = (attempts: number) => ({ attempts })

describe("a message that its consumer has passed", () => {
  for (const [what, sighting, expected] of [
    ["its delivery succeeded", factOf("delivered"), true],
    ["it succeeded when another owned it", factOf("delivered-late"), true],
    ["it was dead-lettered", factOf("dead-lettered"), true],
    ["an attempt failed", factOf("attempt-failed", { attempt: 2 }), false],
    ["one failed where it was moved to", factOf("attempt-failed", { origin: from.origin }), true],
    ["it is seen itself", messageAt("queue", 3, { ...from, ...tried(9) }), false],
    ["it waits as a schedule that it became", messageAt("schedules", 4, from), true],
    ["it waits in the backlog, moved there", messageAt("backlog", 4, from), true],
    ["it is in the backlog as often attempted", messageAt("backlog", 4, tried(2)), false],
    ["it is in the backlog less often attempted", messageAt("backlog", 4, tried(1)), false],
    ["it is in the queue more often attempted", messageAt("queue", 4, tried(3)), true]
  ] as const)
    it(`has ${expected ? "left its place" : "not left it, as far as is known,"} where ${what}`, () => {
      assert.strictEqual(hasLeft({ place, attempts: 2 }, sighting), expected)
    })
})
