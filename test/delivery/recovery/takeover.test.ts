import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import { noteOwner } from "../../../src/delivery/recovery/backlog-owners.ts"
import { HistoryPosition } from "../../../src/delivery/recovery/completed-deliveries.ts"
import type { StreamMemory } from "../../../src/delivery/recovery/partition-memory.ts"
import { readKnownFact, takeOver, writeWatermark } from "../../../src/delivery/recovery/takeover.ts"
import { readRecord, writeRecord } from "../../../src/delivery/retry/retry-records.ts"
import {
  labelHeaders,
  originStreams,
  referencesHeader
} from "../../../src/domain/backlog-message.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import { deliveryHeaders, untried } from "../../../src/domain/delivery.ts"
import type { Fact, FactKind, Place } from "../../../src/domain/fact.ts"
import { placeName } from "../../../src/domain/fact.ts"
import { partitionOf } from "../../../src/domain/names.ts"
import type { RetryRecord } from "../../../src/domain/retry-record.ts"
import { Facts } from "../../../src/history/facts.ts"
import { alteredBroker } from "../../kit/altered-broker.ts"
import { storedWatermark } from "../../kit/consistency.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const eventAt = Date.UTC(2026, 2, 1)

type Kept = "backlog" | "deliveries"

/** The place of a message of the first partition. */
const placeOf = (seq: number, kept: Kept) =>
  Effect.gen(function* () {
    const { names, readMessage } = yield* Broker
    const stream = names[kept](0)
    const message = yield* readMessage("look at a message", stream, { seq })
    return { stream, seq, at: message?.time.getTime() ?? 0 }
  })

/** Tells of a message of the first partition. */
const tell = (kind: FactKind, from: Place, attempt = 1, round = `of ${from.seq}`) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const { seq } = from
    const about = { tenant: "acme", endpoint: "hook", eventSeq: 1, eventAt, round }
    const fact: Fact = { v: 1, kind, at: 0, ...about, attempt, from }
    return yield* facts.append(fact, `${kind}.${seq}.${attempt}`)
  })

const made: Delivery = {
  ...{ tenant: "acme", endpoint: "hook", event: "a", eventSeq: 1, eventAt, type: "paid" },
  ...{ round: "0", began: 0, deadline: 0, generation: "g", revision: 1 },
  ...{ content: {}, progress: untried }
}

/** Stores messages in the first partition. Returns their places. */
const store = (count: number, kept: Kept = "deliveries") =>
  Effect.gen(function* () {
    const { names, publisher } = yield* natsClients
    const { backlog, delivery: queue } = names.subjects
    const subject = (kept === "backlog" ? backlog : queue)(0, "acme", "hook")
    const acks = yield* Effect.forEach(Array.from({ length: count }), () =>
      publisher.publish(subject, "{}", deliveryHeaders(made, crypto.randomUUID()))
    )
    return yield* Effect.forEach(acks, ({ seq }) => placeOf(seq, kept))
  })

/** Stores in a backlog what an owner has moved from a queue. */
const move = Effect.fnUntraced(function* (place: Place, owner: number) {
  const { names, publisher } = yield* natsClients
  const moved = { ...made, round: `of ${place.seq}`, origin: placeName(place) }
  const label = { stored: place.seq, owner, replaces: [] }
  const headers = [...deliveryHeaders(moved, crypto.randomUUID()), ...labelHeaders(label)]
  return yield* publisher.publish(names.subjects.backlog(0, "acme", "hook"), "{}", headers)
})

const record = (place: Place) =>
  Effect.gen(function* () {
    const value: RetryRecord = {
      v: 1,
      progress: { attempts: 1 },
      decision: { _tag: "Dead", reason: "permanent" },
      decidedAt: Date.now()
    }
    yield* writeRecord(place, value, Date.now() + 60_000)
  })

const memoryOf = (layout: Parameters<typeof takeOver>[2]) =>
  Effect.map(takeOver([0], new HistoryPosition(0), layout), (memories) => nth(memories, 0))

const unchanged = { partitions: 2, historyAtChange: 0 }
const firstMemory = Effect.map(takeOver([0, 1], new HistoryPosition(0), unchanged), (memories) =>
  nth(memories, 0)
)

/** Returns which of these messages have ended, as far as an owner knows. */
const endedOf = ({ completed }: StreamMemory, places: ReadonlyArray<Place>) =>
  places.map(({ at, seq }) => completed.has(seq, at))

