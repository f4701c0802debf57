import { assert, describe, it } from "@effect/vitest"
import { shareOut } from "../../src/policy/rendezvous.ts"

const ids = (count: number, host = "host") =>
  Array.from({ length: count }, (_, index) => `${host}-${4_000 + index}`)

const sizes = (owners: ReadonlyArray<string>, workers: ReadonlyArray<string>) =>
  workers.map((worker) => owners.filter((owner) => owner === worker).length)

const moved = (before: ReadonlyArray<string>, after: ReadonlyArray<string>) =>
  before.filter((owner, partition) => owner !== after[partition]).length

describe("sharing partitions out", () => {
  it("gives each partition to one of the workers, and nobody more than one more than another", () => {
    for (const partitions of [1, 2, 8, 32, 100])
      for (const count of [1, 2, 3, 5, 8, 13, 40]) {
        const workers = ids(count)
        const owners = shareOut(partitions, workers)
        assert.lengthOf(owners, partitions)
        const shares = sizes(owners, workers)
        assert.strictEqual(
          shares.reduce((sum, size) => sum + size, 0),
          partitions
        )
        assert.isAtMost(Math.max(...shares) - Math.min(...shares), 1)
      }
  })

  it("comes to the same result in whatever order the workers are known", () => {
    const workers = ids(7)
    for (const turn of [1, 2, 3])
      assert.deepStrictEqual(
        shareOut(32, [...workers.slice(turn), ...workers.slice(0, turn)].reverse()),
        shareOut(32, workers)
      )
  })

  it("has nobody to give anything to where there are no workers", () => {
    assert.deepStrictEqual(shareOut(8, []), [])
  })

  it("moves few more partitions than it must when a worker joins or leaves", () => {
    for (const [partitions, count] of [
      [8, 1],
      [8, 2],
      [8, 3],
      [32, 3],
      [32, 8],
      [128, 10]
    ] as const) {
      let sum = 0
      const times = 50
      for (let time = 0; time < times; time++) {
        const workers = ids(count, `host${time}`)
        sum += moved(shareOut(partitions, workers), shareOut(partitions, [...workers, "new-1"]))
      }
      const least = Math.floor(partitions / (count + 1))
      assert.isAtLeast(sum / times, least)
      assert.isAtMost(sum / times, 1.8 * (partitions / (count + 1)))
    }
  })

  it("leaves what the others have to them when the only other worker leaves", () => {
    const both = shareOut(8, ["a", "b"])
    const one = shareOut(8, ["a"])
    for (const [partition, owner] of both.entries())
      if (owner === "a") assert.strictEqual(one[partition], "a")
  })

  it("gives different workers different shares, though their ids are alike", () => {
    const shares = ids(20).map((worker) =>
      shareOut(32, [worker, "other"])
        .map((owner) => (owner === worker ? 1 : 0))
        .join("")
    )
    assert.strictEqual(new Set(shares).size, 20)
  })
})
