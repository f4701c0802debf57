import { assert, describe, it } from "@effect/vitest"
import { WrittenTails } from "../../../src/delivery/backlog/written-tails.ts"

/** Writes one reference for each endpoint, then for each again; returns how many are written again. */
const writeInTurn = (endpoints: number, rounds: number, packedLength: number): number => {
  const tails = new WrittenTails()
  const packed = ["petrel-entries", "x".repeat(packedLength)] as const
  const lastOf = new Map<string, number>()
  let folds = 0
  for (let seq = 1; seq <= endpoints * rounds; seq++) {
    const key = `acme.e${seq % endpoints}`
    if (tails.isFoldDue(key)) folds++
    const tail = { seq, packed, count: 1, window: 60_000, isFirst: false }
    tails.wrote(key, tail, lastOf.get(key) ?? 0, () => true)
    lastOf.set(key, seq)
  }
  return folds
}

describe("the last messages of backlogs", () => {
  it("are held where all of a tenant's 20,000 endpoints get the same events in turn", () => {
    const ofPartition = 20_000 / 8
    assert.isAtLeast(writeInTurn(ofPartition, 12, 40), ofPartition)
  })

  it("are held within a bound, whatever they hold", () => {
    assert.strictEqual(writeInTurn(2_500, 12, 4_000), 0)
  })
})
