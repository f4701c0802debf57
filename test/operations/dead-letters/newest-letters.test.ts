import { assert, describe, it } from "@effect/vitest"
import type { DeliveryIdentity } from "../../../src/domain/delivery.ts"
import { NewestLetters } from "../../../src/operations/dead-letters/newest-letters.ts"

const letter = (id: number, changes: Partial<DeliveryIdentity> = {}) => ({
  id,
  delivery: {
    ...{ tenant: "acme", endpoint: "hook", eventSeq: 7, eventAt: 1_000, round: "0" },
    ...changes
  }
})

/** Returns the ids of those that have a newer one. */
const superseded = (letters: ReadonlyArray<ReturnType<typeof letter>>) => {
  const newest = new NewestLetters()
  for (const one of letters) newest.note(one)
  return letters.filter((one) => newest.hasNewer(one)).map(({ id }) => id)
}

describe("The newest dead letter of a delivery", () => {
  it.each([
    ["is its only one", [letter(1)], []],
    [
      "is its last one",
      [letter(1), letter(4, { round: "rx" }), letter(9, { round: "d4" })],
      [1, 4]
    ],
    ["may be that of its first round", [letter(1, { round: "rx" }), letter(2)], [1]],
    ["is not that of another event", [letter(1), letter(2, { eventSeq: 8, round: "rx" })], []],
    [
      "is not that of an event at a place used again",
      [letter(1), letter(2, { eventAt: 2, round: "rx" })],
      []
    ],
    [
      "is not that of another endpoint",
      [letter(1), letter(2, { endpoint: "crm", round: "rx" })],
      []
    ],
    ["is not that of another tenant", [letter(1), letter(2, { tenant: "globex", round: "rx" })], []]
  ] as const)("%s", (_, letters, expected) => {
    assert.deepStrictEqual(superseded(letters), [...expected])
  })
})
