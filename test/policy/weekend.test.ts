import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { defaultCircuit } from "../../src/domain/circuit.ts"
import type { Progress } from "../../src/domain/delivery.ts"
import { healthy } from "../../src/domain/health.ts"
import { toSchedule } from "../../src/policy/backoff.ts"
import { afterOutcome, isProbe, mayProbe, toHalfOpen } from "../../src/policy/circuit.ts"
import { nextStep } from "../../src/policy/next-step.ts"
import { findPreset } from "../../src/policy/presets.ts"

const hour = 3_600_000
const friday = Date.UTC(2026, 2, 13, 17)

const policy = findPreset("default")?.policy ?? assert.fail("there is no default policy")

/**
 * Tries the only delivery of an endpoint whose receiver is down, by the default policy and circuit.
 *
 * @param downMs how long it is down, from the delivery's first attempt.
 * @param spread of each cool-down, in [0, 1).
 * @returns the delivery's progress, when it is tried next, and why it has ended.
 */
const throughOutage = Effect.fnUntraced(function* (downMs: number, spread: number) {
  const deadline = friday + Duration.toMillis(policy.window)
  let health = healthy("g")
  let progress: Progress = { attempts: 0 }
  let at = friday
  while (at < friday + downMs) {
    if (health.circuit.state === "open" && !mayProbe(health, at)) {
      at = health.circuit.until ?? at
      continue
    }
    health = toHalfOpen(health, at)
    const outcome = { ok: false, permanent: false, at: at + 20, sentAt: at, delivery: "d" }
    const wasProbe = isProbe(health, outcome, progress.lastAttemptAt)
    const circumstances = { spread, rateExceeded: false, ramping: false }
    health = afterOutcome(health, outcome, defaultCircuit, circumstances).health
    const probes = (progress.probes ?? 0) + (wasProbe ? 1 : 0)
    progress = { attempts: progress.attempts + 1, probes, lastAttemptAt: outcome.at }
    const next = yield* nextStep({
      schedule: toSchedule(policy),
      retryAfterCap: Duration.toMillis(policy.retryAfterCap),
      ...{ verdict: "retry", deadline, now: outcome.at },
      attempts: progress.attempts - probes,
      nextAllowedAt: wasProbe ? health.circuit.until : undefined
    })
    if (next._tag === "Dead") return { progress, at: outcome.at, ended: next.reason }
    at = next.at
  }
  return { progress, at, ended: undefined }
})

describe("the default policy and circuit", () => {
  it.effect(
    "carry a single delivery through a weekend, from Friday evening to Monday morning",
    () =>
      Effect.gen(function* () {
        const weekend = 64 * hour
        for (const spread of [0, 0.5, 0.999]) {
          const { at, ended, progress } = yield* throughOutage(weekend, spread)
          assert.isUndefined(ended)
          assert.isAtMost(at - friday, weekend + defaultCircuit.maxCoolDown)
          const { attempts, probes = 0 } = progress
          assert.isBelow(attempts - probes, policy.maxAttempts)
          assert.isAbove(attempts, policy.maxAttempts)
        }
      })
  )

  it.effect("give it up at the end of its window, and not before the last probe within it", () =>
    Effect.gen(function* () {
      const { at, ended } = yield* throughOutage(2 * Duration.toMillis(policy.window), 0.5)
      assert.strictEqual(ended, "deadline")
      const left = friday + Duration.toMillis(policy.window) - at
      assert.isAtLeast(left, 0)
      assert.isAtMost(left, defaultCircuit.maxCoolDown)
    })
  )
})
