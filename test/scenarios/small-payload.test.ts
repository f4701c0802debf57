import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { queryOwner } from "../../src/cluster/introspection.ts"
import { consistentRounds } from "../kit/consistency.ts"
import {
  deadLetters,
  endpoint,
  history,
  publish,
  quickRetry,
  testTopology,
  worker
} from "../kit/engine.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const smallest = 64 * 1024

const { scenario } = onServer({ config: `max_payload: ${smallest}` })

/** As long as a name may be. */
const longName = (index: number) => `${index}-`.padEnd(64, "x")

describe.concurrent("a broker that takes the smallest messages Petrel can do with", () => {
  scenario("has an event delivered to more endpoints than one message can name", () =>
    Effect.gen(function* () {
      const count = 600
      const hook = yield* receiver()
      yield* Effect.forEach(
        Array.from({ length: count }, (_, index) => longName(index)),
        (id) => endpoint({ id, url: hook.url }),
        { concurrency: 16 }
      )
      const facts = yield* history
      yield* worker()
      yield* publish("paid")
      yield* hook.received(count)
      assert.lengthOf(yield* consistentRounds, count)
      assert.isAbove(facts.plans().length, 1)
      assert.lengthOf(hook.requests, count)

      const told = yield* Effect.forEach([0, 1], (partition) =>
        queryOwner(partition, { about: "endpoints" })
      )
      assert.strictEqual(
        told.reduce((sum, answer) => sum + (answer?.endpoints.length ?? 0), 0),
        count
      )
    })
  )

  scenario("has the largest event delivered, and answers that are hard to tell, to their end", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      // As JSON each of these takes six bytes.
      const body = "\u0001".repeat(1_024)
      const headers = { "content-type": `text/${"x".repeat(500)}`, server: '"'.repeat(500) }
      const hook = yield* receiver({
        answer: ({ headers: { "petrel-attempt": attempt } }) => ({
          status: attempt === "3" ? 400 : 503,
          body,
          headers
        })
      })
      const well = yield* receiver()
      yield* endpoint({ id: longName(0), url: hook.url, retry: quickRetry() })
      yield* endpoint({ id: longName(1), url: well.url })
      const facts = yield* history
      yield* worker()
      const { config } = yield* ask("look", () => jsm.streams.info(names.events))
      const own = {
        "Nats-Msg-Id": '"'.repeat(255),
        "content-type": "x".repeat(255),
        traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`,
        tracestate: "s".repeat(512)
      }
      const type = ["a", "b", "c"].map((letter) => letter.repeat(64)).join(".")
      // Its headers are in it, with what makes them some.
      const bytes = Object.entries(own).reduce(
        (sum, [name, value]) => sum + name.length + value.length + 4,
        14
      )
      const event = Buffer.alloc(config.max_msg_size - bytes, 7)
      yield* publish(type, event, own)
      yield* facts.count("dead-lettered", 1)
      yield* well.received(1)
      assert.lengthOf(yield* consistentRounds, 2)
      assert.deepStrictEqual(
        facts.of("attempt-failed").map(({ response }) => response?.body),
        [body, body, body]
      )
      assert.strictEqual((yield* deadLetters)[0]?.data.length, event.length)
    })
  )
})

describe("a broker that takes only smaller ones", () => {
  it.live("is refused by init, in a sentence that says what it must take", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: `max_payload: ${smallest - 1}` })),
        (server) => Effect.promise(() => server.stop())
      )
      const error = yield* Effect.flip(
        Effect.provide(init(testTopology), connectTo({ url: server.url }))
      )
      assert.strictEqual(
        error.message,
        "this broker takes messages of up to 65535 bytes (max_payload), and Petrel needs 65536 (64 KiB) at least: raise it in the broker's configuration"
      )
    }).pipe(Effect.scoped)
  )
})
