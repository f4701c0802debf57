import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import { HistoryPosition } from "../../../src/delivery/recovery/completed-deliveries.ts"
import { readKnownFact, takeOver, writeWatermark } from "../../../src/delivery/recovery/takeover.ts"
import { readRecord, writeRecord } from "../../../src/delivery/retry/retry-records.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import { deliveryHeaders, untried } from "../../../src/domain/delivery.ts"
import type { Fact, FactKind } from "../../../src/domain/fact.ts"
import type { RetryRecord } from "../../../src/domain/retry-record.ts"
import { Facts } from "../../../src/history/facts.ts"
import { storedFloor } from "../../kit/books.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const eventAt = Date.UTC(2026, 2, 1)

type Kept = "backlog" | "deliveries"

/** Tells of a message of the first partition. */
const tell = (kind: FactKind, seq: number, attempt = 1, kept: Kept = "deliveries") =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const facts = yield* Facts
    const from = { stream: names[kept](0), seq, at: 0 }
    const about = { tenant: "acme", endpoint: "hook", eventSeq: 1, eventAt }
    const fact: Fact = { v: 1, kind, at: 0, ...about, attempt, from }
    return yield* facts.append(fact, `${kind}.${seq}.${attempt}`)
  })

/** Stores messages in the first partition and gives their sequences. */
const store = (count: number, kept: Kept = "deliveries") =>
  Effect.gen(function* () {
    const { names, publisher } = yield* natsClients
    const { backlog, delivery: queue } = names.subjects
    const subject = (kept === "backlog" ? backlog : queue)(0, "acme", "hook")
    const delivery: Delivery = {
      ...{ tenant: "acme", endpoint: "hook", event: "a", eventSeq: 1, eventAt, type: "paid" },
      ...{ round: "0", began: 0, deadline: 0, generation: "g", revision: 1 },
      ...{ content: {}, progress: untried }
    }
    const acks = yield* Effect.forEach(Array.from({ length: count }), () =>
      publisher.publish(subject, "{}", deliveryHeaders(delivery, crypto.randomUUID()))
    )
    return acks.map(({ seq }) => seq)
  })

const record = (seq: number, kept: Kept = "deliveries") =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const value: RetryRecord = {
      v: 1,
      eventSeq: 1,
      eventAt,
      tenant: "acme",
      endpoint: "hook",
      round: "0",
      progress: { attempts: 1 },
      decision: { _tag: "Dead", reason: "permanent" },
      decidedAt: Date.now()
    }
    yield* writeRecord(names[kept](0), seq, value, Date.now() + 60_000)
  })

const firstMemory = Effect.map(takeOver([0, 1], new HistoryPosition(0), 2), (memories) =>
  nth(memories, 0)
)

