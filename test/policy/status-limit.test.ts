import { assert, describe, it } from "@effect/vitest"
import { Duration, Result, Schema } from "effect"
import { RetryPolicy, type RetryPolicyJson } from "../../src/domain/retry-policy.ts"
import { findPreset } from "../../src/policy/presets.ts"
import {
  type AnswersInARow,
  rowAfter,
  rowReadings,
  statusLadder,
  statusLimits
} from "../../src/policy/status-limit.ts"

const minute = 60_000
const hour = 60 * minute

const doubling: RetryPolicyJson = {
  backoff: { kind: "exponential", base: "1 minute", factor: 2, cap: "1 hour" },
  ...{ jitter: "equal", maxAttempts: 16, window: "72 hours" }
}
const policyOf = (statuses: NonNullable<RetryPolicyJson["statuses"]>, from = doubling) =>
  Schema.decodeSync(RetryPolicy)({ ...from, statuses })

/** The nominal delays of the rule for 404, ms. */
const ladderOf = (attempts: number, window: string, from = doubling) => {
  const policy = policyOf({ "404": { retry: { attempts, window } } }, from)
  const limit = statusLimits(policy).get("404")
  return limit === undefined ? assert.fail("no limit") : statusLadder(policy, limit)
}

describe("the limits of a status", () => {
  it("are those of the statuses with a rule", () => {
    const rule = { retry: { attempts: 5, window: "6 hours" } } as const
    const limits = statusLimits(policyOf({ "403": "retry", "404": rule, "5xx": rule }))
    assert.deepStrictEqual([...limits.keys()], ["404", "5xx"])
    assert.deepInclude(limits.get("5xx"), { attempts: 5, windowMs: 6 * hour })
    assert.strictEqual(statusLimits(policyOf({})).size, 0)
  })

  it("stretch the policy's first delays until they fill the window", () => {
    assert.deepStrictEqual(
      ladderOf(5, "6 hours"),
      [24, 48, 96, 192].map((n) => n * minute)
    )
    const fixed: RetryPolicyJson = { ...doubling, backoff: { kind: "fixed", delay: "1 second" } }
    assert.deepStrictEqual(
      ladderOf(5, "6 hours", fixed),
      [90, 90, 90, 90].map((n) => n * minute)
    )
  })

  it("end with the window where the policy's delays are longer; they are not shortened", () => {
    assert.deepStrictEqual(
      ladderOf(5, "10 minutes"),
      [1, 2, 4, 3].map((n) => n * minute)
    )
    assert.deepStrictEqual(ladderOf(1, "10 minutes"), [])
  })

  it("fill no more than the policy's own window, after which the delivery ends in any case", () => {
    const short: RetryPolicyJson = { ...doubling, window: "30 minutes" }
    assert.deepStrictEqual(
      ladderOf(5, "6 hours", short),
      [2, 4, 8, 16].map((n) => n * minute)
    )
  })

  it("of the default are 5 attempts within 6 hours for 401, 403 and 404, and an alert at the third", () => {
    const policy = findPreset("default")?.policy
    const withCare = { retry: { attempts: 5, window: Duration.hours(6) }, alert: 3 }
    assert.deepStrictEqual(policy?.statuses, { "401": withCare, "403": withCare, "404": withCare })
  })

  it("are a number of attempts and a window", () => {
    const retry = { attempts: 5, window: "6 hours" }
    const wrong: ReadonlyArray<unknown> = [
      {},
      { alert: 3 },
      { retry: { attempts: 5 } },
      { retry: { window: "6 hours" } },
      { retry: { ...retry, attempts: 0 } },
      { retry: { ...retry, window: "soon" } },
      { retry, alert: 0 },
      { retry, alert: 1.5 }
    ]
    for (const rule of wrong) {
      const read = Schema.decodeUnknownResult(RetryPolicy)({
        ...doubling,
        statuses: { "404": rule }
      })
      assert.isTrue(Result.isFailure(read), JSON.stringify(rule))
    }
  })
})

describe("answers in a row", () => {
  const at = 1_000

  it("begin with the first, and count those that the same rule holds for", () => {
    const first = rowAfter(undefined, "404", at, false)
    assert.deepStrictEqual(first, { status: "404", attempts: 1, since: at })
    const second = rowAfter(first, "404", at + 5, false)
    assert.deepStrictEqual(second, { status: "404", attempts: 2, since: at })
    assert.deepStrictEqual(rowAfter(second, "5xx", at + 9, false), {
      ...{ status: "5xx", attempts: 1, since: at + 9 }
    })
  })

  it("end with any other answer", () => {
    assert.isUndefined(rowAfter({ status: "404", attempts: 4, since: at }, undefined, at, false))
  })

  it("do not count probes, but begin with one", () => {
    const probed = rowAfter(undefined, "404", at, true)
    assert.deepStrictEqual(probed, { status: "404", attempts: 0, since: at })
    assert.deepStrictEqual(rowAfter(probed, "404", at + 5, true), probed)
  })
})

const states = (inARow: AnswersInARow | "none" | "unknown", isOn = true) =>
  rowReadings(inARow, isOn).map(({ state }) => state)

const row = (status: string, count: number, alert?: number): AnswersInARow => ({
  status,
  count,
  alert
})

describe("the alert about answers of a status in a row", () => {
  it("has a name of its own for 404", () => {
    const names = rowReadings("none", true).map(({ name }) => name)
    assert.deepStrictEqual(names, ["endpoint-not-found", "status-repeated"])
  })

  it.each([
    ["none", "good", "good"],
    ["unknown", "between", "between"],
    [row("404", 2, 3), "between", "good"],
    [row("404", 3, 3), "bad", "good"],
    [row("404", 9, 3), "bad", "good"],
    [row("404", 9), "good", "good"],
    [row("503", 1, 2), "good", "between"],
    [row("5xx", 2, 2), "good", "bad"]
  ] as const)("of %j is %s for 404 and %s for others", (inARow, notFound, repeated) => {
    assert.deepStrictEqual(states(inARow), [notFound, repeated])
  })

  it("says which status it is about, how often, and at which number it is raised", () => {
    const [, repeated] = rowReadings(row("5xx", 12, 10), true)
    assert.deepInclude(repeated, { status: "5xx", value: 12, threshold: 10, unit: "answers" })
  })

  it("is off where nobody wants it", () => {
    assert.deepStrictEqual(states(row("404", 3, 3), false), ["off", "off"])
  })
})
