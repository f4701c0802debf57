import { assert, describe, it } from "@effect/vitest"
import type { Progress } from "../../src/domain/delivery.ts"
import type { WaitingFilter } from "../../src/domain/retry-record.ts"
import { waitingMatcher } from "../../src/domain/retry-record.ts"

const failed: Progress = { attempts: 2, lastAttemptAt: 1_000, lastStatus: 503 }
const timedOut: Progress = { attempts: 1, lastAttemptAt: 2_000, lastErrorClass: "timeout" }
const untried: Progress = { attempts: 0 }

const cases: ReadonlyArray<readonly [WaitingFilter, ReadonlyArray<boolean>]> = [
  [{}, [true, true, true]],
  [{ types: ["a.*"] }, [true, true, true]],
  [{ types: ["b", "a.b.>"] }, [false, false, false]],
  [{ status: "503" }, [true, false, false]],
  [{ status: "5xx" }, [true, false, false]],
  [{ status: "4xx" }, [false, false, false]],
  [{ error: "timeout" }, [false, true, false]],
  [{ since: 1_000 }, [true, true, false]],
  [{ since: 1_001 }, [false, true, false]],
  [{ until: 1_999 }, [true, false, false]],
  [{ since: 1_000, until: 2_000, error: "timeout", types: [">"] }, [false, true, false]]
]

describe("a filter of waiting deliveries", () => {
  it.each(cases)("%j means those of which all conditions hold", (filter, expected) => {
    const matches = waitingMatcher(filter)
    assert.deepStrictEqual(
      [failed, timedOut, untried].map((progress) => matches("a.b", progress)),
      expected
    )
  })
})
