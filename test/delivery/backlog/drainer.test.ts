import { assert, describe, it } from "@effect/vitest"
import type { StoredMsg } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { Clock, Effect, FiberSet } from "effect"
import { BrokerError } from "../../../src/broker/broker-error.ts"
import { BacklogIndex } from "../../../src/delivery/backlog/backlog-index.ts"
import type { BacklogReaderOptions } from "../../../src/delivery/backlog/backlog-reader.ts"
import { BacklogReader } from "../../../src/delivery/backlog/backlog-reader.ts"
import type { BacklogRemoverOptions } from "../../../src/delivery/backlog/backlog-remover.ts"
import { BacklogRemover } from "../../../src/delivery/backlog/backlog-remover.ts"
import type { DrainerOptions } from "../../../src/delivery/backlog/drainer.ts"
import { Drainer } from "../../../src/delivery/backlog/drainer.ts"
import type { AckHandle } from "../../../src/delivery/execution/ack-handle.ts"
import {
  CompletedDeliveries,
  HistoryPosition
} from "../../../src/delivery/recovery/completed-deliveries.ts"
import { DirectDeliveryRegistry } from "../../../src/delivery/recovery/direct-delivery-registry.ts"
import type { LateEntry } from "../../../src/delivery/recovery/late-entries.ts"
import { RecordedAttempts } from "../../../src/delivery/recovery/partition-memory.ts"
import { PoisonGuard } from "../../../src/delivery/recovery/poison-guard.ts"
import { labelHeaders } from "../../../src/domain/backlog-message.ts"
import { deliveryHeaders, untried } from "../../../src/domain/delivery.ts"
import { eventually } from "../../kit/engine.ts"
import { makeLog } from "../../kit/log.ts"
import { MemoryBroker } from "../in-memory.ts"
import { deliveryOf } from "../made-deliveries.ts"

const key = "acme.hook"

/** A message of the backlog; a newer version wrote down its progress where it is unreadable. */
const message = (seq: number, isReadable: boolean): StoredMsg => {
  const header = headers()
  const delivery = {
    ...{ tenant: "acme", endpoint: "hook", event: `e${seq}`, eventSeq: seq, type: "t", round: "0" },
    ...{ eventAt: 0, began: 0, deadline: Number.MAX_SAFE_INTEGER, generation: "g", revision: 1 },
    ...{ content: {}, progress: untried }
  }
  for (const [name, value] of deliveryHeaders(delivery, `${seq}`)) header.set(name, value)
  if (!isReadable) header.set("petrel-progress", `{"tries":1}`)
  const subject = "petrel.backlog.0.acme.hook"
  return {
    ...{ subject, seq, header, data: new Uint8Array(), time: new Date(0), timestamp: "" },
    ...{ json: () => assert.fail(), string: () => "", lastSequence: 0, pending: 0 }
  }
}

