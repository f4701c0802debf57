import { assert, describe, it } from "@effect/vitest"
import {
  connectionsWithin,
  consoleFiles,
  filesFor,
  filesForConnections,
  gatewayFiles,
  loadWithin
} from "../../src/policy/open-files.ts"

describe("what fits into the files that a process may open", () => {
  for (const [files, wanted, maxInFlight, maxConnections] of [
    [undefined, 1_024, 1_024, 4_096],
    [65_536, 1_024, 1_024, 4_096],
    [4_096, 1_024, 1_024, 3_024],
    [1_024, 1_024, 488, 488],
    [1_024, 100, 100, 400],
    [128, 1_024, 40, 40],
    [64, 1_024, 16, 0],
    [20, 1_024, 16, 0]
  ] as const)
    it(`is ${maxInFlight} of ${wanted} requests with ${files ?? "no limit of"} files`, () =>
      assert.deepStrictEqual(loadWithin(wanted, files), { maxInFlight, maxConnections }))

  it("is all that was wanted with as many files as are said to be needed", () => {
    for (const wanted of [16, 100, 1_024])
      assert.strictEqual(loadWithin(wanted, filesFor(wanted)).maxInFlight, wanted)
  })
})

describe("the connections to a server that fit into the files of a process", () => {
  for (const [files, wanted, max, maxHeld] of [
    [undefined, 1_024, 1_024, Number.POSITIVE_INFINITY],
    [65_536, 4_096, 4_096, 61_400],
    [4_096, 1_024, 1_024, 3_032],
    [1_024, 1_024, 738, 246],
    [128, 1_024, 66, 22],
    [50, 1_024, 16, 1]
  ] as const)
    it(`are ${max} of ${wanted} with ${files ?? "no limit of"} files`, () =>
      assert.deepStrictEqual(connectionsWithin(wanted, 40, files), { max, maxHeld }))

  it("are all that were wanted with as many files as are said to be needed", () => {
    for (const others of [consoleFiles, gatewayFiles])
      for (const wanted of [100, 1_024, 4_096])
        assert.strictEqual(
          connectionsWithin(wanted, others, filesForConnections(wanted, others)).max,
          wanted
        )
  })
})
