import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/delivery/endpoints/endpoint-store.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { audit } from "../../src/history/audit/audit.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publish,
  queued,
  quickRetry,
  worker
} from "../engine.ts"
import { attempts } from "../outcomes.ts"
import { powerCut } from "../power-cut.ts"
import { receiver } from "../receiver.ts"
import { outage } from "../scenario.ts"

const hook = { tenant: "acme", endpoint: "hook" }

describe.concurrent("a broker that loses the end of the events, and not of the history,", () => {
  for (const keepsConsumers of [false, true])
    outage(
      `takes the next event for another one${keepsConsumers ? ", though its consumer had come further" : ""}`,
      (_, server) =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          const orders = yield* receiver()
          const salaries = yield* receiver()
          yield* endpoint({ id: "a", url: orders.url, types: ["order.>"] })
          yield* endpoint({ id: "b", url: orders.url, types: ["order.>"] })
          yield* endpoint({ id: "c", url: salaries.url, types: ["salary.>"] })
          const facts = yield* history
          const power = yield* powerCut(server, names.events, { keepsConsumers })
          yield* worker()
          yield* publish("order.created")
          yield* facts.count("delivered", 2)
          yield* power.remember
          const lost = yield* publish("order.created")
          yield* facts.count("delivered", 4)
          yield* power.cut
          const next = yield* publish("salary.changed")
          assert.strictEqual(next.seq, lost.seq)
          yield* salaries.received(1)
          yield* facts.count("delivered", 5)
          assert.lengthOf(orders.requests, 4)
          // Both events are called by their sequence, and receivers must tell them apart.
          const ids = [...orders.requests, ...salaries.requests].map(
            ({ headers }) => headers["webhook-id"]
          )
          assert.strictEqual(new Set(ids).size, 3)
          const { judgement } = yield* audit({})
          assert.deepStrictEqual(
            judgement.problems.list.map(({ eventSeq, kind }) => [kind, eventSeq]),
            [["event-replaced", lost.seq]]
          )
          assert.deepInclude(judgement.tally, { delivered: 3, pending: 0, missing: 0 })
        })
    )
})

describe.concurrent("a broker that loses the end of a backlog", () => {
  outage(
    "lets each delivery wait that comes there, though it gives a sequence again",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const failing = yield* receiver({ answer: { status: 500 } })
        yield* endpoint({
          url: failing.url,
          retry: quickRetry({ backoff: { kind: "fixed", delay: "20 minutes" }, window: "1 hour" })
        })
        const partition = partitionOf("acme", "hook", 2)
        const facts = yield* history
        const power = yield* powerCut(server, names.backlog(partition))
        const schedules = queued(partition, names.subjects.laterOf(partition))
        yield* worker()
        yield* power.remember
        const wave = Effect.fnUntraced(function* (count: number) {
          yield* pauseEndpoint(hook, undefined, "test")
          yield* publish("invoice.paid")
          yield* eventually(backlogged, (waiting) => waiting === 1)
          yield* resumeEndpoint(hook, "test")
          yield* facts.count("attempt-failed", count)
          yield* eventually(backlogged, (waiting) => waiting === 0)
        })
        yield* wave(1)
        yield* power.cut
        yield* wave(2)
        yield* eventually(schedules, (waiting) => waiting.length === 2)
        assert.deepStrictEqual(attempts(failing), [1, 1])
      })
  )
})
