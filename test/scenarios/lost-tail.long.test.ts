import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/connection.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/delivery/endpoints/endpoint-store.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  quickRetry,
  worker
} from "../engine.ts"
import { attempts } from "../outcomes.ts"
import { powerCut } from "../power-cut.ts"
import { receiver } from "../receiver.ts"
import { outage } from "../scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const named = { tenant: "acme", endpoint: "hook" }

describe.concurrent("a broker that has lost what was stored last", () => {
  outage(
    "loses nothing that comes for a backlog afterwards, though it gives the same sequences again",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        const power = yield* powerCut(server, names.backlog(0))
        yield* worker()
        yield* publish("first")
        yield* hook.received(1)
        yield* power.remember
        const wave = Effect.fnUntraced(function* (type: string, count: number) {
          yield* pauseEndpoint(named, undefined, "test")
          yield* publishMany(count, type)
          yield* eventually(backlogged, (waiting) => waiting === count)
          yield* resumeEndpoint(named, "test")
        })
        yield* wave("before", 20)
        yield* facts.count("delivered", 21)
        yield* eventually(backlogged, (waiting) => waiting === 0)
        yield* power.cut
        yield* wave("after", 12)
        yield* facts.count("delivered", 33)
        yield* wave("later", 25)
        yield* facts.count("delivered", 58)
        assert.strictEqual(hook.requests.length, 58)
      }),
    { partitions: 2 }
  )

  outage(
    "gives a sequence to another delivery, which has nothing to do with the one before",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver({ answer: { status: 500 } })
        yield* endpoint({
          url: hook.url,
          retry: quickRetry({ backoff: { kind: "fixed", delay: "20 minutes" }, window: "1 hour" })
        })
        const facts = yield* history
        const power = yield* powerCut(server, names.deliveries(0))
        yield* worker()
        yield* power.remember
        yield* publish("lost")
        yield* facts.count("attempt-failed", 1)
        yield* power.cut
        hook.answer({})
        yield* publish("next")
        yield* facts.count("delivered", 1)
        assert.deepStrictEqual(attempts(hook), [1, 1])
      }),
    { partitions: 2 }
  )
})
