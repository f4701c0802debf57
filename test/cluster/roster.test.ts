import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { writeValue } from "../../src/broker/values.ts"
import { leaseKey, memberKey, readPresent } from "../../src/cluster/roster.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const lease = JSON.stringify({ worker: "w1", instance: "i" })
const heartbeat = JSON.stringify({
  ...{ v: 1, id: "w1", instance: "i", roles: ["deliver"], host: "h", pid: 1, startedAt: 0 },
  partitions: []
})

describe.concurrent("the workers that are listed", () => {
  scenario("include what is renewed while the bucket is read", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const bucket = names.buckets.workers
      const renewed: ReadonlyArray<readonly [key: string, value: string]> = [
        [leaseKey(0), lease],
        [memberKey("w1"), heartbeat]
      ]
      yield* writeValue(bucket, leaseKey(1), lease)
      for (const [key, value] of renewed) yield* writeValue(bucket, key, value)
      let reads = 0
      // The reader comes to their old places once they have left them, and its end lies before the new.
      const broker = yield* alteredBroker(({ batch, ...others }) => ({
        batch: (stream, subject, from, limits) =>
          Effect.gen(function* () {
            const messages = yield* batch(stream, subject, from, limits)
            if (reads++ > 0) return messages
            for (const [key, value] of renewed)
              yield* Effect.orDie(
                Effect.provideService(writeValue(bucket, key, value), Broker, { batch, ...others })
              )
            const keys = renewed.map(([key]) => `$KV.${bucket}.${key}`)
            const seen = messages.filter((message) => !keys.includes(message.subject))
            seen.at(-1)?.header.set("Nats-Num-Pending", "0")
            return seen
          })
      }))
      const { present, unowned } = yield* Effect.provideService(readPresent, Broker, broker)
      assert.deepStrictEqual(unowned, [])
      assert.deepStrictEqual(
        present.map(({ heartbeat, id, partitions }) => [id, heartbeat?.pid, partitions]),
        [["w1", 1, [0, 1]]]
      )
      // Once for what has come at the end, and once to see that it is the end.
      assert.strictEqual(reads, 3)
    })
  )
})
