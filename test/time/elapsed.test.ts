import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import { elapsedMs } from "../../src/time/elapsed.ts"

/** Each machine begins later than those before it ended: a monotonic clock never goes back. */
let start = performance.now()

/** The two clocks of a machine, which stand still unless they are moved. */
const clocks = () => {
  start += 3_600_000
  let wall = Date.now()
  let monotonic = start
  vi.spyOn(Date, "now").mockImplementation(() => wall)
  vi.spyOn(performance, "now").mockImplementation(() => monotonic)
  const begun = elapsedMs()
  return {
    runs: (ms: number) => {
      wall += ms
      monotonic += ms
    },
    isSuspended: (ms: number) => {
      wall += ms
    },
    sinceBegun: () => elapsedMs() - begun
  }
}

describe("the time that has passed", () => {
  afterEach(() => vi.restoreAllMocks())

  it("is that of the monotonic clock while the machine runs", () => {
    const { runs, sinceBegun } = clocks()
    runs(90_000)
    assert.approximately(sinceBegun(), 90_000, 0.01)
  })

  it("counts what the machine was suspended for, once", () => {
    const { isSuspended, runs, sinceBegun } = clocks()
    runs(1_000)
    isSuspended(300_000)
    runs(1)
    assert.approximately(sinceBegun(), 301_001, 0.01)
    runs(1_000)
    assert.approximately(sinceBegun(), 302_001, 0.01)
  })

  it("does not go back with the clock on the wall, nor with its small corrections", () => {
    const { isSuspended, runs, sinceBegun } = clocks()
    runs(10)
    isSuspended(-3_600_000)
    assert.approximately(sinceBegun(), 10, 0.01)
    runs(10)
    isSuspended(900)
    assert.approximately(sinceBegun(), 20, 0.01)
    runs(10)
    assert.approximately(sinceBegun(), 30, 0.01)
  })
})
