import { Deferred, Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { findPartitions, ifFound, refuseChange, streamNotFound } from "../broker/installed.ts"
import { WorkerRefused } from "./worker-refused.ts"

/** Pause between checks, ms. */
const interval = 60_000

/**
 * Fails if the layout is being changed, or has changed since this worker started.
 *
 * @param epoch number of completed changes when the worker started.
 */
export const refuseNewLayout = Effect.fnUntraced(function* (
  epoch: number
): Effect.fn.Return<void, WorkerRefused | BrokerError, Broker> {
  const { epoch: now } = yield* refuseChange.pipe(
    Effect.catchTag("TopologyError", ({ message }) => Effect.fail(new WorkerRefused({ message })))
  )
  if (now !== epoch)
    return yield* new WorkerRefused({
      message: "the number of partitions was changed since this worker began: start it again"
    })
})

/**
 * Fails when the number of partitions differs from the one that this worker started with: the
 * worker would put deliveries where nobody looks for them. Checks once a minute and after each
 * reconnect.
 *
 * @param epoch number of completed layout changes when the worker started.
 */
export const watchPartitions = Effect.fnUntraced(function* (partitions: number, epoch: number) {
  const { names, onReconnect, streamInfo } = yield* Broker
  const isThere = (index: number) => {
    const stream = names.deliveries(index)
    return Effect.map(
      ifFound(streamInfo(`look at stream ${stream}`, stream), streamNotFound),
      (info) => info !== undefined
    )
  }
  const check = Effect.gen(function* () {
    yield* refuseNewLayout(epoch)
    if ((yield* isThere(partitions - 1)) && !(yield* isThere(partitions))) return
    const { begun, partitions: found } = yield* findPartitions
    // The count is unreliable while streams are being created or removed.
    if (found === undefined || found !== begun || found === partitions) return
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
