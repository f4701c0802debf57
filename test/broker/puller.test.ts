import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { PullDemand, PullEnd, Take } from "../../src/broker/puller.ts"
import { Puller } from "../../src/broker/puller.ts"
import type { StreamMessage } from "../../src/broker/stream-message.ts"
import { TakeTurns } from "../../src/broker/take-turns.ts"
import { wireOf } from "../../src/broker/wire.ts"
import type { GetHeader } from "../../src/domain/header-names.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A puller of the first partition, with what it has taken. */
const pulling = Effect.fnUntraced(function* (expires: number) {
  const { connection, names, publisher } = yield* natsClients
  const taken: Array<StreamMessage> = []
  const headers: Array<GetHeader> = []
  const take: Take = (message, its) => {
    taken.push(message)
    headers.push(its)
  }
  const of = { stream: names.deliveries(0), consumer: names.deliverConsumer }
  const puller = yield* Effect.acquireRelease(
    Effect.sync(
      () => new Puller(wireOf(connection), publisher.outbound, new TakeTurns(), of, take, expires)
    ),
    (puller) => Effect.sync(() => puller.close())
  )
  const ask = (wanted: PullDemand) =>
    Effect.callback<PullEnd>((resume) =>
      puller.request(wanted, (how) => resume(Effect.succeed(how)))
    )
  return { puller, taken, headers, ask }
})

const store = Effect.fnUntraced(function* (...bodies: ReadonlyArray<string>) {
  const { names, publisher } = yield* natsClients
  for (const body of bodies)
    yield* publisher.publish(names.subjects.delivery(0, "acme", "hook"), body, [["petrel-x", "1"]])
})

const bodies = (taken: ReadonlyArray<StreamMessage>) =>
  taken.map(({ data }) => Buffer.from(data).toString())

describe("a request for messages", () => {
  scenario("ends as soon as all it asked for has come", () =>
    Effect.gen(function* () {
      yield* store("a", "b", "c")
      const { ask, taken } = yield* pulling(60_000)
      assert.strictEqual(yield* ask({ messages: 2 }), "done")
      assert.deepStrictEqual(bodies(taken), ["a", "b"])
      assert.strictEqual(yield* ask({ messages: 1 }), "done")
      assert.deepStrictEqual(bodies(taken), ["a", "b", "c"])
    })
  )

  scenario("ends when its time is over, with what came meanwhile", () =>
    Effect.gen(function* () {
      yield* store("a")
      const { ask, taken } = yield* pulling(200)
      assert.strictEqual(yield* ask({ messages: 10, bytes: 10_000 }), "done")
      assert.deepStrictEqual(bodies(taken), ["a"])
    })
  )

  scenario("gets no more bytes than it asked for, and says that the next message has more", () =>
    Effect.gen(function* () {
      yield* store("x".repeat(400), "y".repeat(400), "z".repeat(4_000))
      const { ask, taken } = yield* pulling(60_000)
      assert.strictEqual(yield* ask({ messages: 10, bytes: 2_000 }), "too-large")
      assert.deepStrictEqual(
        bodies(taken).map((body) => body[0]),
        ["x", "y"]
      )
      assert.strictEqual(yield* ask({ messages: 10, bytes: 2_000 }), "too-large")
      assert.strictEqual(taken.length, 2)
      assert.strictEqual(yield* ask({ messages: 1 }), "done")
      assert.strictEqual(taken[2]?.data.length, 4_000)
    })
  )

  scenario("fails where the consumer is not there", () =>
    Effect.gen(function* () {
      const { connection, names, publisher } = yield* natsClients
      const of = { stream: names.deliveries(0), consumer: "nobody" }
      const { outbound } = publisher
      const wire = wireOf(connection)
      const puller = new Puller(wire, outbound, new TakeTurns(), of, () => undefined, 1_000)
      const how = yield* Effect.callback<PullEnd>((resume) =>
        puller.request({ messages: 1 }, (how) => resume(Effect.succeed(how)))
      )
      puller.close()
      assert.deepStrictEqual(how, {
        message: "the broker has no such consumer, or it has no leader now",
        isMissing: true
      })
    })
  )

  scenario("that was abandoned gives back what still comes of it, for later", () =>
    Effect.gen(function* () {
      const { puller, ask, taken } = yield* pulling(1_000)
      puller.request({ messages: 10 }, () => assert.fail("an abandoned request has no end"))
      puller.abandon()
      yield* store("late")
      yield* ask({ messages: 1 })
      if (taken.length === 0) yield* ask({ messages: 1 })
      assert.deepStrictEqual(bodies(taken), ["late"])
      assert.strictEqual(taken[0]?.deliveryCount, 2)
    })
  )
})

describe("a message that was handed out", () => {
  scenario("knows its subject, its place, its time, its headers and how often it came", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const before = yield* Clock.currentTimeMillis
      yield* store("a", "b")
      const { ask, headers, taken } = yield* pulling(60_000)
      yield* ask({ messages: 2 })
      const [, second] = taken
      assert.strictEqual(second?.subject, names.subjects.delivery(0, "acme", "hook"))
      assert.strictEqual(second?.seq, 2)
      assert.strictEqual(second?.deliveryCount, 1)
      assert.strictEqual(headers[1]?.("petrel-x"), "1")
      assert.closeTo(second?.storedAt ?? 0, before, 60_000)
    })
  )

  scenario("given back, comes no sooner than asked, whatever the fraction", () =>
    Effect.gen(function* () {
      yield* store("a")
      const { ask, taken } = yield* pulling(60_000)
      yield* ask({ messages: 1 })
      taken[0]?.nak(2_000 / 3)
      const given = yield* Clock.currentTimeMillis
      yield* ask({ messages: 1 })
      assert.deepStrictEqual(
        taken.map(({ deliveryCount, seq }) => [seq, deliveryCount]),
        [
          [1, 1],
          [1, 2]
        ]
      )
      assert.isAtLeast((yield* Clock.currentTimeMillis) - given, 600)
    })
  )

  scenario("given back for no time or less, comes at once", () =>
    Effect.gen(function* () {
      yield* store("a")
      const { ask, taken } = yield* pulling(60_000)
      for (const delay of [0, -20, 0.4]) {
        yield* ask({ messages: 1 })
        taken.at(-1)?.nak(delay)
      }
      yield* ask({ messages: 1 })
      assert.strictEqual(taken.length, 4)
    })
  )

  scenario("takes one answer only", () =>
    Effect.gen(function* () {
      const { ask: request, connection } = yield* natsClients
      const answers: Array<string> = []
      const heard = connection.subscribe("$JS.ACK.>", {
        callback: (_, message) => void answers.push(message.string())
      })
      yield* store("a")
      const { ask, taken } = yield* pulling(60_000)
      yield* ask({ messages: 1 })
      taken[0]?.ack()
      taken[0]?.nak(1)
      yield* eventually(
        Effect.sync(() => answers.length),
        (count) => count > 0
      )
      // A second one would have gone out with the first.
      yield* request("flush", () => connection.flush())
      heard.unsubscribe()
      assert.deepStrictEqual(answers, ["+ACK"])
    })
  )
})
