import { assert, describe, it } from "@effect/vitest"
import { decideStore, type StoreFacts } from "../../../../src/cli/commands/dev/data-folder.ts"
import { Refused } from "../../../../src/cli/refused.ts"

const MiB = 1024 ** 2
const GiB = 1024 ** 3

const decide = (changes: Partial<StoreFacts>) =>
  decideStore(
    { asked: undefined, former: undefined, disk: { free: 4 * GiB, used: 0 }, ...changes },
    ".petrel"
  )

const sizeOf = (changes: Partial<StoreFacts>) => {
  const size = decide(changes)
  assert(!(size instanceof Refused))
  return size
}

const refusal = (changes: Partial<StoreFacts>) => {
  const size = decide(changes)
  assert(size instanceof Refused)
  return size.message
}

describe("the size of petrel dev's store", () => {
  it("is by the disk, as at the last start, or as it was asked for", () => {
    assert.strictEqual(sizeOf({}).store, 2 * GiB)
    assert.strictEqual(sizeOf({ former: GiB }).store, GiB)
    assert.strictEqual(sizeOf({ asked: 3 * GiB, former: GiB }).store, 3 * GiB)
  })

  it("stays the same on a disk that others have filled meanwhile, with a warning", () => {
    const { store, warning } = sizeOf({ former: GiB, disk: { free: 10 * MiB, used: 100 * MiB } })
    assert.strictEqual(store, GiB)
    assert.strictEqual(
      warning,
      "the disk of .petrel has 10 MiB free, and the broker may take 924 MiB more: free some, or choose another directory with --data"
    )
    assert.isUndefined(sizeOf({ former: GiB }).warning)
  })

  it("is refused where the disk has too little, or more is there, in one sentence", () => {
    assert.strictEqual(
      refusal({ disk: { free: 100 * MiB, used: 0 } }),
      "the disk of .petrel has 100 MiB free and the broker needs 128 MiB: free some, or choose another directory with --data"
    )
    assert.strictEqual(
      refusal({ asked: 5 * GiB }),
      "--store 5 GiB is more than the disk of .petrel has: 4 GiB are free"
    )
    assert.strictEqual(
      refusal({ asked: GiB, disk: { free: GiB, used: 2 * GiB } }),
      "--store 1 GiB is less than the 2 GiB that .petrel holds"
    )
    assert.match(
      refusal({ asked: GiB, former: 2 * GiB }),
      /^--store 1 GiB is less than the 2 GiB of the last start, .* another directory with --data$/
    )
  })
})
