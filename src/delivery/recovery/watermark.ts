import { Effect, Option } from "effect"
import { Broker } from "../../broker/broker.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { Facts } from "../../history/facts.ts"
import type { HistoryPosition } from "./completed-deliveries.ts"
import type { PartitionMemory } from "./partition-memory.ts"
import { readKnownFact, writeWatermark } from "./takeover.ts"

/**
 * Lets completed deliveries be forgotten, and stores from where a new owner must read the history.
 * Both happen only after whole ack_waits in which the broker was connected and the queue was
 * pulled.
 *
 * @param queue tells whether a pull request has completed since it was asked last.
 * @param historyPosition how far its worker knows the history.
 * @param ackWait ms
 */
export const advanceWatermark = Effect.fnUntraced(function* (
  queue: { readonly hasPulled: () => boolean },
  { completed, directDeliveries, index }: PartitionMemory,
  historyPosition: HistoryPosition,
  holds: () => boolean,
  ackWait: number
) {
  const { onReconnect } = yield* Broker
  const facts = yield* Facts
  let stored: number | undefined
  let disturbed = false
  const forget = onReconnect(() => {
    disturbed = true
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  return yield* keepGoing(
    "advance the watermark",
    Effect.gen(function* () {
      disturbed = false
      queue.hasPulled()
      yield* Effect.sleep(ackWait)
      if (
        disturbed ||
        historyPosition.isDoubtful ||
        !facts.isOpen() ||
        !holds() ||
        !queue.hasPulled()
      )
        return
      directDeliveries.rotate()
      const floor = completed.rotate()
      if (floor === undefined || stored === floor) return
      const fact = yield* Effect.option(readKnownFact(floor))
      if (Option.isNone(fact) || disturbed) return
      if (floor > historyPosition.lastRead.seq) historyPosition.lastRead = fact.value
      yield* Effect.ignore(writeWatermark(index, fact.value))
      stored = floor
    }),
    ackWait
  )
}, Effect.scoped)
