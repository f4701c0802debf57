import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { makeChangeRecorder } from "./change-recorder.ts"
import type { Currentness } from "./currentness.ts"
import { CurrentnessSwitch } from "./currentness.ts"
import { readDirectory } from "./directory-reading.ts"
import type { DirectoryTable } from "./directory-table.ts"

/** Pause before the endpoints are read again after a failure, ms. */
const retryPauseMs = 1_000

/**
 * Watches the bucket until the scope closes: the broker sends each change once, and nothing is read
 * to get it. After a reconnect everything is read again, because a watch can miss changes. Returns
 * when the first reading is complete.
 *
 * A reading is complete when it has reached the state that the leader had after the watch was
 * started. The table is not current from a reconnect until then, nor while the watch is behind the
 * leader or the leader does not answer (`WatchLag`).
 *
 * No change is applied before the history has it: readers of the history can then tell what a plan
 * was made from.
 *
 * @param unavailable called with the keys of endpoints that are disabled, removed or replaced.
 */
export const keepReading = Effect.fnUntraced(function* (
  table: DirectoryTable,
  unavailable: (key: string) => void
) {
  const { onReconnect } = yield* Broker
  const recorder = yield* makeChangeRecorder
  const currentness = new CurrentnessSwitch()
  const forget = onReconnect(() => currentness.onReconnect())
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  const reading = readDirectory({ table, recorder, currentness, unavailable })
  yield* Effect.forkScoped(
    keepGoing("read the endpoints", reading, retryPauseMs, Effect.logWarning)
  )
  yield* currentness.complete
  return currentness satisfies Currentness
})
