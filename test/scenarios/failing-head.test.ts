import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { readHealth } from "../../src/endpoints/health-store.ts"
import { consistentRounds, noRecords } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { about, reasons } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

const maxAttempts = 4
const others = 400

describe.concurrent("a delivery that always fails, at the head of a backlog", () => {
  for (const [when, delay] of [
    ["before the circuit is tried again", "50 millis"],
    ["while the others go", "700 millis"]
  ] as const)
    scenario(`and is tried again ${when}: the others arrive, and it ends by its own policy`, () =>
      Effect.gen(function* () {
        let down = true
        const hook = yield* receiver({
          answer: ({ headers }) => ({
            status: down || headers["webhook-id"] === "poison" ? 500 : 200
          })
        })
        yield* endpoint({
          url: hook.url,
          retry: quickRetry({ backoff: { kind: "fixed", delay }, maxAttempts }),
          circuit: { failures: 2, coolDown: "400 millis", maxCoolDown: "800 millis", successes: 2 }
        })
        const facts = yield* history
        yield* worker()
        yield* publishMany(2, "first")
        yield* facts.count("circuit-opened", 1)
        yield* publish("a", "{}", { "Nats-Msg-Id": "poison" })
        yield* eventually(backlogged, (count) => count > 0)
        yield* publishMany(others)
        down = false
        yield* facts.count("delivered", others + 2)
        // While nothing else succeeds, its failures look like an outage, and use up no attempts.
        yield* eventually(
          Effect.andThen(
            publish("b"),
            Effect.sync(() => facts.of("dead-lettered").length)
          ),
          (count) => count === 1
        )
        yield* facts.until(() => facts.of("delivered").length === facts.plans().length - 1)
        yield* consistentRounds
        yield* noRecords
        const poison = about(facts.facts, "hook").filter(({ event }) => event === "poison")
        const attempts = poison.filter(({ kind }) => kind === "attempt-failed")
        assert.lengthOf(
          attempts.filter(({ probe }) => probe !== true),
          maxAttempts
        )
        assert.deepStrictEqual(reasons(poison), [
          ...attempts.map((_, index) => ["attempt-failed", index + 1, undefined]),
          ["dead-lettered", attempts.length, "attempts"]
        ])
        assert.isAtMost(facts.of("circuit-opened").length, 2 + attempts.length)

        const delivered = facts.of("delivered").length
        yield* publishMany(20, "after")
        yield* facts.count("delivered", delivered + 20)
        yield* eventually(readHealth("acme", "hook"), ({ health }) => health === undefined)
      })
    )
})
