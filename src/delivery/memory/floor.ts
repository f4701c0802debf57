import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { Facts } from "../../history/facts.ts"
import type { Partition } from "../partition.ts"
import { writeFloor } from "./takeover.ts"

/**
 * Lets what has ended be forgotten, and stores from where a new owner must read the history. Only
 * after whole ack_waits in which the broker was there, and was asked for what it may have missed.
 *
 * @param ackWait ms
 */
export const raiseFloor = Effect.fnUntraced(function* (
  { hasAsked, memory: { index, settled, straights } }: Partition,
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
      if (disturbed || !facts.isOpen() || !holds() || !hasAsked()) return
      straights.rotate()
      const floor = settled.rotate()
      if (floor === undefined || stored === floor) return
      yield* Effect.ignore(writeFloor(index, floor))
      stored = floor
    })
  )
}, Effect.scoped)
