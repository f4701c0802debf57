import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Exit, Scope } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { sharesOf } from "../../src/broker/storage-limits.ts"
import { QueueSpace } from "../../src/delivery/retry/queue-space.ts"
import { scheduleHeaders } from "../../src/domain/delivery.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const MiB = 1024 ** 2
/** Queues may take 4 MiB, half of it what waits there: 1 MiB for each of two partitions. */
const shares = sharesOf(64 * MiB)
const body = 100_000

/** A room whose worker owns one of two partitions. */
const ownerOfOne = Effect.gen(function* () {
  const room = yield* QueueSpace.make(2)
  yield* room.own(0)
  return room
})

describe.concurrent("the room for what waits in queues", () => {
  scenario(
    "is full for who holds his share of the worker's part, and free again when that has left",
    () =>
      Effect.gen(function* () {
        const room = yield* ownerOfOne
        for (let seq = 1; seq <= 5; seq++) room.waits(0, seq, "loud.down", body)
        assert.isFalse(room.isFull("loud.down"))
        // What has ended may take half of it only.
        assert.isTrue(room.isFullForEnded("loud.down"))
        room.waits(0, 6, "loud.down", body)
        assert.isTrue(room.isFull("loud.down"))
        assert.isFalse(room.isFull("calm.hook"))
        // A redelivered message is counted once, and one of another owner not at all.
        room.left(0, 6)
        room.waits(0, 5, "loud.down", body)
        room.waits(1, 7, "loud.down", body)
        assert.isFalse(room.isFull("loud.down"))
      }),
    shares
  )

  scenario(
    "counts what will come until it has come",
    () =>
      Effect.gen(function* () {
        const room = yield* ownerOfOne
        for (let n = 0; n < 6; n++) room.willCome(0, "loud.down", body)
        assert.isTrue(room.isFull("loud.down"))
        room.came(0, "loud.down", body)
        assert.isFalse(room.isFull("loud.down"))
        // What was not announced takes nothing away from what others announced.
        room.came(0, "calm.hook", body)
        room.willCome(0, "loud.down", body)
        assert.isTrue(room.isFull("loud.down"))
      }),
    shares
  )

  scenario(
    "grows with the partitions that are owned, and forgets those that are not",
    () =>
      Effect.gen(function* () {
        const room = yield* ownerOfOne
        const second = yield* Scope.make()
        yield* Scope.provide(room.own(1), second)
        for (let seq = 1; seq <= 8; seq++) room.waits(1, seq, "loud.down", body)
        assert.isFalse(room.isFull("loud.down"))
        for (let seq = 9; seq <= 12; seq++) room.waits(1, seq, "loud.down", body)
        assert.isTrue(room.isFull("loud.down"))
        yield* Scope.close(second, Exit.void)
        assert.isFalse(room.isFull("loud.down"))
      }),
    shares
  )

  scenario(
    "counts the schedules of former owners where the queue is large",
    () =>
      Effect.gen(function* () {
        const { names, publisher } = yield* natsClients
        const at = (yield* Clock.currentTimeMillis) + 3_600_000
        for (let n = 0; n < 8; n++)
          yield* publisher.publish(
            names.subjects.schedule(0, `s${n}`),
            new Uint8Array(body),
            scheduleHeaders(at, names.subjects.delivery(0, "loud", "down"))
          )
        const room = yield* ownerOfOne
        yield* eventually(
          Effect.sync(() => room.isFull("loud.down")),
          (isFull) => isFull
        )
        assert.isFalse(room.isFull("calm.hook"))
      }),
    shares
  )
})
