import { assert, describe } from "@effect/vitest"
import type { Msg } from "@nats-io/transport-node"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { headersOf } from "../../src/broker/headers.ts"
import { Outbound } from "../../src/broker/outbound.ts"
import { wireOf } from "../../src/broker/wire.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** An outlet, and what somebody else on the same broker gets of it. */
const opened = Effect.gen(function* () {
  const { connection } = yield* natsClients
  const outbound = new Outbound(wireOf(connection))
  const came: Array<Msg> = []
  const subscription = connection.subscribe("out.>", {
    callback: (_, message) => void came.push(message)
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => subscription.unsubscribe()))
  /** All that was published before has come by then. */
  const arrived = Effect.suspend(() => {
    outbound.flush()
    return Effect.promise(() => connection.flush())
  })
  return { outbound, came, arrived }
})

describe("what is published in one turn", () => {
  scenario("arrives in its order, each message with its own subject, reply, headers and body", () =>
    Effect.gen(function* () {
      const { arrived, came, outbound } = yield* opened
      const bytes = Uint8Array.of(0, 13, 10, 255)
      const large = "ä".repeat(100_000)
      outbound.publish("out.text", "", "", "grüße ✓")
      outbound.publish(
        "out.bytes",
        "back.here",
        "NATS/1.0\r\nX-Note: ä€\r\nx-more:  1 \r\nX-More: 2\r\n\r\n",
        bytes
      )
      outbound.publish("out.empty", "", "", "")
      outbound.publish("out.large", "", "NATS/1.0\r\nx-none:\r\n\r\n", large)
      yield* arrived
      assert.deepStrictEqual(
        came.map(({ reply, subject }) => [subject, reply]),
        [
          ["out.text", ""],
          ["out.bytes", "back.here"],
          ["out.empty", ""],
          ["out.large", ""]
        ]
      )
      const [text, binary, empty, long] = came
      assert.strictEqual(text?.string(), "grüße ✓")
      assert.deepStrictEqual(Uint8Array.from(binary?.data ?? []), bytes)
      assert.strictEqual(empty?.data.length, 0)
      assert.strictEqual(long?.string(), large)
      if (binary === undefined || long === undefined) return
      assert.strictEqual(headersOf(binary)("x-note"), "ä€")
      assert.strictEqual(headersOf(binary)("x-more"), "1")
      assert.strictEqual(headersOf(binary)("x-other"), undefined)
      assert.strictEqual(headersOf(long)("x-none"), undefined)
    })
  )

  scenario("holds nothing that would begin another command, and nothing too large", () =>
    Effect.gen(function* () {
      const { arrived, came, outbound } = yield* opened
      for (const subject of ["", "out.a b", "out.a\r\nPUB out.b 0\r\n"])
        assert.throws(() => outbound.publish(subject, "", "", ""), "no subject")
      const tooLarge = new Uint8Array(outbound.largest + 1)
      assert.throws(() => outbound.publish("out.a", "", "", tooLarge), "max_payload")
      outbound.publish("out.fine", "", "", "")
      yield* arrived
      assert.deepStrictEqual(
        came.map(({ subject }) => subject),
        ["out.fine"]
      )
    })
  )
})
