import { assert, describe, it } from "@effect/vitest"
import type { Msg } from "@nats-io/transport-node"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { makeInFlight } from "../../../src/broker/in-flight.ts"
import type { Outbound } from "../../../src/broker/outbound.ts"
import type { Pull } from "../../../src/broker/pull.ts"
import { StreamMessage } from "../../../src/broker/stream-message.ts"
import { SuccessLog } from "../../../src/delivery/execution/success-log.ts"
import type { DeliveryTask } from "../../../src/delivery/execution/task.ts"
import type { PartitionMemory } from "../../../src/delivery/recovery/partition-memory.ts"
import { QueueMessage } from "../../../src/delivery/source/queue-message.ts"
import { QueueSource } from "../../../src/delivery/source/queue-source.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import { deliveryHeaders } from "../../../src/domain/delivery.ts"
import type { Place } from "../../../src/domain/fact.ts"
import { placeName } from "../../../src/domain/fact.ts"
import type { DeadReason } from "../../../src/domain/outcome.ts"
import type { Facts } from "../../../src/history/facts.ts"
import { makeLog } from "../../kit/log.ts"
import { MemoryBroker } from "../in-memory.ts"
import {
  deliveryOf,
  fixedClock,
  key,
  live,
  makeMemory,
  NotedHandle,
  now,
  placeOf,
  recordOf
} from "../made-deliveries.ts"

/** A message as the consumer delivers it, and what it is answered. */
const messageOf = (seq: number, at = now) => {
  const answers: Array<string> = []
  const outbound = {
    ...{ life: {}, isClosed: false },
    publish: (_: string, _headers: string, _body: string, payload: string) => answers.push(payload)
  } as unknown as Outbound
  const reply = `$JS.ACK.QUEUE.deliver.1.${seq}.1.${at}000000.0`
  const subject = "petrel.deliver.0.acme.hook"
  const message = { subject, reply, data: new Uint8Array(2) } as unknown as Msg
  return { answers, message: new StreamMessage(message, outbound) }
}

const headersOf = (delivery: Delivery) => {
  const headers = new Map(deliveryHeaders(delivery, "1"))
  return (name: string) => headers.get(name)
}

const ack = ["+ACK"]
const nak = (ms: number) => [`-NAK {"delay":${ms * 1_000_000}}`]

/** The queue of an owner, and what entered a lane or was moved to the backlog. */
const makeQueue = Effect.fnUntraced(function* () {
  const broker = new MemoryBroker()
  const memory = makeMemory()
  const inFlight = yield* broker.run(makeInFlight<Broker | Facts>())
  const entered: Array<DeliveryTask> = []
  const moved: Array<string> = []
  const ended: Array<readonly [place: string, reason: DeadReason]> = []
  const forgotten: Array<string> = []
  const released: Array<string> = []
  const begun = new Set<string>()
  const state = { isDoubtful: false }
  const fence = { holds: () => true, stillOwner: Effect.succeed(true) }
  const source = new QueueSource({
    settlement: {
      ...{ isOpen: true, ready: Effect.void },
      conclude: () => Effect.void,
      waits: () => undefined,
      release: ({ place }) => Effect.sync(() => void released.push(placeName(place))),
      failed: () => Effect.void
    },
    interpreter: {
      readyFor: () => live,
      attempt: () => Effect.undefined,
      afterDefect: () => Effect.void,
      end: ({ place }, reason) => Effect.sync(() => void ended.push([placeName(place), reason]))
    },
    ...{ memory, worker: "w1", nextId: () => "1", maxBytes: 1_000, came: () => undefined },
    context: {
      sender: {
        ...{ transport: { start: () => assert.fail() }, clock: fixedClock },
        ...{ answers: () => "none", traces: false }
      },
      ...{ worker: "w1", inFlight, logsDeliveries: false },
      successes: new SuccessLog(broker.history.facts, fence, memory.completed),
      ...{
        reached: () => undefined,
        answered: () => undefined,
        succeeded: () => undefined,
        freed: () => undefined
      },
      attemptCancelled: () => undefined
    },
    lanes: { enter: (_, task) => void entered.push(task) },
    spill: {
      hasBegun: (place: Place) => begun.has(placeName(place)),
      forget: (place) => void forgotten.push(placeName(place)),
      hurry: (_, { place }) => Effect.sync(() => void moved.push(placeName(place))),
      move: (_, { place }) => Effect.sync(() => void moved.push(placeName(place))),
      resume: ({ place }) => Effect.sync(() => void moved.push(placeName(place)))
    },
    isDoubtful: () => state.isDoubtful,
    ...{ mayAttempt: () => true, stopping: () => false }
  })
  return {
    ...{ begun, ended, entered, forgotten, inFlight, memory, moved, released, source, state },
    /** Has the consumer deliver a message. Returns what it is answered. */
    take: (seq = 3, delivery = deliveryOf(), at = now) => {
      const { answers, message } = messageOf(seq, at)
      source.take(message, headersOf(delivery))
      return answers
    }
  }
})

