import { Deferred, Effect } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { findPartitions, ifFound, refuseChange, streamNotFound } from "../broker/installed.ts"
import { WorkerRefused } from "./membership.ts"

/** How often to look, ms. */
const interval = 60_000

/**
 * Fails where the layout is being changed, or has been since this worker began.
 *
 * @param epoch how many changes there had been.
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
 * Fails when the installation has another number of partitions than this worker began with: it
 * would put deliveries where nobody looks for them. Looks once a minute and after each reconnect.
 *
 * @param epoch how many changes of the layout there had been when it began.
 */
export const watchPartitions = Effect.fnUntraced(function* (partitions: number, epoch: number) {
  const { ask, jsm, names, onReconnect } = yield* Broker
  const isThere = (index: number) => {
    const stream = names.deliveries(index)
    return Effect.map(
      ifFound(
        ask(`look at stream ${stream}`, () => jsm.streams.info(stream)),
        streamNotFound
      ),
      (info) => info !== undefined
    )
  }
  const check = Effect.gen(function* () {
    yield* refuseNewLayout(epoch)
    if ((yield* isThere(partitions - 1)) && !(yield* isThere(partitions))) return
    const { begun, partitions: found } = yield* findPartitions
    // While streams are being made or removed there is nothing to rely on.
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