describe.concurrent("a new owner", () => {
  scenario("knows from the history which messages have ended, and how often others failed", () =>
    Effect.gen(function* () {
      const places = yield* store(5)
      const [first, second, third, fourth, fifth] = places as [Place, Place, Place, Place, Place]
      yield* tell("delivered", first)
      yield* tell("delivered-late", fifth)
      yield* tell("dead-lettered", second)
      yield* tell("attempt-failed", third, 1)
      yield* tell("attempt-failed", third, 2)
      const memory = yield* firstMemory
      assert.deepStrictEqual(endedOf(memory, places), [true, true, false, false, true])
      const { recordedAttempts } = memory
      assert.isTrue(recordedAttempts.has(third, 2))
      assert.isFalse(recordedAttempts.has(fourth, 2))
      assert.isFalse(recordedAttempts.has(third, 1))
      // In a stream that lost its tail another message may have the sequence.
      assert.isFalse(recordedAttempts.has({ ...third, at: third.at + 1 }, 2))
    })
  )

  scenario("knows what was left by way of a message that is gone", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.deliveries(0)
      const places = yield* store(6)
      const [failed, between, elsewhere, again, before, after] = places as [
        ...[Place, Place, Place, Place, Place, Place]
      ]
      yield* tell("attempt-failed", failed, 1, "0")
      yield* tell("attempt-failed", again, 1, "another round")
      yield* ask("remove", () => jsm.streams.deleteMessage(stream, between.seq))
      yield* tell("delivered", elsewhere, 2, "0")
      yield* tell("attempt-failed", before, 1, "a third one")
      yield* tell("attempt-failed", after, 2, "a third one")
      const ended = endedOf(yield* firstMemory, places)
      assert.deepStrictEqual(ended, [true, false, true, false, true, false])
    })
  )

  scenario("knows what was left by way of a message that is gone, for its backlog", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      const queued = yield* store(2)
      yield* tell("attempt-failed", nth(queued, 0), 1, "0")
      yield* tell("attempt-failed", nth(queued, 1), 2, "another round")
      const subject = names.subjects.backlog(0, "acme", "hook")
      for (const round of ["0", "another round"]) {
        const moved = { ...made, round, progress: { attempts: 1 } }
        yield* publisher.publish(subject, "{}", deliveryHeaders(moved, crypto.randomUUID()))
      }
      assert.deepStrictEqual(endedOf(yield* firstMemory, queued), [true, false])
    })
  )

  scenario("takes no message that was stored late for a proof that its delivery was moved", () =>
    Effect.gen(function* () {
      const queued = yield* store(2)
      yield* noteOwner(0, { owner: 1, after: 0 })
      const { seq } = yield* move(nth(queued, 0), 1)
      yield* noteOwner(0, { owner: 2, after: seq })
      // The first owner stood still when it sent this.
      yield* move(nth(queued, 1), 1)
      assert.deepStrictEqual(endedOf(yield* firstMemory, queued), [true, false])
    })
  )

  scenario("takes what is stored while it reads for stored late, and begins before that", () =>
    Effect.gen(function* () {
      const queued = yield* store(2)
      yield* noteOwner(0, { owner: 1, after: 0 })
      const { seq } = yield* move(nth(queued, 0), 1)
      const stored = move(nth(queued, 1), 1).pipe(
        Effect.provideService(Broker, yield* Broker),
        Effect.orDie
      )
      const broker = yield* alteredBroker(({ names, streamInfo }) => ({
        streamInfo: (operation, stream, options) =>
          Effect.tap(streamInfo(operation, stream, options), () =>
            stream === names.backlog(0) ? stored : Effect.void
          )
      }))
      const memory = yield* Effect.provideService(firstMemory, Broker, broker)
      assert.deepStrictEqual(endedOf(memory, queued), [true, false])
      assert.strictEqual(memory.backlogEnd, seq)
    })
  )

  scenario("knows what ended in its queue before the endpoint got another partition", () =>
    Effect.gen(function* () {
      const places = yield* store(2)
      const { seq } = yield* tell("delivered", nth(places, 0))
      yield* tell("delivered", nth(places, 1))
      const partitions = [3, 4, 5].find((count) => partitionOf("acme", "hook", count) !== 0) ?? 0
      const memory = yield* memoryOf({ partitions, historyAtChange: seq })
      assert.deepStrictEqual(endedOf(memory, places), [true, false])
    })
  )

  scenario("reads the history from the lowest of its partitions' floors", () =>
    Effect.gen(function* () {
      const places = yield* store(3)
      yield* tell("delivered", nth(places, 0))
      const { seq } = yield* tell("delivered", nth(places, 1))
      yield* tell("delivered", nth(places, 2))
      yield* writeWatermark(0, yield* readKnownFact(seq + 1))
      yield* writeWatermark(1, yield* readKnownFact(seq))
      assert.deepStrictEqual(endedOf(yield* firstMemory, places), [false, false, true])
    })
  )

  scenario("reads all since its floor where that lies beyond the end of the history", () =>
    Effect.gen(function* () {
      const places = yield* store(1)
      const { seq } = yield* tell("delivered", nth(places, 0))
      const { at } = yield* readKnownFact(seq)
      // As it was before the history lost its end: beyond it, and at a sequence that was given again.
      for (const lost of [
        { seq: seq + 10, at },
        { seq, at: at - 1 }
      ]) {
        yield* writeWatermark(0, lost)
        yield* writeWatermark(1, lost)
        assert.deepStrictEqual(endedOf(yield* firstMemory, places), [true])
      }
      yield* Effect.forEach([0, 1], (partition) => writeWatermark(partition, { seq, at }))
      assert.deepStrictEqual(endedOf(yield* firstMemory, places), [false])
    })
  )

  scenario("removes what is left of a delivery that its predecessor had ended", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.deliveries(0)
      const [first, second] = (yield* store(3)) as [Place, Place, Place]
      yield* Effect.forEach([first, second], record)
      yield* tell("dead-lettered", first)
      yield* tell("attempt-failed", second)
      const { unreadRecords } = yield* firstMemory
      assert.deepStrictEqual([...unreadRecords], [[second.seq, second.at]])
      assert.isUndefined(yield* readRecord(first))
      assert.isDefined(yield* readRecord(second))
      const { state } = yield* ask("look", () => jsm.streams.info(stream))
      assert.deepStrictEqual([state.first_seq, state.messages], [2, 2])
    })
  )

  scenario("removes from a backlog what has ended, wherever it lies, and nothing else", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.backlog(0)
      const places = yield* store(7, "backlog")
      const at = (seq: number) => nth(places, seq - 1)
      yield* ask("remove", () => jsm.streams.deleteMessage(stream, 2))
      for (const seq of [2, 3, 5, 6]) yield* tell("delivered", at(seq))
      yield* tell("attempt-failed", at(4))
      // It had the sequence before the stream lost its end.
      yield* tell("dead-lettered", { ...at(7), at: at(7).at - 1 })
      yield* record(at(5))
      const { backlog } = yield* firstMemory
      const { state } = yield* ask("look", () =>
        jsm.streams.info(stream, { deleted_details: true })
      )
      assert.deepStrictEqual([state.first_seq, state.last_seq], [1, 7])
      assert.deepStrictEqual(state.deleted, [2, 3, 5, 6])
      assert.deepStrictEqual([...backlog.unreadRecords], [])
      // A replica that is behind may still return one.
      assert.deepStrictEqual(endedOf(backlog, [at(3)]), [true])
    })
  )

  for (const [writer, what, left] of [
    [2, "what it has replaced", 0],
    [1, "not what it was to replace, where it was stored late", 1]
  ] as const)
    scenario(`removes a message whose deliveries have ended, and ${what}`, () =>
      Effect.gen(function* () {
        const { ask, jsm, names, publisher } = yield* natsClients
        for (const owner of [1, 2]) yield* noteOwner(0, { owner, after: owner - 1 })
        const [waits] = (yield* store(1, "backlog")) as [Place]
        const subject = names.subjects.backlog(0, "acme", "hook")
        const label = labelHeaders({ stored: 1, owner: writer, replaces: [waits.seq] })
        const reference = { ...made, deadline: Date.now() + 60_000, bytes: 2 }
        const packed = referencesHeader([reference], originStreams(names, 0))
        const { seq } = yield* publisher.publish(subject, "", [packed, ...label])
        yield* tell("delivered", { ...(yield* placeOf(seq, "backlog")), entry: 1 })
        yield* firstMemory
        const { state } = yield* ask("look", () =>
          jsm.streams.info(names.backlog(0), { deleted_details: true })
        )
        assert.deepStrictEqual([state.messages, state.last_seq], [left, 2])
      })
    )

  scenario("removes the record of one that has left its stream", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.deliveries(0)
      const places = yield* store(2)
      yield* Effect.forEach(places, record)
      for (const place of places) {
        yield* tell("delivered", place)
        yield* ask("remove", () => jsm.streams.deleteMessage(stream, place.seq))
      }
      assert.deepStrictEqual([...(yield* firstMemory).unreadRecords], [])
      assert.isUndefined(yield* readRecord(nth(places, 1)))
    })
  )

  scenario("takes no message of a stream that was made anew for one of the old stream", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const stream = names.deliveries(0)
      const old = yield* store(2)
      yield* tell("delivered", nth(old, 0))
      yield* tell("delivered", nth(old, 1))
      const { config } = yield* ask("look", () => jsm.streams.info(stream))
      yield* ask("remove", () => jsm.streams.delete(stream))
      yield* ask("make anew", () => jsm.streams.add(config))
      const made = yield* store(1)
      assert.strictEqual(nth(made, 0).seq, nth(old, 0).seq)
      assert.deepStrictEqual(endedOf(yield* firstMemory, made), [false])
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
        const floors = Effect.forEach([0, 1], storedWatermark)
        yield* eventually(floors, (both) =>
          both.every((floor) => floor === facts.facts.length + facts.changes.length)
        )
      }),
    { ackWait: 300 }
  )
})