describe("a message of the queue", () => {
  it.live("enters its endpoint's lane unanswered", () =>
    Effect.gen(function* () {
      const { entered, source, take } = yield* makeQueue()
      assert.deepStrictEqual(take(), [])
      assert.deepStrictEqual(entered[0]?.handle.delivery, deliveryOf())
      assert.strictEqual(entered[0]?.key, key)
      assert.strictEqual(source.size, 1)
    })
  )

  it.live("is ignored while the same is in flight", () =>
    Effect.gen(function* () {
      const { entered, take } = yield* makeQueue()
      take()
      assert.deepStrictEqual(take(), [])
      assert.lengthOf(entered, 1)
    })
  )

  it.live("is another where a truncated stream reuses its sequence", () =>
    Effect.gen(function* () {
      const { entered, take } = yield* makeQueue()
      take()
      take(3, deliveryOf({ eventSeq: 8 }), now + 1)
      assert.deepStrictEqual(
        entered.map(({ handle }) => handle.delivery.eventSeq),
        [7, 8]
      )
    })
  )

  it.live("goes to the backlog at once where it has ended, or its move was begun", () =>
    Effect.gen(function* () {
      const { begun, entered, inFlight, moved, source, take } = yield* makeQueue()
      begun.add(placeName(placeOf(4)))
      take(3, deliveryOf({ progress: { attempts: 1, ends: "permanent" } }))
      take(4)
      yield* inFlight.none
      assert.deepStrictEqual(moved, [placeName(placeOf(3)), placeName(placeOf(4))])
      assert.deepStrictEqual(entered, [])
      assert.strictEqual(source.size, 0)
    })
  )

  it.live("gets the progress of a direct attempt that failed after it was stored", () =>
    Effect.gen(function* () {
      const { entered, memory, take } = yield* makeQueue()
      const progress = { attempts: 1, nextAttemptAt: now + 5_000 }
      memory.directDeliveries.failed(deliveryOf(), progress)
      take()
      take(4, deliveryOf({ round: "r1" }))
      take(5, deliveryOf({ progress: { attempts: 2 } }))
      assert.deepStrictEqual(
        entered.map(({ handle }) => handle.delivery.progress),
        [progress, { attempts: 0 }, { attempts: 2 }]
      )
    })
  )

  it.live("is given back without a sign of poison when the partition is released", () =>
    Effect.gen(function* () {
      const { entered, memory, source, take } = yield* makeQueue()
      const answers = take()
      entered[0]?.giveBack()
      assert.deepStrictEqual(answers, nak(1))
      assert.isTrue(memory.poisonGuard.isCleared(3))
      assert.strictEqual(source.size, 0)
    })
  )
})

