import { Deferred, Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { LayoutRecord } from "../broker/installed.ts"
import { refuseChange } from "../broker/installed.ts"
import { WorkerRefused } from "./heartbeat.ts"

/** Pause between checks, ms. */
const interval = 60_000

/**
 * Fails if the layout is being changed, or has changed since this worker started. Returns the record.
 *
 * @param epoch number of completed changes when the worker started.
 */
export const refuseNewLayout = Effect.fnUntraced(function* (
  epoch: number
): Effect.fn.Return<LayoutRecord, WorkerRefused | BrokerError, Broker> {
  const record = yield* refuseChange.pipe(
    Effect.catchTag("TopologyError", ({ message }) => Effect.fail(new WorkerRefused({ message })))
  )
  if (record.epoch !== epoch)
    return yield* new WorkerRefused({
      message: "the number of partitions was changed since this worker began: start it again"
    })
  return record
})

/**
 * Fails when the layout is changed, or the number of partitions differs from the one that this
 * worker started with, as where another installation took the place of this one: the worker would
 * put deliveries where nobody looks for them. Checks once a minute and after each reconnect.
 *
 * @param epoch number of completed layout changes when the worker started.
 */
export const watchPartitions = Effect.fnUntraced(function* (partitions: number, epoch: number) {
  const { onReconnect } = yield* Broker
  const check = Effect.gen(function* () {
    const { partitions: found = partitions } = yield* refuseNewLayout(epoch)
    if (found === partitions) return
    return yield* new WorkerRefused({
      message: `the installation has ${found} partitions now, and this worker began with ${partitions}: start it again`
    })
  }).pipe(Effect.catchTag("BrokerError", () => Effect.void))

  let again = yield* Deferred.make<void>()
  const forget = onReconnect(() => Deferred.doneUnsafe(again, Effect.void))
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  return yield* Effect.forever(
    Effect.gen(function* () {
      yield* Effect.raceFirst(Effect.sleep(interval), Deferred.await(again))
      again = yield* Deferred.make<void>()
      yield* check
    })
  )
}, Effect.scoped)