/** A partition whose one backlog is in memory. Every delivery that is begun ends at once. */
const partition = Effect.fnUntraced(function* (
  unreadable: (seq: number) => boolean,
  options: Partial<DrainerOptions> = {},
  isDoubtful: () => boolean = () => false
) {
  const stored = new Map<number, StoredMsg>()
  const asked: Array<string> = []
  const begun: Array<number> = []
  let last = 0
  const store = (count: number) => {
    for (let n = 0; n < count; n++) stored.set(++last, message(last, !unreadable(last)))
  }
  const backlog: BacklogReaderOptions["backlog"] &
    BacklogRemoverOptions["backlog"] &
    DrainerOptions["backlog"] = {
    last: () => Effect.sync(() => stored.get(last) ?? null),
    read: (_, from, most) =>
      Effect.sync(() => {
        asked.push("read")
        const all = [...stored.values()].filter(({ seq }) => seq >= from)
        const some = all.slice(0, most)
        some.at(-1)?.header.set("Nats-Num-Pending", `${all.length - some.length}`)
        return some
      }),
    isEmpty: (_, from) =>
      Effect.sync(() => {
        asked.push("isEmpty")
        return [...stored.keys()].every((seq) => seq < from)
      }),
    purge: (_, below) =>
      Effect.sync(() => {
        asked.push(`purge ${below}`)
        for (const seq of stored.keys()) if (seq < below) stored.delete(seq)
        return { success: true, purged: 0 }
      }),
    remove: (seq) =>
      Effect.sync(() => {
        asked.push("remove")
        stored.delete(seq)
      }),
    list: Effect.sync(() => ({
      last,
      waiting: stored.size === 0 ? [] : [{ tenant: "acme", endpoint: "hook", count: stored.size }]
    }))
  }
  const run = yield* FiberSet.makeRuntime<never>()
  const index = new BacklogIndex(100)
  const memory = {
    ...{
      index: 0,
      stream: "BACKLOG",
      completed: new CompletedDeliveries(new HistoryPosition(0)),
      recordedAttempts: new RecordedAttempts()
    },
    ...{
      waiting: new Map(),
      unreadRecords: new Map<number, number>(),
      poisonGuard: new PoisonGuard(),
      directDeliveries: new DirectDeliveryRegistry()
    }
  }
  const broker = new MemoryBroker().service
  const writer = {
    ...{ isUnsure: () => false, opened: () => undefined },
    ...{ closed: () => undefined, purged: () => undefined, standing: () => undefined }
  }
  const drainer = new Drainer({
    hasOtherTenants: () => false,
    ...{ backlog, writer, index, memory, isKnown: () => false },
    noteOwner: (after) => Effect.succeed([{ owner: 9, after }]),
    findHandled: () => Effect.succeed(new Set()),
    reader: new BacklogReader({
      ...{ broker, backlog, memory, streams: { events: "EVENTS", queue: "QUEUE" } },
      bodies: { read: () => Effect.succeed([]) },
      forwards: () => []
    }),
    remover: new BacklogRemover({ ...{ broker, backlog, writer, memory, isDoubtful } }),
    lanes: {
      readBudget: () => 20,
      awaitCapacity: () => undefined,
      reserve: (_, bytes) => ({ bytes, giveBack: () => undefined })
    },
    left: () => undefined,
    begin: (_, handle) => {
      begun.push(handle.place.seq)
      run(handle.ack(Effect.void))
    },
    closed: () => false,
    streamTruncated: Effect.void,
    expire: () => Effect.void,
    clock: yield* Clock.Clock,
    isClockTrusted: () => true,
    dutyCycle: { until: 0 },
    run: (work) => run(work),
    ...options
  })
  return {
    drainer,
    index,
    memory,
    store,
    stored,
    asked,
    begun,
    left: () => [...stored.keys()],
    /** Finds what there is, and waits until the endpoint is not behind. */
    drained: Effect.andThen(
      drainer.find,
      eventually(
        Effect.sync(() => {
          drainer.tick()
          return index.hasBacklog(key)
        }),
        (hasBacklog) => !hasBacklog
      )
    )
  }
})

/** Marks a message as a former owner's. */
const byFormerOwner = (message: StoredMsg | undefined, owner = 7): void => {
  for (const [name, value] of labelHeaders({ stored: 1, owner, replaces: [] }))
    message?.header.set(name, value)
}

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

describe("a backlog with messages that are unreadable", () => {
  it.live("keeps them and nothing else, and its endpoint is not behind", () =>
    Effect.gen(function* () {
      const isUnreadable = (seq: number) => seq === 3 || seq === 70 || seq > 190
      const { begun, drained, index, left, store } = yield* partition(isUnreadable)
      store(200)
      yield* drained
      assert.deepStrictEqual(left(), [3, 70, ...range(191, 200)])
      assert.lengthOf(begun, 188)
      assert.strictEqual(index.unreadableCount(), 12)
    })
  )

  it.live("is gone through however many there are, and what comes behind them is delivered", () =>
    Effect.gen(function* () {
      const { begun, drained, left, store } = yield* partition((seq) => seq <= 3_000)
      store(3_010)
      yield* drained
      assert.deepStrictEqual(left(), range(1, 3_000))
      assert.deepStrictEqual(begun, range(3_001, 3_010))
    })
  )

  it.live("is found again for nothing, and read again only behind them", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      const isUnreadable = (seq: number) => seq <= 50
      const { asked, begun, drained, index, left, store } = yield* partition(isUnreadable)
      store(50)
      yield* drained
      const before = asked.length
      for (let n = 0; n < 5; n++) yield* drained
      assert.lengthOf(asked, before)
      store(5)
      yield* drained
      assert.deepStrictEqual(begun, range(51, 55))
      assert.deepStrictEqual(left(), range(1, 50))
      assert.strictEqual(index.unreadableCount(), 50)
      assert.strictEqual(log.count("unreadable"), 50)
    }).pipe(Effect.provide(log.layer))
  })

  it.live("is not full because of them, also where nothing is taken from it", () =>
    Effect.gen(function* () {
      const { drainer, index, store } = yield* partition((seq) => seq <= 150, {
        lanes: { readBudget: () => 0, awaitCapacity: () => undefined, reserve: () => assert.fail() }
      })
      store(200)
      yield* drainer.find
      assert.isTrue(drainer.isFull(key, deliveryOf()))
      yield* eventually(
        Effect.sync(() => {
          drainer.tick()
          return drainer.isFull(key, deliveryOf())
        }),
        (isFull) => !isFull
      )
      assert.isTrue(index.hasBacklog(key))
    })
  )
})

