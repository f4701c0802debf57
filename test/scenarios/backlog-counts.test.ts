import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { countBacklogs } from "../../src/history/backlog-count.ts"
import { explainDelivery } from "../../src/operations/deliveries/explain-delivery.ts"
import { showActivity } from "../../src/operations/endpoints/endpoint-queries.ts"
import { repartition } from "../../src/operations/repartition/repartition.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  nth,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const count = 5

describe("the number of deliveries that wait in a backlog", () => {
  scenario("is that of those that have not ended, however often they were moved within it", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 500 } })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ maxAttempts: 1_000, window: "1 hour" }),
        circuit: { failures: 1, coolDown: "200 millis", maxCoolDown: "200 millis" }
      })
      const facts = yield* history
      yield* worker()
      yield* publishMany(count)
      yield* facts.planned(count)
      yield* facts.count("attempt-failed", 2 * count)
      // No more probes: from then on nothing moves.
      yield* pauseEndpoint({ tenant: "acme", endpoint: "hook" }, undefined, "test")
      const { partition } = yield* eventually(
        showActivity({ tenant: "acme", id: "hook" }),
        ({ waiting }) => waiting.backlog === count && waiting.schedules === 0 && waiting.queue === 0
      )
      const stored = (yield* countBacklogs(partition)).get("acme.hook") ?? 0
      assert.isAbove(stored, count, "each probe that failed has left an entry behind")
      const { deliveries, endpoints } = yield* readStatus
      assert.deepInclude(deliveries, { waiting: count, backlog: count })
      assert.strictEqual(endpoints?.withBacklog, 1)

      const standings = yield* Effect.forEach(facts.of("routed"), ({ event }) =>
        Effect.map(explainDelivery(`${event}.hook`), ({ rounds }) => rounds[0]?.waitsIn)
      )
      assert.lengthOf(standings, count)
      for (const standing of standings) {
        assert.strictEqual(standing?.of, count)
        assert.isAtMost(standing?.position ?? Number.NaN, count)
      }
    })
  )

  scenario(
    "is known after a change of partitions",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        yield* pauseEndpoint({ tenant: "acme", endpoint: "hook" }, undefined, "test")
        const facts = yield* history
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker()
            yield* publishMany(2 * count)
            yield* facts.planned(2 * count)
            yield* eventually(backlogged, (waiting) => waiting === 2 * count)
          })
        )
        const home = (partitions: number) => partitionOf("acme", "hook", partitions)
        const to = [3, 4, 5, 6].find((partitions) => home(partitions) !== home(2)) ?? 0
        yield* repartition({ to, tell: () => Effect.void })
        yield* worker()
        const { partition } = yield* eventually(
          showActivity({ tenant: "acme", id: "hook" }),
          ({ waiting }) => waiting.backlog === 2 * count
        )
        assert.notStrictEqual(partition, home(2))
        const { deliveries } = yield* readStatus
        assert.deepInclude(deliveries, { waiting: 2 * count, backlog: 2 * count })
        const { event } = nth(facts.of("routed"), 0)
        const { rounds } = yield* explainDelivery(`${event}.hook`)
        assert.strictEqual(rounds[0]?.waitsIn?.of, 2 * count)
      }),
    { partitions: 2 }
  )
})
