import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import {
  eraseValue,
  isConflict,
  readValue,
  readValues,
  writeValue
} from "../../src/broker/values.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const openBucket = Effect.gen(function* () {
  const { bucket, names } = yield* natsClients
  const name = names.buckets.workers
  const kv = yield* bucket(name)
  return {
    kv,
    write: (value: string, options = {}) => writeValue(name, "key", value, options),
    erase: (expected?: number) => eraseValue(name, "key", expected),
    read: Effect.map(readValue(name, "key"), (entry) => entry?.string())
  }
})

describe.concurrent("a value in a bucket", () => {
  scenario("is read as it was written last, also by the client's own reader", () =>
    Effect.gen(function* () {
      const { kv, read, write } = yield* openBucket
      assert.isUndefined(yield* read)
      yield* write("1")
      const { seq } = yield* write("2")
      assert.strictEqual(yield* read, "2")
      const entry = yield* Effect.promise(() => kv.get("key"))
      assert.deepStrictEqual([entry?.string(), entry?.revision], ["2", seq])
    })
  )

  scenario("names its bucket where that is missing", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const { entry } = yield* Broker
      const stream = `KV_${names.buckets.health}`
      yield* ask("remove", () => jsm.streams.delete(stream))
      const { message } = yield* Effect.flip(entry(names.buckets.health, "acme.hook"))
      assert.strictEqual(message, `read acme.hook in ${stream}: stream not found`)
    })
  )

  scenario("is written only over the revision that is expected", () =>
    Effect.gen(function* () {
      const { read, write } = yield* openBucket
      const { seq } = yield* write("1", { expected: 0 })
      for (const expected of [0, seq + 1])
        assert.isTrue(isConflict(yield* Effect.flip(write("x", { expected }))))
      yield* write("2", { expected: seq })
      assert.isTrue(isConflict(yield* Effect.flip(write("x", { expected: seq }))))
      assert.strictEqual(yield* read, "2")
    })
  )

  scenario("ends by itself where it was given a time", () =>
    Effect.gen(function* () {
      const { read, write } = yield* openBucket
      yield* write("1", { ttl: 1 })
      assert.strictEqual(yield* read, "1")
      yield* eventually(read, (value) => value === undefined)
    })
  )

  scenario("is gone once it is erased, and can be written anew", () =>
    Effect.gen(function* () {
      const { erase, read, write } = yield* openBucket
      yield* write("1")
      const { seq } = yield* erase()
      assert.isUndefined(yield* read)
      yield* write("2", { expected: seq })
      assert.strictEqual(yield* read, "2")
    })
  )

  scenario("is erased only at the revision that is meant, where one is", () =>
    Effect.gen(function* () {
      const { erase, read, write } = yield* openBucket
      const first = yield* write("1")
      const second = yield* write("2")
      assert.isTrue(isConflict(yield* Effect.flip(erase(first.seq))))
      assert.strictEqual(yield* read, "2")
      yield* erase(second.seq)
      assert.isUndefined(yield* read)
    })
  )
})

describe.concurrent("a conflict", () => {
  scenario("is not any other failure", () =>
    Effect.gen(function* () {
      const { ask, jsm, publisher } = yield* natsClients
      const { kv } = yield* openBucket
      assert.isFalse(isConflict(yield* Effect.flip(publisher.publish("nobody.takes.this", "", []))))
      assert.isFalse(isConflict(yield* Effect.flip(ask("look", () => jsm.streams.info("NONE")))))
      yield* ask("create", () => kv.create("key", "1"))
      assert.isTrue(isConflict(yield* Effect.flip(ask("create", () => kv.create("key", "2")))))
    })
  )
})

describe.concurrent("the values of a bucket", () => {
  scenario("are read by one request where they are listed often", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const { alerts, workers } = names.buckets
      for (const bucket of [alerts, workers]) {
        for (const key of ["a.1", "a.2", "b.1"]) yield* writeValue(bucket, key, key)
        yield* eraseValue(bucket, "a.2")
        const list = Effect.map(Stream.runCollect(readValues(bucket, "a.*")), (values) =>
          values.map(({ text }) => text)
        )
        // It is remembered for a while how a stream may be read.
        assert.deepStrictEqual(yield* list, ["a.1"])
        const before = connection.stats().outMsgs
        assert.deepStrictEqual(yield* list, ["a.1"])
        assert.strictEqual(connection.stats().outMsgs - before, 1, bucket)
      }
    })
  )
})
