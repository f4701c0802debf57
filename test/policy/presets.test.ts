import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Result, Schema } from "effect"
import type { Verdict } from "../../src/domain/outcome.ts"
import { RetryPolicy } from "../../src/domain/retry-policy.ts"
import { attemptTimeoutMs } from "../../src/policy/attempt-timeout.ts"
import { toSchedule } from "../../src/policy/backoff.ts"
import { classify } from "../../src/policy/classify.ts"
import { nextStep } from "../../src/policy/next-step.ts"
import {
  findPreset,
  presetNames,
  presets,
  resolveRetry,
  UnknownPreset
} from "../../src/policy/presets.ts"
import { ladder, totalTime } from "../../src/policy/retry-outline.ts"

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** What the guides say of each sender, in their own terms. `retries` do not count the first request. */
interface Published {
  readonly retries?: number
  readonly attempts?: number
  readonly window?: number
  readonly timeout?: number
  readonly backoff?: string
}
const published: Record<string, Published> = {
  default: { attempts: 16, window: 72 * hour, backoff: "exponential" },
  stripe: { retries: 15, window: 72 * hour, timeout: 30 * second, backoff: "exponential" },
  "stripe-25": { attempts: 25, window: 72 * hour, backoff: "exponential" },
  "github-linear": { attempts: 3, window: hour, backoff: "linear" },
  github: { retries: 3, window: 4 * hour, timeout: 10 * second, backoff: "fixed" },
  shopify: { retries: 19, window: 48 * hour, timeout: 5 * second, backoff: "exponential" },
  twilio: { retries: 1, timeout: 15 * second },
  "twilio-24h": { attempts: 3, window: 24 * hour, backoff: "exponential" },
  sendgrid: { window: 72 * hour, timeout: 10 * second, backoff: "exponential" },
  slack: { retries: 3, window: 30 * minute, timeout: 5 * second, backoff: "exponential" },
  "slack-1h": { attempts: 3, window: hour, backoff: "exponential" },
  "doubling-1s": { attempts: 10, window: 3 * day, backoff: "exponential" },
  paypal: { attempts: 8, window: 4 * day, timeout: 20 * second, backoff: "exponential" },
  discord: { retries: 5, window: 30 * minute, timeout: 10 * second, backoff: "exponential" },
  square: { attempts: 10, window: 3 * day, backoff: "exponential" },
  mailgun: { attempts: 5, window: 8 * hour, backoff: "linear" },
  recuro: { retries: 8, timeout: 30 * second, backoff: "exponential" },
  "recuro-list": { retries: 8, backoff: "list" },
  sendpromptly: { backoff: "exponential" },
  formspring: { attempts: 8, window: 24 * hour, timeout: 60 * second, backoff: "list" }
}

const policyOf = (name: string): RetryPolicy => {
  const preset = findPreset(name)
  assert.isDefined(preset, name)
  return preset.policy
}

describe("every preset", () => {
  it("is there by the name of its sender, and no other", () => {
    assert.sameMembers([...presetNames], Object.keys(published))
    for (const [name, preset] of presets) assert.strictEqual(preset.name, name)
  })

  it("has the attempts, window, time-out and backoff that the guides give", () => {
    for (const [name, facts] of Object.entries(published)) {
      const policy = policyOf(name)
      const { attempts, retries, timeout, window, backoff } = facts
      if (attempts !== undefined) assert.strictEqual(policy.maxAttempts, attempts, name)
      if (retries !== undefined) assert.strictEqual(policy.maxAttempts, retries + 1, name)
      if (window !== undefined) assert.strictEqual(Duration.toMillis(policy.window), window, name)
      if (backoff !== undefined) assert.strictEqual(policy.backoff.kind, backoff, name)
      const given = policy.timeout === undefined ? undefined : Duration.toMillis(policy.timeout)
      assert.strictEqual(given, timeout, name)
    }
  })

  it("fits all its attempts into its window, with time left for the requests themselves", () => {
    for (const name of presetNames) {
      const policy = policyOf(name)
      assert.lengthOf(ladder(policy), policy.maxAttempts - 1, name)
      const window = Duration.toMillis(policy.window)
      const latest = totalTime(policy) * (policy.jitter === "scaled" ? 1.5 : 1)
      assert.isBelow(latest, window, name)
    }
  })

  it("spreads over most of its window where the guide gives a window but no delays", () => {
    for (const name of [
      "stripe",
      "stripe-25",
      "github",
      "shopify",
      "sendgrid",
      "slack",
      "slack-1h",
      "twilio-24h",
      "paypal",
      "discord",
      "square",
      "mailgun"
    ]) {
      const policy = policyOf(name)
      assert.isAtLeast(totalTime(policy) / Duration.toMillis(policy.window), 0.85, name)
    }
  })

  it.effect("retries a first attempt that times out", () =>
    Effect.gen(function* () {
      for (const name of presetNames) {
        const policy = policyOf(name)
        const next = yield* nextStep({
          ...{ schedule: toSchedule(policy), retryAfterCap: day, verdict: "retry", attempts: 1 },
          ...{ now: attemptTimeoutMs({}, policy), deadline: Duration.toMillis(policy.window) }
        })
        assert.strictEqual(next._tag, "Retry", name)
      }
    })
  )

  it("is jittered, so that no wave of retries is synchronised", () => {
    for (const name of presetNames) assert.notStrictEqual(policyOf(name).jitter, "none", name)
  })

  it("says where it is from", () => {
    for (const { name, source } of presets.values()) assert.match(source, /^guide [1-5]/, name)
  })

  it("obeys a Retry-After of up to a day", () => {
    for (const name of presetNames)
      assert.strictEqual(Duration.toMillis(policyOf(name).retryAfterCap), day, name)
  })
})

