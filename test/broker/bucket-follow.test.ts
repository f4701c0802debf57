import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { followBucket } from "../../src/broker/bucket-follow.ts"
import { writeValue } from "../../src/broker/values.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("following a bucket", () => {
  scenario("goes on after a defect in what is made of its entries", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      yield* writeValue(names.buckets.tokens, "a", "1")
      let tries = 0
      const make = () => {
        const heard: Array<string> = []
        // The first one stands in until the bucket is read.
        const isBroken = ++tries === 2
        return {
          heard,
          hear: (key: string) => {
            if (isBroken) throw new Error("a mistake of ours")
            heard.push(key)
          }
        }
      }
      const table = yield* followBucket({ bucket: names.buckets.tokens, lagMs: 1_000 }, make)
      assert.deepStrictEqual(table().heard, ["a"])
      assert.isAtLeast(tries, 3)
    })
  )
})
