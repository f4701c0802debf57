import { assert, describe, it } from "@effect/vitest"
import type { JsMsg } from "@nats-io/jetstream"
import { Clock, Effect } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { nakFor, placeName } from "../../src/delivery/held.ts"
import { onServer } from "../scenario.ts"

const { scenario } = onServer()

describe("giving a message back for a time", () => {
  it("asks for whole milliseconds, and for one at least", () => {
    const asked: Array<number | undefined> = []
    const message = { nak: (millis?: number) => asked.push(millis) }
    for (const delay of [1_000, 299.7, 1.5, 1, 0.4, 0, -20, 86_400_000.25]) nakFor(message, delay)
    assert.deepStrictEqual(asked, [1_000, 300, 2, 1, 1, 1, 1, 86_400_000])
  })

  scenario("lets it come back no sooner, whatever the fraction", () =>
    Effect.gen(function* () {
      const { ask, js, names, publisher } = yield* Broker
      yield* publisher.publish(names.subjects.delivery(0, "acme", "hook"), "{}", [])
      const consumer = yield* ask("consumer", () =>
        js.consumers.get(names.deliveries(0), names.deliverConsumer)
      )
      const next = ask("fetch", () => consumer.next({ expires: 10_000 }))
      const first: JsMsg | null = yield* next
      assert.isNotNull(first)
      nakFor(first, 2_000 / 3)
      const given = yield* Clock.currentTimeMillis
      const second: JsMsg | null = yield* next
      assert.strictEqual(second?.seq, first.seq)
      assert.isAtLeast((yield* Clock.currentTimeMillis) - given, 600)
    })
  )
})

describe("the place of a message", () => {
  it("is its stream and its sequence", () => {
    assert.strictEqual(
      placeName({ stream: "PETREL_DELIVERIES_3", seq: 17 }),
      "PETREL_DELIVERIES_3:17"
    )
  })
})
