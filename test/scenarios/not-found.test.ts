import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { endpoint, history, nth, publish, quickRetry, worker } from "../kit/engine.ts"
import { waits } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const windowMs = 3_000
/** The default's rule for 404, in seconds instead of hours. */
const retry = quickRetry({
  backoff: { kind: "exponential", base: "20 millis", factor: 2, cap: "1 second" },
  ...{ maxAttempts: 20, window: "1 hour" },
  statuses: { "404": { retry: { attempts: 5, window: `${windowMs} millis` }, alert: 3 } }
})
const alertEvery = 50

describe.concurrent("an endpoint that is not found", () => {
  scenario("is told at the third answer in a row; its delivery is given up after five", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: byAttempt(503, 503, 503, 404) })
      const alerts = { deadLetters: "off" } as const
      yield* endpoint({ url: hook.url, retry, alerts, contact: "ops@acme.example" })
      const facts = yield* history
      yield* worker({ alertEvery })
      yield* publish("a")
      yield* facts.count("dead-lettered", 1)
      assert.deepStrictEqual(
        facts.of("attempt-failed").map(({ status }) => status),
        [503, 503, 503, 404, 404, 404, 404, 404]
      )
      assert.deepInclude(nth(facts.of("dead-lettered"), 0), {
        ...{ reason: "status-limit", attempt: 8, status: 404 }
      })
      const own = waits(facts.of("attempt-failed")).slice(3)
      assert.deepStrictEqual(own.slice(0, 3), [200, 400, 800])
      // What the requests themselves take is taken off the last delay.
      assert.isAtMost(nth(own, 3), 1_600)
      assert.isAbove(nth(own, 3), 800)

      const raised = facts
        .of("alert-raised")
        .find(({ alert }) => alert?.name === "endpoint-not-found")
      assert.deepInclude(raised?.alert, {
        ...{ about: "endpoint", level: "warn", status: "404", value: 3, threshold: 3 },
        ...{ unit: "answers", lastStatus: 404, contact: "ops@acme.example" }
      })
      assert.isBelow(raised?.at ?? Number.POSITIVE_INFINITY, nth(facts.of("dead-lettered"), 0).at)

      hook.answer({ status: 200 })
      yield* publish("a")
      yield* facts.until((all) =>
        all.some(({ alert, kind }) => kind === "alert-cleared" && alert?.id === raised?.alert?.id)
      )
      yield* consistentRounds
    })
  )

  scenario("keeps what is found within the window; another status is told by its own name", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: byAttempt(404, 404, 200) })
      const busy = yield* receiver({ answer: byAttempt(500, 503, 500, 200) })
      yield* endpoint({ url: hook.url, retry, alerts: {} })
      const statuses = { "5xx": { retry: { attempts: 4, window: "3 seconds" }, alert: 2 } }
      yield* endpoint({ id: "busy", url: busy.url, retry: { ...retry, statuses }, alerts: {} })
      const facts = yield* history
      yield* worker({ alertEvery })
      yield* publish("a")
      yield* facts.count("delivered", 2)
      assert.lengthOf(facts.of("dead-lettered"), 0)
      const named = (all: ReadonlyArray<Fact>) =>
        all.filter(({ alert }) => alert?.status !== undefined)
      yield* facts.until((all) => named(all).length === 2)
      assert.deepStrictEqual(
        named(facts.facts).map(({ alert, endpoint, kind }) => [
          ...[kind, endpoint, alert?.name, alert?.status]
        ]),
        [
          ["alert-raised", "busy", "status-repeated", "5xx"],
          ["alert-cleared", "busy", "status-repeated", "5xx"]
        ]
      )
      yield* consistentRounds
    })
  )
})
