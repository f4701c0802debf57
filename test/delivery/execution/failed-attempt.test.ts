import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Random, Schema } from "effect"
import { judgeFailure } from "../../../src/delivery/execution/failed-attempt.ts"
import type { Circuit } from "../../../src/domain/circuit.ts"
import { type Progress, untried } from "../../../src/domain/delivery.ts"
import { Endpoint } from "../../../src/domain/endpoint.ts"
import type { AttemptOutcome } from "../../../src/domain/outcome.ts"
import type { RetryPolicyJson } from "../../../src/domain/retry-policy.ts"
import { makeLive } from "../../../src/endpoints/live-endpoint.ts"
import type { NextStep } from "../../../src/policy/next-step.ts"
import { deliveryOf, key, live, now, outcomeOf, placeOf } from "../made-deliveries.ts"

const handle = { delivery: deliveryOf(), place: placeOf(3) }
const encodeEndpoint = Schema.encodeSync(Endpoint)
const decodeEndpoint = Schema.decodeUnknownSync(Endpoint)

const endpointWith = (retry: RetryPolicyJson) =>
  makeLive(key, decodeEndpoint({ ...encodeEndpoint(live.config), retry }), 1)

/** The progress after each of these failures of one delivery. */
const walk = Effect.fnUntraced(function* (
  retry: RetryPolicyJson,
  outcomes: ReadonlyArray<Partial<AttemptOutcome>>
) {
  const endpoint = endpointWith(retry)
  const walked: Array<Progress> = []
  for (const outcome of outcomes) {
    const before = walked.at(-1) ?? untried
    const failed = yield* judgeFailure(handle, before, outcomeOf("retry", outcome), endpoint, "w1")
    walked.push(failed.progress)
  }
  return walked
})

describe("the progress after a failed attempt", () => {
  const decorrelated: RetryPolicyJson = {
    backoff: { kind: "decorrelated", base: "1 second", cap: "5 minutes" },
    ...{ jitter: "none", maxAttempts: 20, window: "1 hour" }
  }
  const most = { nextDoubleUnsafe: () => 1 - 2 ** -53, nextIntUnsafe: () => 0 }

  it.effect("keeps what decorrelated backoff drew; a Retry-After and a probe are no draws", () =>
    Effect.gen(function* () {
      const waiting = { status: 503, durationMs: 1, retryAfter: "60" }
      const walked = yield* walk(decorrelated, [
        {},
        { result: waiting },
        { probe: { nextAt: now + 240_000 } },
        {}
      ])
      assert.deepStrictEqual(
        walked.map(({ delayMs, nextAttemptAt = 0 }) => [delayMs, nextAttemptAt - now]),
        [
          [3_000, 3_000],
          [9_000, 60_000],
          [9_000, 240_000],
          [27_000, 27_000]
        ]
      )
    }).pipe(Effect.provideService(Random.Random, most))
  )

  it.effect("holds no delay for other backoffs, whose delays do not depend on it", () =>
    Effect.gen(function* () {
      const backoff = { kind: "fixed", delay: "1 second" } as const
      for (const progress of yield* walk({ ...decorrelated, backoff }, [{}, {}]))
        assert.notProperty(progress, "delayMs")
    })
  )

  it.effect("counts the answers in a row that have limits of their own, and ends with them", () =>
    Effect.gen(function* () {
      const notFound = {
        result: { status: 404, durationMs: 1 },
        rule: { status: "404", alert: undefined }
      }
      const retry: RetryPolicyJson = {
        ...decorrelated,
        backoff: { kind: "fixed", delay: "1 second" },
        statuses: { "404": { retry: { attempts: 3, window: "10 minutes" } } }
      }
      const walked = yield* walk(retry, [{}, notFound, {}, notFound, notFound, notFound])
      assert.deepStrictEqual(
        walked.map(({ inARow, nextAttemptAt }) => [
          inARow?.attempts,
          nextAttemptAt && nextAttemptAt - now
        ]),
        [
          [undefined, 1_000],
          [1, 300_000],
          [undefined, 1_000],
          [1, 300_000],
          [2, 300_000],
          [3, undefined]
        ]
      )
    })
  )
})

describe("a delivery that was answered 410", () => {
  const answered = (config: Partial<Endpoint>, outcome: Partial<AttemptOutcome> = {}) => {
    const gone = outcomeOf("fail", {
      ...{ gone: true, result: { status: 410, durationMs: 1 } },
      ...outcome
    })
    const endpoint = makeLive(key, { ...live.config, ...config }, 1)
    return Effect.map(judgeFailure(handle, untried, gone, endpoint, "w1"), ({ step }) => step)
  }
  const coolDown = Duration.minutes(1)

  it.effect("ends where its endpoint is disabled then", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* answered({}), { _tag: "Dead", reason: "permanent" })
    })
  )

  it.effect("is kept where it is suspended, and does not go again at once if that fails", () =>
    Effect.gen(function* () {
      const circuit: Circuit = { onGone: "suspend", coolDown }
      const kept: NextStep = { _tag: "Retry", at: now + 60_000, delay: 60_000 }
      assert.deepStrictEqual(yield* answered({ circuit }), kept)
      // As a probe: the circuit stays half-open, and allows the next request now.
      assert.deepStrictEqual(yield* answered({ circuit }, { probe: { nextAt: now } }), kept)
      const once = { ...live.policyFor("paid").policy, maxAttempts: 1 }
      assert.deepStrictEqual(yield* answered({ circuit, retry: once }), kept)
    })
  )
})