describe("a message that waits in its lane while its direct delivery begins", () => {
  const ways = [
    ["comes again while that is under way", "none yet", nak(1_000)],
    ["is acknowledged once that has ended", "delivered", ack],
    ["comes again with the progress of one that failed", "failed", nak(1_000)]
  ] as const

  const takeDirectly = ({ directDeliveries }: PartitionMemory, end: (typeof ways)[number][1]) => {
    const direct = directDeliveries.begin(deliveryOf())
    if (end === "delivered") directDeliveries.add(key, deliveryOf())
    else if (end === "failed") directDeliveries.failed(deliveryOf(), { attempts: 1 })
    if (end !== "none yet") directDeliveries.leave(direct)
  }

  for (const [what, end, answer] of ways)
    it.live(`is not attempted, and ${what}`, () =>
      Effect.gen(function* () {
        const { entered, memory, source, take } = yield* makeQueue()
        const answers = take()
        const handle = entered[0]?.handle
        assert.instanceOf(handle, QueueMessage)
        assert.isDefined(source.begin(handle))
        takeDirectly(memory, end)
        assert.isUndefined(source.begin(handle))
        const broker = new MemoryBroker()
        assert.isUndefined(yield* broker.run(source.decide(handle, () => true)))
        assert.deepStrictEqual(answers, answer)
      })
    )

  for (const [what, end, answer] of ways)
    it.live(`is not moved to the backlog, and ${what}`, () =>
      Effect.gen(function* () {
        const { entered, inFlight, memory, moved, source, take } = yield* makeQueue()
        const answers = take()
        const handle = entered[0]?.handle
        assert.instanceOf(handle, QueueMessage)
        takeDirectly(memory, end)
        source.defer(key, handle)
        yield* inFlight.none
        assert.deepStrictEqual([answers, moved, source.size], [answer, [], 0])
      })
    )

  it.live("is moved on where its move was begun", () =>
    Effect.gen(function* () {
      const { begun, entered, inFlight, memory, moved, source, take } = yield* makeQueue()
      take()
      const handle = entered[0]?.handle
      assert.instanceOf(handle, QueueMessage)
      begun.add(placeName(handle.place))
      takeDirectly(memory, "delivered")
      source.defer(key, handle)
      yield* inFlight.none
      assert.deepStrictEqual(moved, [placeName(handle.place)])
    })
  )
})

describe("a message that is redelivered after its delivery has ended", () => {
  it.live("is acknowledged again", () =>
    Effect.gen(function* () {
      const { entered, forgotten, memory, take } = yield* makeQueue()
      memory.completed.add(3, now)
      assert.deepStrictEqual(take(), ack)
      assert.deepStrictEqual(entered, [])
      assert.deepStrictEqual(forgotten, [placeName(placeOf(3))])
    })
  )

  it.live("comes back while it is unknown whether the stream was truncated", () =>
    Effect.gen(function* () {
      const { forgotten, memory, state, take } = yield* makeQueue()
      memory.completed.add(3, now)
      state.isDoubtful = true
      assert.deepStrictEqual(take(), nak(250))
      assert.deepStrictEqual(forgotten, [])
    })
  )

  it.live("is remembered for as long again where it comes back in doubt: the NAK may be lost", () =>
    Effect.gen(function* () {
      const { entered, memory, state, take } = yield* makeQueue()
      memory.completed.add(3, now)
      state.isDoubtful = true
      for (let waits = 0; waits < 6; waits++) {
        memory.completed.rotate()
        assert.deepStrictEqual(take(), nak(250))
      }
      state.isDoubtful = false
      assert.deepStrictEqual(take(), ack)
      assert.deepStrictEqual(entered, [])
    })
  )

  it.live("is delivered where it is another of the same sequence", () =>
    Effect.gen(function* () {
      const { entered, memory, take } = yield* makeQueue()
      memory.completed.add(3, now - 1)
      assert.deepStrictEqual(take(), [])
      assert.lengthOf(entered, 1)
    })
  )
})

