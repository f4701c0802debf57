import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { BrokerError } from "../../../src/broker/broker-error.ts"
import type { EventReference } from "../../../src/delivery/bodies/event-bodies.ts"
import { EventBodies } from "../../../src/delivery/bodies/event-bodies.ts"
import type { EventContents } from "../../../src/domain/event.ts"
import { alteredBroker } from "../../kit/altered-broker.ts"
import { eventAt, publishTo } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

/** Publishes events with these bodies, in order. Returns references to them. */
const publishAll = Effect.fnUntraced(function* (
  bodies: ReadonlyArray<string>,
  headers: Record<string, string> = {},
  tenant = "acme"
) {
  const references: Array<EventReference> = []
  for (const body of bodies) {
    const { seq } = yield* publishTo(`${tenant}.order.paid`, body, headers)
    const at = yield* eventAt(seq)
    references.push({ tenant, eventSeq: seq, eventAt: at, bytes: body.length })
  }
  return references
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`)

const bodiesOf = (events: ReadonlyArray<EventContents | "gone">) =>
  events.map((event) => (event === "gone" ? event : Buffer.from(event.body).toString()))

/** Reads with a broker of which `batch` and `readMessage` are counted. */
const counted = Effect.gen(function* () {
  const count = { batches: 0, questions: 0 }
  const broker = yield* alteredBroker(({ batch, readMessage }) => ({
    batch: (...of) =>
      Effect.suspend(() => {
        count.batches++
        return batch(...of)
      }),
    readMessage: (...of) =>
      Effect.suspend(() => {
        count.questions++
        return readMessage(...of)
      })
  }))
  return { count, broker }
})

const made = (broker: Broker["Service"], cacheBytes?: number) =>
  Effect.provideService(EventBodies.make({ cacheBytes }), Broker, broker)

const remove = (seq: number) =>
  Effect.flatMap(Broker, ({ deleteMessage, names }) => deleteMessage("remove", names.events, seq))

describe.concurrent("reading the events of references", () => {
  scenario("returns them in the order given, read together where they lie together", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(numbers(30))
      const { broker, count } = yield* counted
      const bodies = yield* made(broker)
      const wanted = [...references].reverse()
      assert.deepStrictEqual(bodiesOf(yield* bodies.read(wanted, undefined)), numbers(30).reverse())
      assert.deepStrictEqual(count, { batches: 1, questions: 0 })
    })
  )

  scenario("reads those far apart one by one, and none between them", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(numbers(30))
      const { broker, count } = yield* counted
      const bodies = yield* made(broker)
      const wanted = [0, 2, 4, 15, 29].flatMap((index) => references[index] ?? [])
      assert.deepStrictEqual(bodiesOf(yield* bodies.read(wanted, undefined)), [
        "1",
        "3",
        "5",
        "16",
        "30"
      ])
      assert.deepStrictEqual(count, { batches: 3, questions: 0 })
    })
  )

  scenario("tells what the event tells, with the headers that the endpoint names", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(["{}"], {
        "Nats-Msg-Id": "evt_1",
        "Content-Type": "text/plain",
        "X-Order": "7",
        "X-Other": "8"
      })
      const bodies = yield* made(yield* Broker)
      const [event] = yield* bodies.read(references, ["x-order"])
      assert.deepStrictEqual(event, {
        ...{ event: "evt_1", type: "order.paid", body: new Uint8Array(Buffer.from("{}")) },
        content: { contentType: "text/plain", forwarded: ["x-order", "7"] }
      })
      const [other] = yield* bodies.read(references, undefined)
      assert.deepStrictEqual(other === "gone" ? other : other?.content, {
        contentType: "text/plain"
      })
    })
  )

  scenario("knows which are gone, one or many", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(numbers(12))
      const seqs = references.map(({ eventSeq }) => eventSeq)
      yield* remove(seqs[9] ?? 0)
      const { broker } = yield* counted
      const { names, purge } = broker
      yield* purge("expire", names.events, { seq: seqs[6] ?? 0 })
      const bodies = yield* made(broker)
      assert.deepStrictEqual(bodiesOf(yield* bodies.read(references, undefined)), [
        ...Array.from({ length: 6 }, () => "gone"),
        "7",
        "8",
        "9",
        "gone",
        "11",
        "12"
      ])
    })
  )

  scenario("never takes another event at the same sequence", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(numbers(3))
      const bodies = yield* made(yield* Broker)
      const stale = references.map((reference, index) =>
        index === 1 ? { ...reference, eventAt: reference.eventAt - 1 } : reference
      )
      assert.deepStrictEqual(bodiesOf(yield* bodies.read(stale, undefined)), ["1", "gone", "3"])
      assert.deepStrictEqual(bodiesOf(yield* bodies.read(references, undefined)), ["1", "2", "3"])
    })
  )

  scenario("asks the leader for what a replica does not have", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(numbers(6))
      const lagging = yield* alteredBroker(({ batch }) => ({
        batch: (stream, subject, seq, limits) =>
          Effect.map(batch(stream, subject, seq, limits), (messages) => messages.slice(0, 0))
      }))
      const bodies = yield* made(lagging)
      assert.deepStrictEqual(bodiesOf(yield* bodies.read(references, undefined)), numbers(6))
    })
  )

  scenario("fails where the leader does not answer: nothing is gone then", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(["1"])
      yield* remove(references[0]?.eventSeq ?? 0)
      const error = new BrokerError({ operation: "read", cause: new Error("no answer") })
      const silent = yield* alteredBroker(() => ({ readMessage: () => Effect.fail(error) }))
      const bodies = yield* made(silent)
      assert.deepStrictEqual(yield* Effect.flip(bodies.read(references, undefined)), error)
    })
  )
})

describe.concurrent("events that several wait for", () => {
  scenario("are read once, also while they are being read", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(numbers(20))
      const { broker, count } = yield* counted
      const bodies = yield* made(broker)
      const [one, two, part] = yield* Effect.all(
        [
          bodies.read(references, undefined),
          bodies.read(references, undefined),
          bodies.read(references.slice(5, 7), undefined)
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(bodiesOf(one), numbers(20))
      assert.deepStrictEqual(bodiesOf(two), numbers(20))
      assert.deepStrictEqual(bodiesOf(part), ["6", "7"])
      yield* bodies.read(references, undefined)
      assert.deepStrictEqual(count, { batches: 1, questions: 0 })
    })
  )

  scenario("are read by the other one where the first reader is stopped", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(numbers(3))
      const reached = yield* Deferred.make<void>()
      let isStuck = true
      const stuck = yield* alteredBroker(({ batch }) => ({
        batch: (...of) =>
          Effect.suspend(() =>
            isStuck
              ? Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
              : batch(...of)
          )
      }))
      const bodies = yield* made(stuck)
      const first = yield* Effect.forkChild(bodies.read(references, undefined))
      yield* Deferred.await(reached)
      const second = yield* Effect.forkChild(bodies.read(references, undefined), {
        startImmediately: true
      })
      isStuck = false
      yield* Fiber.interrupt(first)
      assert.deepStrictEqual(bodiesOf(yield* Fiber.join(second)), numbers(3))
    })
  )

  scenario("are kept within the bound, whatever is read", () =>
    Effect.gen(function* () {
      const references = yield* publishAll(Array.from({ length: 40 }, () => "x".repeat(2_000)))
      const { broker, count } = yield* counted
      const bodies = yield* made(broker, 30_000)
      assert.lengthOf(yield* bodies.read(references, undefined), 40)
      assert.isAtMost(bodies.bytes, 30_000)
      assert.isAbove(bodies.bytes, 20_000)
      const before = count.batches
      yield* bodies.read(references.slice(-5), undefined)
      assert.strictEqual(count.batches, before)
    })
  )

  scenario("of one tenant are not forgotten for those of another", () =>
    Effect.gen(function* () {
      const own = yield* publishAll(numbers(3), {}, "small")
      const many = yield* publishAll(Array.from({ length: 40 }, () => "x".repeat(2_000)))
      const { broker, count } = yield* counted
      const bodies = yield* made(broker, 30_000)
      yield* bodies.read(own, undefined)
      yield* bodies.read(many, undefined)
      const before = count.batches
      assert.deepStrictEqual(bodiesOf(yield* bodies.read(own, undefined)), numbers(3))
      assert.strictEqual(count.batches, before)
    })
  )
})
