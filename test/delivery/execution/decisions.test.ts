import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Broker } from "../../../src/broker/broker.ts"
import { makeGate } from "../../../src/broker/gate.ts"
import { Decisions } from "../../../src/delivery/execution/decisions.ts"
import { deliveredFact } from "../../../src/delivery/execution/delivery-fact.ts"
import { eraseRecord, writeRecord } from "../../../src/delivery/retry/retry-records.ts"
import { untried } from "../../../src/domain/delivery.ts"
import { MemoryBroker } from "../in-memory.ts"
import {
  deliveryOf,
  makeMemory,
  NotedHandle,
  now,
  outcomeOf,
  recordOf
} from "../made-deliveries.ts"

const nak = { _tag: "Nak", at: now + 5_000 } as const
const handle = new NotedHandle()
const { place } = handle
const { seq } = place
/** The same delivery in a message that reuses the sequence after the stream was truncated. */
const other = new NotedHandle(deliveryOf(), { ...place, at: place.at + 1 })

const key = `${place.stream}.${seq}.${place.at}`

/** The decisions of an owner that has begun just now. */
const makeDecisions = Effect.fnUntraced(function* (asOwner: Effect.Effect<void> = Effect.void) {
  const broker = new MemoryBroker()
  const memory = makeMemory()
  const services = yield* broker.run(Effect.context<Broker>())
  const gate = makeGate("refused", "stored again")
  const decisions = new Decisions(memory, gate, { asOwner }, services)
  return { broker, decisions, memory }
})

/** The same, where a former owner stored a decision about the message. */
const afterOther = Effect.fnUntraced(function* (record = recordOf(nak)) {
  const made = yield* makeDecisions()
  yield* made.broker.run(writeRecord(place, record, now))
  made.memory.unreadRecords.set(seq, place.at)
  return made
})

const decided = { decision: nak, decidedAt: now, progress: { attempts: 1 } }
const later = { ...decided, decision: { _tag: "Nak", at: now + 60_000 } } as const

const stored = (broker: MemoryBroker): unknown =>
  JSON.parse(broker.values.get(key)?.string() ?? "null")

