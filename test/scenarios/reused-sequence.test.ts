import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { placeName } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { isClean, noRecords, quiet } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publish,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { attempts } from "../kit/outcomes.ts"
import { powerCut } from "../kit/power-cut.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { throughBacklog } from "../kit/through-backlog.ts"

vi.setConfig({ testTimeout: 120_000 })

const hook = { tenant: "acme", endpoint: "hook" }
const partition = partitionOf(hook.tenant, hook.endpoint, 2)

/** Long enough for what is to happen while a delivery waits. */
const slowRetry = quickRetry({ backoff: { kind: "fixed", delay: "20 seconds" } })

describe.concurrent("a delivery that comes back under the sequence that it had before", () => {
  outage("is not taken for its message of then, whose retry record was erased", (_, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const failing = yield* receiver({ answer: { status: 500 } })
      yield* endpoint({ url: failing.url, retry: slowRetry })
      const power = powerCut(server, [names.backlog(partition)])
      yield* power.remember
      const facts = yield* history
      const first = yield* worker({ id: "w1" })
      yield* throughBacklog("a", 1)
      yield* facts.count("attempt-failed", 1)
      yield* eventually(backlogged, (waiting) => waiting === 0)
      yield* noRecords
      yield* first.stop
      yield* power.cut
      failing.answer({})
      yield* pauseEndpoint(hook, undefined, "test")
      yield* worker({ id: "w2" })
      yield* eventually(backlogged, (waiting) => waiting === 1)
      yield* resumeEndpoint(hook, "test")
      yield* quiet
      assert.deepInclude(yield* isClean, { delivered: 1, missing: 0 })
      assert.deepStrictEqual(attempts(failing), [1, 2])
    })
  )

  outage(
    "is not taken for its message of then, of which a later attempt tells",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const failing = yield* receiver({ answer: { status: 500 } })
        const backoff = { kind: "list", delays: ["100 millis", "5 seconds"] } as const
        yield* endpoint({ url: failing.url, retry: quickRetry({ backoff }) })
        const power = powerCut(server, [names.backlog(partition)])
        yield* power.remember
        const facts = yield* history
        const first = yield* worker({ id: "w1" })
        yield* throughBacklog("a", 1)
        yield* facts.count("attempt-failed", 2)
        const [before, after] = facts.of("attempt-failed")
        assert.strictEqual(after?.origin, before?.from && placeName(before.from))
        yield* first.stop
        yield* power.cut
        failing.answer({})
        yield* pauseEndpoint(hook, undefined, "test")
        const second = yield* worker({ id: "w2" })
        yield* eventually(backlogged, (waiting) => waiting === 1)
        yield* second.stop
        yield* worker({ id: "w3" })
        yield* resumeEndpoint(hook, "test")
        yield* quiet
        assert.deepInclude(yield* isClean, { delivered: 1, missing: 0 })
        assert.deepStrictEqual(attempts(failing), [1, 2, 3])
      }),
    // Long enough for the watermark to stay below the attempts.
    { ackWait: 20_000 }
  )
})

describe("a backlog that was empty as its owner began", () => {
  outage("is delivered though a power cut has set its sequences back", (_, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { url } = yield* receiver()
      yield* endpoint({ url })
      const power = powerCut(server, [names.backlog(partition)])
      yield* power.remember
      const facts = yield* history
      const first = yield* worker({ id: "w1" })
      yield* throughBacklog("a", 3)
      yield* facts.count("delivered", 3)
      yield* eventually(backlogged, (waiting) => waiting === 0)
      yield* first.stop
      yield* worker({ id: "w2" })
      yield* publish("b")
      yield* facts.count("delivered", 4)
      yield* power.cut
      yield* throughBacklog("c", 1)
      yield* facts.count("delivered", 5)
      yield* quiet
      assert.deepInclude(yield* isClean, { delivered: 5, missing: 0 })
    })
  )
})
