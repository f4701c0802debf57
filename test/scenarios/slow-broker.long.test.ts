import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { isClean, quiet } from "../kit/consistency.ts"
import { endpoint, history, publishMany, quickRetry } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 300_000 })

const { scenario } = onServer()

const count = 20

describe.concurrent("a broker that is slower than the time-out of a publication", () => {
  for (const times of [1.6, 3])
    scenario(
      `makes deliveries later, and not more often: ${times} times`,
      (place, server) =>
        Effect.gen(function* () {
          const hook = yield* receiver()
          // Looking for what was stored of an event takes ten round trips.
          yield* endpoint({ url: hook.url, retry: quickRetry({ window: "5 minutes" }) })
          const facts = yield* history
          const proxy = yield* tcpProxy(server.port)
          const url = `nats://127.0.0.1:${proxy.port}`
          // A lease holds for half of its life, and takes a round trip to be renewed.
          const far = yield* workerProcess(
            { ...place, url },
            { leaseTtl: 30_000, logLevel: "Info" }
          )
          yield* far.delivering
          yield* proxy.delay((times * place.publishTimeoutMs) / 2)
          yield* publishMany(count, "first")
          yield* hook.received(count)
          const began = performance.now()
          yield* publishMany(count, "later")
          yield* hook.received(2 * count)
          // It is used to it by then: plan, delivery, backlog and what hands that out are round trips.
          assert.isBelow(performance.now() - began, 20_000 * times)
          yield* facts.count("delivered", 2 * count)
          yield* quiet
          assert.lengthOf(hook.requests, 2 * count)
          assert.lengthOf(
            new Set(hook.requests.map(({ headers }) => headers["webhook-id"])),
            2 * count
          )
          assert.lengthOf(facts.of("delivered"), 2 * count)
          assert.lengthOf(facts.plans(), 2 * count)
          yield* isClean
        }),
      // As by default: with less, what is under way is redelivered.
      { ackWait: 15_000 }
    )
})
