import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { ifFound, streamNotFound } from "./broker-error.ts"
import { waitingRooms } from "./storage-limits.ts"

/** Reads what queues and backlogs may take, from the limits of the other streams. */
export const readWaitingRooms = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const bound = (name: string) =>
    Effect.map(streamInfo(`look at stream ${name}`, name), ({ config }) => config.max_bytes)
  const [eventBytes, historyBytes, deadBytes, intakeBytes = 0] = yield* Effect.all(
    [
      bound(names.events),
      bound(names.history),
      bound(names.dead),
      ifFound(bound(names.intake), streamNotFound)
    ],
    { concurrency: 4 }
  )
  return waitingRooms({ eventBytes, historyBytes, deadBytes, intakeBytes })
})
