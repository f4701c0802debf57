import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { vi } from "vitest"
import { isClean, quiet } from "../kit/consistency.ts"
import { endpoint, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 2, testTimeout: 60_000 })

const { scenario } = onServer()

const leaseTtl = 2_000
const cap = 2
const events = 6

/** A receiver that answers nothing until it is told to, and counts what it has at the same time. */
const slowReceiver = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  let now = 0
  let most = 0
  const hook = yield* receiver({
    answer: async () => {
      now++
      most = Math.max(most, now)
      await Effect.runPromise(Deferred.await(gate))
      now--
      return { status: 200 }
    }
  })
  return { hook, most: () => most, answer: Deferred.succeed(gate, undefined) }
})

describe.concurrent("requests of a former owner that still hang", () => {
  for (const how of ["is cut off", "stands still"] as const)
    scenario(
      `come on top of an endpoint's cap once, and no more, where it ${how}`,
      (place, server) =>
        Effect.gen(function* () {
          const { answer, hook, most } = yield* slowReceiver
          yield* endpoint({ url: hook.url, maxInFlight: cap })
          const proxy = yield* tcpProxy(server.port)
          const url = `nats://127.0.0.1:${proxy.port}`
          const first = yield* workerProcess(
            { ...place, url, publishTimeoutMs: 200 },
            { id: "w1", leaseTtl }
          )
          yield* first.delivering
          yield* publishMany(events)
          yield* hook.received(cap)
          yield* how === "is cut off" ? proxy.cut : first.freeze
          yield* worker({ id: "w2", leaseTtl })
          yield* hook.received(2 * cap)
          yield* answer
          if (how === "stands still") yield* first.resume
          else yield* proxy.join
          yield* quiet
          assert.deepInclude(yield* isClean, { delivered: events })
          assert.strictEqual(most(), 2 * cap)
          assert.lengthOf(hook.requests, events + cap)
        })
    )
})
