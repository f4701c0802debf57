import { assert, describe, it } from "@effect/vitest"
import type { StoredMsg } from "@nats-io/jetstream"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { BacklogReader } from "../../../src/delivery/backlog/backlog-reader.ts"
import { Drain } from "../../../src/delivery/backlog/drain.ts"
import { Expiry } from "../../../src/delivery/backlog/expiry.ts"
import {
  CompletedDeliveries,
  HistoryPosition
} from "../../../src/delivery/recovery/completed-deliveries.ts"
import { DirectDeliveryRegistry } from "../../../src/delivery/recovery/direct-delivery-registry.ts"
import { RecordedAttempts } from "../../../src/delivery/recovery/partition-memory.ts"
import { PoisonGuard } from "../../../src/delivery/recovery/poison-guard.ts"
import { deliveryHeaders } from "../../../src/domain/delivery.ts"
import { makeNames } from "../../../src/domain/names.ts"
import { MemoryBroker } from "../in-memory.ts"
import { delivery } from "../waiting-before.ts"

/** Ms that the broker takes for a piece. */
const reading = 20
const piece = 4

/** A message of a backlog as a direct get gives it. */
const message = (endpoint: string, seq: number, deadline: number, left: number): StoredMsg => {
  const headers = new Map(deliveryHeaders({ ...delivery(endpoint, seq), deadline }, `${seq}`))
  const get = (name: string) =>
    name === "Nats-Num-Pending" ? `${left}` : (headers.get(name) ?? "")
  return {
    subject: makeNames().subjects.backlog(0, "acme", endpoint),
    seq,
    header: { get },
    data: new Uint8Array(),
    time: new Date(0)
  } as unknown as StoredMsg
}

const setUp = Effect.fnUntraced(function* (
  deadlines: Readonly<Record<string, ReadonlyArray<number>>>
) {
  const right = yield* Clock.Clock
  let shift = 0
  const clock: Clock.Clock = {
    ...right,
    currentTimeMillisUnsafe: () => right.currentTimeMillisUnsafe() + shift
  }
  const completed = new CompletedDeliveries(new HistoryPosition(0))
  const stream = "BACKLOG"
  const memory = {
    ...{
      index: 0,
      stream,
      completed,
      waiting: new Map(),
      unreadRecords: new Map<number, number>()
    },
    ...{
      recordedAttempts: new RecordedAttempts(),
      poisonGuard: new PoisonGuard(),
      directDeliveries: new DirectDeliveryRegistry()
    }
  }
  const reads: Array<readonly [endpoint: string, from: number, at: number]> = []
  const ended: Array<string> = []
  const dutyCycle = { until: 0 }
  const reader = new BacklogReader({
    ...{ memory, streams: { events: "EVENTS", queue: "QUEUE" }, forwards: () => [] },
    broker: new MemoryBroker().service,
    bodies: { read: () => Effect.succeed([]) },
    backlog: {
      read: ({ endpoint }, from, most) =>
        Effect.suspend(() => {
          reads.push([endpoint, from, clock.currentTimeMillisUnsafe()])
          const all = deadlines[endpoint] ?? []
          const some = all
            .map((at, index) => message(endpoint, index + 1, at, all.length - index - 1))
            .filter(({ seq }) => seq >= from)
          return Effect.delay(Effect.succeed(some.slice(0, most)), reading)
        }),
      last: () => Effect.succeed(null),
      remove: () => Effect.void
    }
  })
  const expiry = new Expiry({
    reader,
    ended: () => Effect.void,
    standing: () => Effect.succeed(() => "waiting"),
    clock,
    isClockTrusted: () => true,
    memory,
    dutyCycle,
    keep: () => Effect.void,
    batch: { messages: piece, bytes: 1 },
    expire: (handle) =>
      Effect.suspend(() => {
        ended.push(`${handle.delivery.endpoint} ${handle.place.seq}`)
        return handle.ack(Effect.void)
      })
  })
  const drain = (endpoint: string) =>
    new Drain({ tenant: "acme", endpoint }, memory, undefined, 0, () => undefined)
  const shifts = (ms: number) => {
    shift = ms
  }
  return { drain, ended, expiry, reads, shifts }
})

const never = () => false

describe("looking through backlogs for deadlines", () => {
  it.effect("reads a piece, rests for nine times as long, and goes on where it was", () =>
    Effect.gen(function* () {
      const passed = 1
      const later = 900_000
      yield* TestClock.adjust(1_000)
      const { drain, ended, expiry, reads } = yield* setUp({
        a: [later, passed, later, later, later, passed, later + 1]
      })
      const a = drain("a")
      for (let ms = 0; ms < 1_000; ms += 10) {
        yield* Effect.forkChild(expiry.scan(a, never), { startImmediately: true })
        yield* TestClock.adjust(10)
      }
      assert.deepStrictEqual(reads, [
        ["a", 1, 1_000],
        ["a", 5, 1_000 + 10 * reading]
      ])
      assert.deepStrictEqual(ended, ["a 2", "a 6"])
      assert.strictEqual(a.nextDeadline, later)
      assert.isFalse(expiry.isDue(a))
    })
  )

  it.effect("reads one backlog at a time, whose endpoint takes nothing", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust(1_000)
      const { drain, expiry, reads } = yield* setUp({ a: [5_000], b: [6_000], c: [7_000] })
      const drains = ["a", "b", "c"].map(drain)
      for (let ms = 0; ms < 1_000; ms += 10) {
        for (const one of drains)
          yield* Effect.forkChild(
            expiry.scan(one, () => one.to.endpoint === "b"),
            { startImmediately: true }
          )
        yield* TestClock.adjust(10)
      }
      assert.deepStrictEqual(reads, [
        ["a", 1, 1_000],
        ["c", 1, 1_000 + 10 * reading]
      ])
    })
  )

  it.effect("reads nothing while a message is about to be replaced: both would end", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust(1_000)
      const { drain, expiry, reads } = yield* setUp({ a: [1] })
      const a = drain("a")
      const scan = Effect.gen(function* () {
        yield* Effect.forkChild(expiry.scan(a, never), { startImmediately: true })
        yield* TestClock.adjust(10)
      })
      a.replacing++
      yield* scan
      assert.deepStrictEqual(reads, [])
      a.replacing--
      yield* scan
      assert.lengthOf(reads, 1)
    })
  )

  for (const [what, shift] of [
    ["forward", 3_600_000],
    ["back", -3_600_000]
  ] as const)
    it.effect(`rests no longer where the clock was set ${what} during a read`, () =>
      Effect.gen(function* () {
        yield* TestClock.adjust(7_200_000)
        const { drain, expiry, reads, shifts } = yield* setUp({ a: [1, 1, 1, 1, 1] })
        const a = drain("a")
        yield* Effect.forkChild(expiry.scan(a, never), { startImmediately: true })
        shifts(shift)
        yield* TestClock.adjust(reading)
        assert.isFalse(expiry.isDue(a))
        assert.isAtMost(expiry.pause(a, 1_000), 9 * reading)
        yield* TestClock.adjust(9 * reading)
        assert.isTrue(expiry.isDue(a))
        yield* Effect.forkChild(expiry.scan(a, never), { startImmediately: true })
        assert.lengthOf(reads, 2)
      })
    )
})