describe("a decision", () => {
  it.effect("is stored, and recalled from memory", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* makeDecisions()
      assert.isFalse(decisions.has(place))
      yield* decisions.store(handle, decided)
      assert.isTrue(decisions.has(place))
      assert.strictEqual(decisions.count, 1)
      const recalled = yield* broker.run(decisions.recall(handle))
      assert.deepStrictEqual(recalled, {
        record: recordOf(nak),
        revision: 1,
        storedAt: now,
        isOutcomeRecorded: false
      })
      assert.strictEqual(broker.reads, 0)
      assert.deepStrictEqual(stored(broker), recordOf(nak))
    })
  )

  it.effect("is not stored by who lost the partition while the broker did not answer", () =>
    Effect.gen(function* () {
      let isOwner = true
      const asOwner = Effect.suspend(() => (isOwner ? Effect.void : Effect.interrupt))
      const { broker, decisions } = yield* makeDecisions(asOwner)
      broker.refusals = 1
      const storing = yield* Effect.forkChild(decisions.store(handle, decided), {
        startImmediately: true
      })
      isOwner = false
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(storing)))
      assert.deepStrictEqual(broker.published, [])
      assert.isFalse(decisions.has(place))
    })
  )

  it.effect("replaces what a former owner sent before it stood still", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* makeDecisions()
      yield* broker.run(writeRecord(place, recordOf({ _tag: "Nak", at: now + 9_000 }), now))
      yield* decisions.store(handle, decided)
      assert.deepStrictEqual(stored(broker), recordOf(nak))
      yield* decisions.store(handle, later)
      assert.strictEqual(broker.published.length, 3)
      assert.strictEqual(broker.reads, 1)
    })
  )

  it.effect("is not replaced by what a former owner sent before it stood still", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* makeDecisions()
      // The owner of before stands still after it was found to be the owner, until it is not.
      let isOwner = true
      const asOwner = Effect.suspend(() => (isOwner ? Effect.void : Effect.interrupt))
      const services = yield* broker.run(Effect.context<Broker>())
      const former = new Decisions(makeMemory(), makeGate("", ""), { asOwner }, services)
      broker.beforeWrite = Effect.gen(function* () {
        isOwner = false
        yield* decisions.store(handle, later)
      })
      const storing = yield* Effect.exit(former.store(handle, decided))
      assert.isTrue(Exit.hasInterrupts(storing))
      assert.deepStrictEqual(stored(broker), recordOf(later.decision))
    })
  )

  it.effect("is stored again over itself where its first try had no answer", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* makeDecisions()
      broker.lostAnswers = 1
      const storing = yield* Effect.forkChild(decisions.store(handle, decided), {
        startImmediately: true
      })
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(storing)).revision, 2)
      yield* decisions.store(handle, later)
      assert.strictEqual(broker.published.length, 3)
      assert.deepStrictEqual(stored(broker), recordOf(later.decision))
    })
  )

  it.effect("goes over what a former owner decided and this one has recalled", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* afterOther()
      yield* broker.run(decisions.recall(handle))
      yield* decisions.store(handle, later)
      assert.deepStrictEqual(stored(broker), recordOf(later.decision))
      assert.strictEqual(broker.published.length, 2)
      assert.strictEqual(broker.reads, 1)
    })
  )

  it.effect("of a former owner is read once", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* afterOther()
      assert.isTrue(decisions.has(place))
      assert.isUndefined(decisions.inMemory(handle))
      const expected = {
        record: recordOf(nak),
        revision: 1,
        storedAt: now,
        isOutcomeRecorded: false
      }
      assert.deepStrictEqual(yield* broker.run(decisions.recall(handle)), expected)
      yield* broker.run(decisions.recall(handle))
      assert.strictEqual(broker.reads, 1)
      assert.strictEqual(decisions.count, 1)
    })
  )

  it.effect("of a former owner has its outcome in the history where that was read there", () =>
    Effect.gen(function* () {
      const { broker, decisions, memory } = yield* afterOther()
      memory.recordedAttempts.add(place, 1)
      const recalled = yield* broker.run(decisions.recall(handle))
      assert.deepStrictEqual(recalled, {
        record: recordOf(nak),
        revision: 1,
        storedAt: now,
        isOutcomeRecorded: true
      })
    })
  )

  it.effect("drops the outcome once the history holds it", () =>
    Effect.gen(function* () {
      const { decisions } = yield* makeDecisions()
      const fact = deliveredFact(handle, untried, outcomeOf("retry"), "w1")
      const { record } = yield* decisions.store(handle, { ...decided, outcome: { fact, id: "1" } })
      assert.strictEqual(record.outcome?.id, "1")
      decisions.outcomeRecorded(place, record)
      const expected = {
        record: recordOf(nak),
        revision: 1,
        storedAt: now,
        isOutcomeRecorded: true
      }
      assert.deepStrictEqual(decisions.inMemory(handle), expected)
    })
  )

  it.effect("about another message of the same sequence does not count", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* makeDecisions()
      yield* decisions.store(handle, decided)
      assert.isUndefined(decisions.inMemory(other))
      assert.isUndefined(yield* broker.run(decisions.recall(other)))
      assert.isFalse(decisions.has(place))
    })
  )

  it.effect("about another message of the same sequence does not count where it is stored", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* afterOther()
      assert.isUndefined(yield* broker.run(decisions.recall(other)))
      assert.isFalse(decisions.has(place))
    })
  )
})

describe("a message that was released", () => {
  it.effect("is known by what is left of its record", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* afterOther()
      yield* broker.run(eraseRecord(place))
      assert.strictEqual(yield* broker.run(decisions.recall(handle)), "released")
      assert.isFalse(decisions.has(place))
    })
  )

  it.effect("is not what reuses its sequence", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* afterOther()
      yield* broker.run(eraseRecord(place))
      assert.isUndefined(yield* broker.run(decisions.recall(other)))
    })
  )

  it.effect("has its record erased where it has one, or may have one", () =>
    Effect.gen(function* () {
      for (const made of [yield* makeDecisions(), yield* afterOther()]) {
        const { broker, decisions } = made
        if (!decisions.has(place)) yield* decisions.store(handle, decided)
        const erase = decisions.forget(handle)
        assert.isFalse(decisions.has(place))
        assert.strictEqual(broker.values.get(key)?.operation, "PUT")
        yield* erase
        assert.strictEqual(broker.values.get(key)?.operation, "PURGE")
      }
    })
  )

  it.effect("costs no request where it never had one", () =>
    Effect.gen(function* () {
      const { broker, decisions } = yield* makeDecisions()
      assert.strictEqual(decisions.forget(handle), Effect.void)
      assert.deepStrictEqual(broker.published, [])
    })
  )
})
