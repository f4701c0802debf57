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

/** A space whose worker owns one of two partitions. */
const ownerOfOne = Effect.gen(function* () {
  const space = yield* QueueSpace.make(2)
  yield* space.own(0)
  return space
})

describe.concurrent("the space for what waits in queues", () => {
  scenario(
    "is full for who holds his share of the worker's part, and free again when that has left",
    () =>
      Effect.gen(function* () {
        const space = yield* ownerOfOne
        for (let seq = 1; seq <= 5; seq++) space.waits(0, seq, "loud.down", body)
        assert.isFalse(space.isFull("loud.down"))
        // What has ended may take half of it only.
        assert.isTrue(space.isFullForEnded("loud.down"))
        space.waits(0, 6, "loud.down", body)
        assert.isTrue(space.isFull("loud.down"))
        assert.isFalse(space.isFull("calm.hook"))
        // A redelivered message is counted once, and one of another owner not at all.
        space.left(0, 6)
        space.waits(0, 5, "loud.down", body)
        space.waits(1, 7, "loud.down", body)
        assert.isFalse(space.isFull("loud.down"))
      }),
    shares
  )

  scenario(
    "counts what will come until it has come",
    () =>
      Effect.gen(function* () {
        const space = yield* ownerOfOne
        for (let n = 0; n < 6; n++) space.willCome(0, "loud.down", body)
        assert.isTrue(space.isFull("loud.down"))
        space.came(0, "loud.down", body)
        assert.isFalse(space.isFull("loud.down"))
        // What was not announced takes nothing away from what others announced.
        space.came(0, "calm.hook", body)
        space.willCome(0, "loud.down", body)
        assert.isTrue(space.isFull("loud.down"))
      }),
    shares
  )

  scenario(
    "grows with the partitions that are owned, and forgets those that are not",
    () =>
      Effect.gen(function* () {
        const space = yield* ownerOfOne
        const second = yield* Scope.make()
        yield* Scope.provide(space.own(1), second)
        for (let seq = 1; seq <= 8; seq++) space.waits(1, seq, "loud.down", body)
        assert.isFalse(space.isFull("loud.down"))
        for (let seq = 9; seq <= 12; seq++) space.waits(1, seq, "loud.down", body)
        assert.isTrue(space.isFull("loud.down"))
        yield* Scope.close(second, Exit.void)
        assert.isFalse(space.isFull("loud.down"))
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
        const space = yield* ownerOfOne
        yield* eventually(
          Effect.sync(() => space.isFull("loud.down")),
          (isFull) => isFull
        )
        assert.isFalse(space.isFull("calm.hook"))
      }),
    shares
  )
})