describe("the delays that guides spell out", () => {
  it("are those of the default: doubling from a minute to an hour, 10 hours in all", () => {
    const delays = ladder(policyOf("default"))
    assert.deepStrictEqual(
      delays.slice(0, 8).map((delay) => delay / minute),
      [1, 2, 4, 8, 16, 32, 60, 60]
    )
    assert.strictEqual(delays.at(-1), hour)
    assert.strictEqual(totalTime(policyOf("default")), 603 * minute)
    assert.strictEqual(policyOf("default").jitter, "equal")
  })

  it("are Recuro's formula, 30 s to 64 min, about 2 hours in all", () => {
    assert.deepStrictEqual(
      ladder(policyOf("recuro")).map((delay) => delay / second),
      [30, 60, 120, 240, 480, 960, 1920, 3840]
    )
  })

  it("are Recuro's list, 34.7 hours in all, jittered by half to the whole", () => {
    assert.deepStrictEqual(
      ladder(policyOf("recuro-list")).map((delay) => delay / second),
      [10, 30, 120, 600, 1800, 7200, 28_800, 86_400]
    )
    assert.strictEqual(policyOf("recuro-list").jitter, "equal")
  })

  it("are guide 2's, from a second on, and its 5 minutes more each time for GitHub", () => {
    assert.deepStrictEqual(
      ladder(policyOf("doubling-1s"))
        .slice(0, 4)
        .map((delay) => delay / second),
      [1, 2, 4, 8]
    )
    assert.deepStrictEqual(
      ladder(policyOf("github-linear")).map((delay) => delay / minute),
      [5, 10]
    )
  })

  it("are SendPromptly's, capped at 15 minutes", () => {
    assert.deepStrictEqual(
      ladder(policyOf("sendpromptly"))
        .slice(0, 6)
        .map((delay) => delay / minute),
      [1, 2, 4, 8, 15, 15]
    )
  })

  it("are Formspring's, jittered by half either way", () => {
    assert.deepStrictEqual(
      ladder(policyOf("formspring")).map((delay) => delay / second),
      [30, 90, 270, 810, 2430, 7290, 21_600]
    )
    assert.strictEqual(policyOf("formspring").jitter, "scaled")
  })

  it("are Formspring's 30 s to connect and 30 s to read: 60 s in all", () => {
    const { connectTimeout, timeout } = policyOf("formspring")
    assert.deepStrictEqual(
      [connectTimeout, timeout].map((given) => given && Duration.toMillis(given)),
      [30 * second, 60 * second]
    )
  })

  it("are the caps of 12 hours for Stripe and Shopify", () => {
    for (const name of ["stripe", "stripe-25", "shopify"])
      assert.strictEqual(Math.max(...ladder(policyOf(name))), 12 * hour, name)
  })
})

describe("classification by preset", () => {
  const cases: ReadonlyArray<readonly [string, Record<number, Verdict>]> = [
    ["default", { 200: "delivered", 404: "retry", 408: "retry", 425: "retry", 429: "retry" }],
    ["default", { 401: "retry", 403: "retry", 400: "fail", 422: "fail", 500: "retry" }],
    ["stripe", { 404: "fail", 425: "fail", 422: "fail", 408: "retry", 429: "retry", 503: "retry" }],
    ["recuro-list", { 404: "fail", 408: "retry", 429: "retry", 500: "retry" }],
    ["square", { 404: "fail", 408: "fail", 429: "fail", 500: "retry" }],
    ["sendpromptly", { 204: "delivered", 302: "retry", 400: "retry", 404: "retry", 500: "retry" }],
    ...["stripe-25", "github-linear", "twilio-24h", "slack-1h", "doubling-1s"].map(
      (name) => [name, { 404: "fail", 429: "fail", 503: "retry" }] as const
    ),
    ["formspring", { 404: "fail", 408: "fail", 425: "fail", 429: "fail", 500: "retry" }]
  ]
  it("follows the guide", () => {
    for (const [name, verdicts] of cases)
      for (const [status, verdict] of Object.entries(verdicts)) {
        assert.strictEqual(
          classify({ status: Number(status) }, policyOf(name)).verdict,
          verdict,
          `${name} ${status}`
        )
      }
  })
})

describe("an endpoint's retry", () => {
  it("is a preset by its name", () => {
    assert.deepStrictEqual(resolveRetry("slack"), Result.succeed(policyOf("slack")))
  })

  it("is a policy of its own", () => {
    const policy = Schema.decodeSync(RetryPolicy)({
      backoff: { kind: "fixed", delay: "1 minute" },
      jitter: "none",
      maxAttempts: 3,
      window: "1 hour"
    })
    assert.deepStrictEqual(resolveRetry(policy), Result.succeed(policy))
  })

  it("that names no preset is told of the nearest one and of all there are", () => {
    const cases = { strpe: "stripe", GitHub: "github", recuro_list: "recuro-list" }
    for (const [name, nearest] of Object.entries(cases)) {
      const resolved = resolveRetry(name)
      assert.isTrue(Result.isFailure(resolved))
      if (Result.isSuccess(resolved)) return
      assert.instanceOf(resolved.failure, UnknownPreset)
      assert.include(resolved.failure.message, `no retry preset "${name}"`)
      assert.include(resolved.failure.message, `did you mean "${nearest}"?`)
      assert.include(resolved.failure.message, presetNames.join(", "))
    }
    const far = resolveRetry("")
    assert.isTrue(Result.isFailure(far))
    if (Result.isFailure(far))
      assert.match(far.failure.message, /^there is no retry preset ""\. There are: default, /)
  })

  it("is not fooled by the names that every object has", () => {
    for (const name of ["constructor", "__proto__", "toString"])
      assert.isTrue(Result.isFailure(resolveRetry(name)), name)
  })
})
