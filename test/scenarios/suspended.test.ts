import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { readHealth } from "../../src/endpoints/health-store.ts"
import { closedBooks } from "../kit/books.ts"
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
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const named = { tenant: "acme", endpoint: "hook" }
const circuit = {
  ...{ failures: 2, coolDown: "100 millis", maxCoolDown: "100 millis", successes: 1 },
  onGiveUp: "suspend",
  onGone: "suspend"
} as const

describe.concurrent("an endpoint that is suspended instead of disabled", () => {
  scenario("keeps what waits and what comes until it is resumed, and expires the rest", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ window: "1 hour" }),
        retryFor: { "soon.>": quickRetry({ window: "4 seconds" }) },
        circuit: { ...circuit, giveUpAfter: "500 millis" }
      })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("endpoint-suspended", 1)
      const { by, reason, worker: decided } = nth(facts.of("endpoint-suspended"), 0)
      assert.deepStrictEqual([by, decided], ["w1", "w1"])
      assert.match(reason ?? "", /^nothing but failures since .*, the last: 503$/)
      yield* eventually(readHealth("acme", "hook"), ({ health }) => health === undefined)

      const before = hook.requests.length
      yield* publishMany(20, "b")
      yield* publish("soon.over")
      yield* facts.planned(22)
      assert.isTrue(facts.plans().every(({ plan }) => plan?.endpoints.length === 1))
      yield* facts.count("dead-lettered", 1)
      const dead = nth(facts.of("dead-lettered"), 0)
      assert.deepStrictEqual([dead.type, dead.reason], ["soon.over", "deadline"])
      yield* eventually(backlogged, (count) => count === 21)
      assert.strictEqual(hook.requests.length, before)

      hook.answer({ status: 200 })
      yield* resumeEndpoint(named, "cli")
      yield* facts.count("delivered", 21)
      yield* facts.count("endpoint-resumed", 1)
      yield* closedBooks
    })
  )

  scenario("loses nothing to a 410 either, and fails anew after it is resumed", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 410 } })
      yield* endpoint({ url: hook.url, retry: quickRetry({ window: "1 hour" }), circuit })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("endpoint-suspended", 1)
      const { reason } = nth(facts.of("endpoint-suspended"), 0)
      assert.strictEqual(reason, "the receiver answered 410 Gone")
      yield* eventually(backlogged, (count) => count === 1)
      assert.lengthOf(hook.requests, 1)

      yield* resumeEndpoint(named, "cli")
      yield* facts.count("endpoint-suspended", 2)
      hook.answer({ status: 200 })
      yield* resumeEndpoint(named, "cli")
      yield* facts.count("delivered", 1)
      assert.lengthOf(facts.of("dead-lettered"), 0)
      yield* closedBooks
    })
  )
})
