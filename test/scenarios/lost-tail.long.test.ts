import { assert, describe } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { Directory } from "../../src/endpoints/directory.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  lateRetry,
  publish,
  worker
} from "../kit/engine.ts"
import { change } from "../kit/live-endpoints.ts"
import { attempts } from "../kit/outcomes.ts"
import { powerCut } from "../kit/power-cut.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { throughBacklog } from "../kit/through-backlog.ts"

vi.setConfig({ testTimeout: 60_000 })

describe.concurrent("a broker that has lost what was stored last", () => {
  outage(
    "loses nothing that comes for a backlog afterwards, though it gives the same sequences again",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        const power = powerCut(server, [names.backlog(0)])
        yield* worker()
        yield* publish("first")
        yield* hook.received(1)
        yield* power.remember
        yield* throughBacklog("before", 20)
        yield* facts.count("delivered", 21)
        yield* eventually(backlogged, (waiting) => waiting === 0)
        yield* power.cut
        yield* throughBacklog("after", 12)
        yield* facts.count("delivered", 33)
        yield* throughBacklog("later", 25)
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
        yield* endpoint({ url: hook.url, retry: lateRetry })
        const facts = yield* history
        const power = powerCut(server, [names.deliveries(0)])
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

  outage(
    "gives a revision to another configuration, which counts, and so does the one before it",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const [early, late] = [yield* receiver(), yield* receiver()]
        yield* endpoint({ url: early.url, maxInFlight: 1 })
        const facts = yield* history
        const power = powerCut(server, [`KV_${names.buckets.endpoints}`])
        const services = yield* Layer.build(Directory.layer)
        const directory = Context.get(services, Directory)
        const inFlight = Effect.sync(() => directory.find("acme.hook")?.config.maxInFlight)
        yield* worker()
        yield* power.remember
        const lost = yield* change("hook", { maxInFlight: 2 })
        yield* eventually(inFlight, (count) => count === 2)
        yield* power.cut
        yield* eventually(inFlight, (count) => count === 1)
        const next = yield* change("hook", { url: late.url, maxInFlight: 3 })
        assert.strictEqual(next.revision, lost.revision)
        yield* eventually(inFlight, (count) => count === 3)
        yield* publish("next")
        yield* facts.count("delivered", 1)
        assert.lengthOf(late.requests, 1)
      }),
    { partitions: 2 }
  )
})