describe("a message whose delivery was taken directly from its event", () => {
  it.live("is acknowledged where that has ended, unless the history may be truncated", () =>
    Effect.gen(function* () {
      const { memory, state, take } = yield* makeQueue()
      memory.directDeliveries.add(key, deliveryOf())
      assert.deepStrictEqual(take(), ack)
      state.isDoubtful = true
      assert.deepStrictEqual(take(4), nak(250))
    })
  )

  it.live("is delivered where a decision was made about it", () =>
    Effect.gen(function* () {
      const { entered, memory, take } = yield* makeQueue()
      memory.directDeliveries.add(key, deliveryOf())
      const record = recordOf({ _tag: "Nak", at: now })
      memory.waiting.set(3, { record, revision: 1, storedAt: now, isOutcomeRecorded: true })
      memory.unreadRecords.set(4, now)
      assert.deepStrictEqual([...take(3), ...take(4)], [])
      assert.lengthOf(entered, 2)
    })
  )

  it.live("is delivered where it has attempts, or is of another round", () =>
    Effect.gen(function* () {
      const { entered, memory, take } = yield* makeQueue()
      memory.directDeliveries.add(key, deliveryOf())
      take(3, deliveryOf({ progress: { attempts: 1 } }))
      take(4, deliveryOf({ round: "r1" }))
      assert.lengthOf(entered, 2)
    })
  )

  it.live("comes back while that is in flight, unless it is of another round", () =>
    Effect.gen(function* () {
      const { entered, memory, take } = yield* makeQueue()
      const inFlight = memory.directDeliveries.begin(deliveryOf())
      assert.deepStrictEqual(take(), nak(1_000))
      assert.deepStrictEqual(take(4, deliveryOf({ round: "r1" })), [])
      memory.directDeliveries.leave(inFlight)
      assert.deepStrictEqual(take(), [])
      assert.lengthOf(entered, 2)
    })
  )
})

describe("a message that this version cannot read", () => {
  it.live("comes back after pauses that grow, and is logged once", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      const { entered, inFlight, source } = yield* makeQueue()
      const first = messageOf(3)
      const second = messageOf(3)
      for (const { message } of [first, second]) source.take(message, () => undefined)
      yield* inFlight.none
      assert.deepStrictEqual([first.answers, second.answers], [nak(1_000), nak(2_000)])
      assert.deepStrictEqual(entered, [])
      assert.strictEqual(source.unreadableCount, 1)
      assert.strictEqual(log.count("unreadable"), 1)
    }).pipe(Effect.provide(log.layer))
  })
})

