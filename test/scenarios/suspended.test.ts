import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { vi } from "vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { readHealth } from "../../src/endpoints/health-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { consistentRounds, isClean, noRecords } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { change } from "../kit/live-endpoints.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

const resume = resumeEndpoint({ tenant: "acme", endpoint: "hook" }, "ana")

const healthNow = Effect.map(readHealth("acme", "hook"), ({ health }) => health)

/** When the deliveries of plans end at the latest, ms since the epoch, by sequence of the event. */
const deadlines = (plans: ReadonlyArray<Fact>) =>
  new Map(
    plans.flatMap(({ eventSeq, plan }) =>
      (plan?.endpoints ?? []).map(({ deadline }) => [eventSeq, deadline] as const)
    )
  )

const typed = (facts: ReadonlyArray<Fact>, type: string) => facts.filter((one) => one.type === type)

describe.concurrent("an endpoint that is suspended instead of disabled", () => {
  scenario(
    "keeps what waits and what comes, each until its deadline, and gets the rest when resumed",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 503 } })
        const retry = quickRetry({
          backoff: { kind: "fixed", delay: "300 millis" },
          maxAttempts: 100,
          window: "8 seconds"
        })
        yield* endpoint({
          url: hook.url,
          retry,
          contact: "ops",
          // No share of successes is judged: it would replace the alert where all is delivered at once.
          alerts: {
            ...{ circuitOpened: "off", deadLetters: "off", failuresInRow: "off", samples: 1_000 }
          },
          circuit: {
            ...{ failures: 3, rate: "none", coolDown: "100 millis", maxCoolDown: "200 millis" },
            ...{ giveUpAfter: "1 second", onGiveUp: "suspend" }
          }
        })
        const facts = yield* history
        yield* worker({ alertEvery: 100 })
        yield* publishMany(5, "early")
        yield* facts.count("endpoint-suspended", 1)
        const suspended = nth(facts.of("endpoint-suspended"), 0)
        assert.deepInclude(suspended, { by: "w1", worker: "w1" })
        assert.match(suspended.reason ?? "", /^nothing but failures since .*, the last: 503$/)

        yield* change("hook", { retry: { ...retry, window: "1 hour" } })
        const isLong = ({ at, plan }: Fact) => nth(plan?.endpoints ?? [], 0).deadline - at > 60_000
        yield* eventually(publish("between"), () => facts.plans().some(isLong))
        const sent = hook.requests.length
        yield* publishMany(40, "late")
        yield* facts.until(() => typed(facts.plans(), "late").length === 40)
        assert.isTrue(facts.plans().every(({ plan }) => plan?.skipped.length === 0))
        yield* eventually(healthNow, (health) => health === undefined)
        assert.deepStrictEqual((yield* audit({})).remarks, [])

        const short = facts.plans().filter((plan) => !isLong(plan))
        yield* facts.count("dead-lettered", short.length)
        const ends = deadlines(facts.plans())
        for (const { at, eventSeq, reason } of facts.of("dead-lettered")) {
          assert.strictEqual(reason, "deadline")
          assert.isAtLeast(at, ends.get(eventSeq) ?? Number.POSITIVE_INFINITY)
        }
        assert.strictEqual(hook.requests.length, sent)

        hook.answer({ status: 200 })
        const resumedAt = yield* Clock.currentTimeMillis
        yield* resume
        yield* facts.count("delivered", facts.plans().length - short.length)
        assert.lengthOf(typed(facts.of("delivered"), "late"), 40)
        yield* facts.count("alert-cleared", 1)
        assert.deepStrictEqual(
          facts
            .of("alert-raised", "alert-cleared")
            .flatMap(({ alert, kind }) =>
              alert?.name === "endpoint-suspended" ? [[kind, alert.level, alert.contact]] : []
            ),
          [
            ["alert-raised", "critical", "ops"],
            ["alert-cleared", "critical", "ops"]
          ]
        )

        hook.answer({ status: 503 })
        yield* publish("again")
        const failing = yield* eventually(healthNow, (health) => health !== undefined)
        assert.isAtLeast(failing?.failingSince ?? 0, resumedAt)
        hook.answer({ status: 200 })
        yield* consistentRounds
        yield* noRecords
        yield* isClean
        assert.deepStrictEqual((yield* audit({})).remarks, [])
        assert.lengthOf(facts.of("endpoint-suspended"), 1)
      })
  )

  scenario("by a 410, where that is chosen, is so for the next owner too", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 410 } })
      yield* endpoint({
        ...{ url: hook.url, circuit: { onGone: "suspend", coolDown: "500 millis" } },
        retry: quickRetry({ maxAttempts: 100, window: "1 hour" })
      })
      const facts = yield* history
      const first = yield* worker()
      yield* publish("gone")
      yield* facts.count("endpoint-suspended", 1)
      assert.strictEqual(
        nth(facts.of("endpoint-suspended"), 0).reason,
        "the receiver answered 410 Gone"
      )
      yield* eventually(Effect.andThen(publish("meanwhile"), backlogged), (count) => count > 0)
      const refused = hook.requests.length
      yield* publishMany(20, "b")
      yield* facts.until(() => typed(facts.plans(), "b").length === 20)
      yield* first.stop
      yield* worker({ id: "w2" })
      yield* publishMany(5, "c")
      yield* facts.until(() => typed(facts.plans(), "c").length === 5)
      yield* eventually(backlogged, (count) => count >= 25)
      assert.strictEqual(hook.requests.length, refused)

      hook.answer({ status: 200 })
      yield* resume
      yield* facts.until(() => typed(facts.of("delivered"), "c").length === 5)
      yield* consistentRounds
      assert.lengthOf(typed(facts.of("delivered"), "b"), 20)
      // What was answered 410 is not lost either.
      yield* facts.until(() => typed(facts.of("delivered"), "gone").length === 1)
      assert.lengthOf(facts.of("dead-lettered"), 0)
      assert.lengthOf(facts.of("endpoint-disabled"), 0)
    })
  )
})
