import { Deferred, Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { findPartitions, ifFound, streamNotFound } from "../broker/installed.ts"
import { WorkerRefused } from "./membership.ts"

/** How often to look, ms. */
const interval = 60_000

/**
 * Fails when the installation has another number of partitions than this worker began with: it
 * would put deliveries where nobody looks for them. Looks once a minute and after each reconnect.
 */
export const watchPartitions = Effect.fnUntraced(function* (partitions: number) {
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
