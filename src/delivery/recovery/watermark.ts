import { Effect, Option } from "effect"
import { Broker } from "../../broker/connection.ts"
import { Facts } from "../../history/facts.ts"
import type { Partition } from "../partition.ts"
import type { HistoryPosition } from "./completed-deliveries.ts"
import { readKnownFact, writeWatermark } from "./takeover.ts"

/**
 * Lets completed deliveries be forgotten, and stores from where a new owner must read the history.
 * Both happen only after whole ack_waits in which the broker was connected and the queue was
 * pulled.
 *
 * @param horizon how far its worker knows the history.
 * @param ackWait ms
 */
export const advanceWatermark = Effect.fnUntraced(function* (
  { hasAsked, memory: { index, settled, directDeliveries } }: Partition,
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
  return yield* Effect.forever(
    Effect.gen(function* () {
      disturbed = false
      hasAsked()
      yield* Effect.sleep(ackWait)
      if (disturbed || historyPosition.isDoubtful || !facts.isOpen() || !holds() || !hasAsked())
        return
      directDeliveries.rotate()
      const floor = settled.rotate()
      if (floor === undefined || stored === floor) return
      const known = yield* Effect.option(readKnownFact(floor))
      if (Option.isNone(known) || disturbed) return
      if (floor > historyPosition.known.seq) historyPosition.known = known.value
      yield* Effect.ignore(writeWatermark(index, known.value))
      stored = floor
    })
  )
}, Effect.scoped)