describe("a waiting message that was found in the stream", () => {
  it.live("is taken only while it is not in flight, and ignored until it is released", () =>
    Effect.gen(function* () {
      const { entered, source, take } = yield* makeQueue()
      assert.isTrue(source.takeWaiting(placeOf(3)))
      assert.isFalse(source.takeWaiting(placeOf(3)))
      take(3)
      assert.deepStrictEqual(entered, [])
      source.releaseWaiting(placeOf(3))
      take(3)
      assert.lengthOf(entered, 1)
      assert.isFalse(source.takeWaiting(placeOf(3)))
    })
  )

  it.live("is released or moved where its consumer left it behind, unless it is in flight", () =>
    Effect.gen(function* () {
      const { memory, moved, released, source, take } = yield* makeQueue()
      const broker = new MemoryBroker()
      const adopt = (seq: number, isSettled = false) =>
        broker.run(source.adopt(new NotedHandle(deliveryOf(), placeOf(seq)), isSettled))
      yield* adopt(3, true)
      yield* adopt(4)
      take(5)
      yield* adopt(5)
      const attempted = memory.directDeliveries.begin(deliveryOf())
      yield* adopt(6)
      memory.directDeliveries.leave(attempted)
      assert.deepStrictEqual([released, moved], [[placeName(placeOf(3))], [placeName(placeOf(4))]])
      assert.isTrue(source.takeWaiting(placeOf(4)))
    })
  )

  it.live("ends unless it is in flight, or may be in the backlog: then its move goes on", () =>
    Effect.gen(function* () {
      const { begun, ended, memory, moved, source, take } = yield* makeQueue()
      begun.add(placeName(placeOf(4)))
      take(5)
      memory.completed.add(6, now)
      const broker = new MemoryBroker()
      const handles = [3, 4, 5, 6].map((seq) => new NotedHandle(deliveryOf(), placeOf(seq)))
      yield* Effect.forEach(handles, (handle) =>
        broker.run(source.endWaiting(handle, "endpoint-disabled"))
      )
      assert.deepStrictEqual(ended, [[placeName(placeOf(3)), "endpoint-disabled"]])
      assert.deepStrictEqual(moved, [placeName(placeOf(4))])
      assert.deepStrictEqual(
        handles.map(({ answers }) => answers),
        [[], [], [1_000], []]
      )
      assert.strictEqual(source.size, 1)
    })
  )

  it.live("does not end while its direct delivery is in flight: that may have succeeded", () =>
    Effect.gen(function* () {
      const { ended, memory, source } = yield* makeQueue()
      const broker = new MemoryBroker()
      const attempted = memory.directDeliveries.begin(deliveryOf())
      const handle = new NotedHandle(deliveryOf(), placeOf(3))
      const end = broker.run(source.endWaiting(handle, "endpoint-removed"))
      yield* end
      assert.deepStrictEqual([ended, handle.answers], [[], [1_000]])
      memory.directDeliveries.leave(attempted)
      yield* end
      assert.deepStrictEqual(ended, [[placeName(placeOf(3)), "endpoint-removed"]])
    })
  )

  it.live("moves once it is wanted now, unless it does not wait or was attempted since", () =>
    Effect.gen(function* () {
      const { memory, moved, source, take } = yield* makeQueue()
      const attemptedAt = (lastAttemptAt: number) => ({
        ...{ revision: 1, storedAt: now, isOutcomeRecorded: true },
        record: recordOf(
          { _tag: "Nak", at: now + 60_000 },
          { progress: { attempts: 1, lastAttemptAt } }
        )
      })
      memory.waiting.set(3, attemptedAt(now - 1))
      memory.waiting.set(4, attemptedAt(now + 1))
      memory.unreadRecords.set(5, now)
      memory.waiting.set(7, attemptedAt(now - 1))
      take(7)
      const broker = new MemoryBroker()
      const hurry = (seq: number) =>
        broker.run(source.hurry(key, new NotedHandle(deliveryOf(), placeOf(seq)), now))
      const found = yield* Effect.forEach([3, 4, 5, 6, 7], hurry)
      assert.deepStrictEqual(found, ["left", "inFlight", "left", "inFlight", "inFlight"])
      assert.deepStrictEqual(moved, [placeName(placeOf(3)), placeName(placeOf(5))])
    })
  )
})

describe("the time in which the broker could redeliver", () => {
  it.effect("does not count while a request that was given up may still take messages", () =>
    Effect.gen(function* () {
      const { source } = yield* makeQueue()
      let pulls: Pick<Pull, "abandoned" | "asked"> = {}
      const pull = (options: Pull) =>
        Effect.sync(() => {
          pulls = options
        })
      const service = { ...new MemoryBroker().service, pull } as unknown as Broker["Service"]
      yield* Effect.provideService(source.pull(0, 5_000), Broker, service)
      assert.isFalse(source.hasPulled())
      pulls.asked?.()
      assert.isTrue(source.hasPulled())
      assert.isFalse(source.hasPulled())
      pulls.abandoned?.()
      assert.isFalse(source.hasPulled())
      // Whatever was sent before it has come to the broker now.
      pulls.asked?.()
      assert.isFalse(source.hasPulled())
      pulls.asked?.()
      assert.isTrue(source.hasPulled())
    })
  )
})