describe.concurrent("a new owner", () => {
  scenario("knows from the history which messages have ended, and how often others failed", () =>
    Effect.gen(function* () {
      yield* store(5)
      yield* tell("delivered", 1)
      yield* tell("delivered-late", 5)
      yield* tell("dead-lettered", 2)
      yield* tell("attempt-failed", 3, 1)
      yield* tell("attempt-failed", 3, 2)
      const { completed, recordedAttempts } = yield* firstMemory
      assert.deepStrictEqual(
        [1, 2, 3, 4, 5].map((seq) => completed.mayHave(seq)),
        [true, true, false, false, true]
      )
      const about = { eventSeq: 1, eventAt, round: "0", progress: { attempts: 2 } }
      assert.isTrue(recordedAttempts.has(3, about))
      assert.isFalse(recordedAttempts.has(4, about))
      assert.isFalse(recordedAttempts.has(3, { ...about, progress: { attempts: 1 } }))
      // In a stream that lost its tail another message may have the sequence.
      assert.isFalse(recordedAttempts.has(3, { ...about, round: "d1" }))
      assert.isFalse(recordedAttempts.has(3, { ...about, eventSeq: 2 }))
      assert.isFalse(recordedAttempts.has(3, { ...about, eventAt: eventAt + 1 }))
    })
  )

  scenario("reads the history from the lowest of its partitions' floors", () =>
    Effect.gen(function* () {
      yield* store(3)
      yield* tell("delivered", 1)
      const { seq } = yield* tell("delivered", 2)
      yield* tell("delivered", 3)
      yield* writeWatermark(0, yield* readKnownFact(seq + 1))
      yield* writeWatermark(1, yield* readKnownFact(seq))
      const { completed } = yield* firstMemory
      assert.deepStrictEqual(
        [1, 2, 3].map((one) => completed.mayHave(one)),
        [false, false, true]
      )
    })
  )

  scenario("reads all since its floor where that lies beyond the end of the history", () =>
    Effect.gen(function* () {
      yield* store(3)
      const { seq } = yield* tell("delivered", 1)
      const { at } = yield* readKnownFact(seq)
      // As it was before the history lost its end: beyond it, and at a sequence that was given again.
      for (const lost of [
        { seq: seq + 10, at },
        { seq, at: at - 1 }
      ]) {
        yield* writeWatermark(0, lost)
        yield* writeWatermark(1, lost)
        assert.isTrue((yield* firstMemory).completed.mayHave(1))
      }
      yield* Effect.forEach([0, 1], (partition) => writeWatermark(partition, { seq, at }))
      assert.isFalse((yield* firstMemory).completed.mayHave(1))
    })
  )

  scenario("removes what is left of a delivery that its predecessor had ended", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.deliveries(0)
      yield* store(3)
      yield* Effect.forEach([1, 2], (seq) => record(seq))
      yield* tell("dead-lettered", 1)
      yield* tell("attempt-failed", 2)
      const { unreadRecords } = yield* firstMemory
      assert.deepStrictEqual([...unreadRecords], [2])
      assert.deepStrictEqual(
        yield* Effect.forEach([1, 2], (seq) =>
          Effect.map(readRecord(stream, seq), (record) => record !== undefined)
        ),
        [false, true]
      )
      const { state } = yield* ask("look", () => jsm.streams.info(stream))
      assert.deepStrictEqual([state.first_seq, state.messages], [2, 2])
    })
  )

  scenario("removes from a backlog what has ended, wherever it lies, and nothing else", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.backlog(0)
      yield* store(7, "backlog")
      yield* ask("remove", () => jsm.streams.deleteMessage(stream, 2))
      for (const seq of [2, 3, 5, 6]) yield* tell("delivered", seq, 1, "backlog")
      yield* tell("attempt-failed", 4, 1, "backlog")
      yield* record(5, "backlog")
      const { backlog } = yield* firstMemory
      const { state } = yield* ask("look", () =>
        jsm.streams.info(stream, { deleted_details: true })
      )
      assert.deepStrictEqual([state.first_seq, state.last_seq], [1, 7])
      assert.deepStrictEqual(state.deleted, [2, 3, 5, 6])
      assert.deepStrictEqual([...backlog.unreadRecords], [])
      // A replica that is behind may still return one.
      assert.isTrue(backlog.completed.mayHave(3))
    })
  )

  scenario("removes the record of one that has left its stream", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.deliveries(0)
      yield* store(2)
      yield* Effect.forEach([1, 2], (seq) => record(seq))
      for (const seq of [1, 2]) {
        yield* tell("delivered", seq)
        yield* ask("remove", () => jsm.streams.deleteMessage(stream, seq))
      }
      assert.deepStrictEqual([...(yield* firstMemory).unreadRecords], [])
      assert.isUndefined(yield* readRecord(stream, 2))
    })
  )

  scenario("takes no message of a stream that was made anew for one of the old stream", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.deliveries(0)
      yield* store(2)
      yield* tell("delivered", 1)
      yield* tell("delivered", 2)
      const { config } = yield* ask("look", () => jsm.streams.info(stream))
      yield* ask("remove", () => jsm.streams.delete(stream))
      yield* ask("make anew", () => jsm.streams.add(config))
      yield* store(1)
      const { completed } = yield* firstMemory
      assert.isFalse(completed.mayHave(1))
      assert.isFalse(completed.mayHave(2))
    })
  )
})

describe("the floors of the history", () => {
  scenario(
    "rise in all partitions, though only one has anything to tell",
    () =>
      Effect.gen(function* () {
        const { url } = yield* receiver()
        yield* endpoint({ url })
        const facts = yield* history
        yield* worker()
        yield* publish("invoice.paid")
        yield* facts.count("delivered", 1)
        const floors = Effect.forEach([0, 1], storedFloor)
        yield* eventually(floors, (both) =>
          both.every((floor) => floor === facts.facts.length + facts.changes.length)
        )
      }),
    { ackWait: 300 }
  )
})