describe("memory for what is read of a backlog", () => {
  it.live("is reserved by the size of the bodies, not as if each read took all it may", () =>
    Effect.gen(function* () {
      const reserved: Array<number> = []
      const { begun, drained, store } = yield* partition(() => false, {
        lanes: {
          readBudget: () => 20,
          awaitCapacity: () => undefined,
          reserve: (_, bytes) => {
            reserved.push(bytes)
            return { bytes, giveBack: () => undefined }
          }
        }
      })
      store(200)
      yield* drained
      assert.lengthOf(begun, 200)
      assert.isAtMost(Math.max(...reserved), 64 * 1024)
    })
  )
})

describe("a backlog that has been read to its end", () => {
  /** Its deliveries stay in their lane until they are ended. */
  const held = Effect.gen(function* () {
    const handles: Array<AckHandle> = []
    const made = yield* partition(() => false, {
      begin: (_, handle) => void handles.push(handle)
    })
    /** Ends what is in the lane. */
    const end = Effect.suspend(() =>
      Effect.forEach(handles.splice(0), (handle) => handle.ack(Effect.void), { discard: true })
    )
    return {
      ...{ ...made, end },
      begun: eventually(
        Effect.sync(() => {
          made.drainer.tick()
          return handles.length
        }),
        (count) => count > 0
      )
    }
  })

  it.live("is not read again while its deliveries are in their lane", () =>
    Effect.gen(function* () {
      const { asked, begun, drained, drainer, end, left, store, stored } = yield* held
      store(6)
      // The last message of the stream is that of another endpoint.
      stored.delete(6)
      yield* drainer.find
      assert.strictEqual(yield* begun, 5)
      const before = [...asked]
      for (let look = 0; look < 20; look++) {
        drainer.tick()
        drainer.wake(key)
        yield* Effect.yieldNow
      }
      assert.deepStrictEqual(asked, before)
      yield* end
      yield* drained
      assert.deepStrictEqual(left(), [])
      assert.notInclude(asked.slice(before.length), "read")
    })
  )

  it.live("is read on where another owner has stored something since", () =>
    Effect.gen(function* () {
      const { begun, drained, drainer, end, left, store, stored } = yield* held
      store(5)
      yield* drainer.find
      assert.strictEqual(yield* begun, 5)
      store(1)
      byFormerOwner(stored.get(6))
      yield* end
      assert.strictEqual(yield* begun, 1)
      yield* end
      yield* drained
      assert.deepStrictEqual(left(), [])
    })
  )
})

describe("what a former owner stored late", () => {
  it.live("is begun again where its lane has given it back, though it is known since", () =>
    Effect.gen(function* () {
      const known = new Set<number>()
      const begun: Array<number> = []
      const { drained, drainer, left, store, stored } = yield* partition(() => false, {
        isKnown: ({ eventSeq }) => known.has(eventSeq),
        left: ({ eventSeq }) => void known.add(eventSeq),
        begin: (key, handle) => {
          begun.push(handle.place.seq)
          if (begun.length === 1) drainer.handBack(key, handle)
          else Effect.runSync(handle.ack(Effect.void))
        }
      })
      yield* drainer.find
      store(1)
      byFormerOwner(stored.get(1))
      yield* drained
      assert.deepStrictEqual(begun, [1, 1])
      assert.deepStrictEqual(left(), [])
    })
  )
})

/** Returns those late entries that are about an event. */
const ofEvent = (seq: number, entries: ReadonlyArray<LateEntry>): ReadonlySet<LateEntry> =>
  new Set(entries.filter(({ delivery }) => delivery.eventSeq === seq))

