import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { makeQueueDepth } from "../../src/routing/queue-depth.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe.concurrent("the depth of the queues", () => {
  scenario("is waited for until their owners have pulled what is in them, or 2 s", () =>
    Effect.gen(function* () {
      const { ask, js, names, publisher } = yield* natsClients
      const store = (partition: number, count: number) =>
        Effect.forEach(
          Array.from({ length: count }, (_, n) => String(n)),
          (body) => publisher.publish(names.subjects.delivery(partition, "acme", "hook"), body, []),
          { concurrency: 16, discard: true }
        )
      const depth = yield* makeQueueDepth(2)
      const waited = Effect.map(Effect.timed(depth.shallow), ([duration]) => duration)
      yield* store(0, 1_000)
      yield* store(1, 1_000)
      assert.isBelow(Duration.toMillis(yield* waited), 1_900)
      yield* store(1, 100)
      // It is not looked at again before so many have been routed.
      assert.isBelow(Duration.toMillis(yield* waited), 1_900)
      depth.routed(100)
      assert.isAtLeast(Duration.toMillis(yield* waited), 1_900)
      // What its owner has pulled is not in its way.
      const consumer = yield* ask("look", () =>
        js.consumers.get(names.deliveries(1), names.deliverConsumer)
      )
      yield* ask("pull", async () => {
        for await (const message of await consumer.fetch({ max_messages: 100 })) message.working()
      })
      assert.isBelow(Duration.toMillis(yield* waited), 1_900)
    })
  )
})