describe("what a former owner stored late, and this one has forgotten", () => {
  it.live("is not begun where the history has its end", () =>
    Effect.gen(function* () {
      const { begun, drained, drainer, left, store, stored } = yield* partition(() => false, {
        findHandled: (_, __, entries) => Effect.succeed(ofEvent(1, entries))
      })
      yield* drainer.find
      store(2)
      for (const message of stored.values()) byFormerOwner(message)
      yield* drained
      assert.deepStrictEqual(begun, [2])
      assert.deepStrictEqual(left(), [])
    })
  )

  it.live(
    "is not begun either where it was stored before this owner began, after the next one had",
    () =>
      Effect.gen(function* () {
        const asked: Array<number> = []
        const { begun, drained, left, store, stored } = yield* partition(() => false, {
          noteOwner: (after) =>
            Effect.succeed([
              { owner: 7, after: 0 },
              { owner: 8, after: 2 },
              { owner: 9, after }
            ]),
          findHandled: (_, __, entries) => {
            asked.push(...entries.map(({ delivery }) => delivery.eventSeq))
            return Effect.succeed(ofEvent(3, entries))
          }
        })
        store(4)
        for (const message of stored.values()) byFormerOwner(message, message.seq === 4 ? 8 : 7)
        yield* drained
        assert.deepStrictEqual(asked, [3])
        assert.deepStrictEqual(begun, [1, 2, 4])
        assert.deepStrictEqual(left(), [])
      })
  )

  it.live("waits where the broker does not tell", () =>
    Effect.gen(function* () {
      let asked = 0
      const { begun, drained, drainer, store, stored } = yield* partition(() => false, {
        findHandled: (_, __, entries) =>
          ++asked > 2
            ? Effect.succeed(ofEvent(1, entries))
            : Effect.fail(new BrokerError({ operation: "look", cause: "no answer" }))
      })
      yield* drainer.find
      store(1)
      byFormerOwner(stored.get(1))
      yield* drained
      assert.strictEqual(asked, 3)
      assert.deepStrictEqual(begun, [])
    })
  )
})

describe("what a former owner stored late, and the owner before this one delivered from", () => {
  it.live("is begun, though it is known since", () =>
    Effect.gen(function* () {
      const { begun, drained, drainer, memory, store, stored } = yield* partition(() => false, {
        isKnown: () => true
      })
      yield* drainer.find
      store(2)
      for (const message of stored.values()) byFormerOwner(message)
      memory.recordedAttempts.add({ seq: 2, at: 0 }, 0)
      yield* drained
      assert.deepStrictEqual(begun, [2])
      // It is gone for good.
      assert.strictEqual(memory.recordedAttempts.last.size, 0)
    })
  )

  it.live("is told to the next one by this one, too", () =>
    Effect.gen(function* () {
      const isBegun: Array<boolean> = []
      const place = { seq: 1, at: 0 }
      const { drained, drainer, memory, store, stored } = yield* partition(() => false, {
        begin: (_, handle) => {
          isBegun.push(memory.recordedAttempts.isBegun(place))
          Effect.runSync(handle.ack(Effect.void))
        }
      })
      yield* drainer.find
      store(1)
      byFormerOwner(stored.get(1))
      assert.isFalse(memory.recordedAttempts.isBegun(place))
      yield* drained
      assert.deepStrictEqual(isBegun, [true])
    })
  )
})

describe("a message that another one is about to replace", () => {
  it.live("is not read, also where that begins just before: both would be delivered", () =>
    Effect.gen(function* () {
      const replacing: Array<number> = []
      const { drainer, store } = yield* partition(() => false, {
        reader: {
          ...{ contents: () => assert.fail(), pages: () => assert.fail() },
          // The step has begun: what it does next takes time.
          look: (drain) =>
            Effect.sync(() => {
              drain.isUnseen = false
              drainer.replacing(key)
            }),
          next: (drain) =>
            Effect.sync(() => {
              replacing.push(drain.replacing)
              return { deliveries: [], passed: [], isAnything: true, readThrough: 0 }
            })
        }
      })
      store(1)
      yield* drainer.find
      yield* Effect.yieldNow
      drainer.kept(key)
      yield* eventually(
        Effect.sync(() => replacing.length),
        (count) => count > 0
      )
      assert.strictEqual(replacing[0], 0)
    })
  )
})

describe("a backlog whose stream may have lost what was stored last", () => {
  it.live("is not done with before what has ended there is purged", () =>
    Effect.gen(function* () {
      let isDoubtful = true
      const { asked, drained, drainer, left, store } = yield* partition(
        () => false,
        {},
        () => isDoubtful
      )
      store(5)
      yield* drainer.find
      yield* eventually(
        Effect.sync(() => asked),
        (asked) => asked.includes("isEmpty")
      )
      isDoubtful = false
      yield* drained
      assert.deepStrictEqual(left(), [])
    })
  )
})
