import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isNoSuchMessage } from "../../broker/broker-error.ts"

/**
 * Removes one message.
 *
 * @returns false if it was gone already.
 */
export const removeMessage = Effect.fnUntraced(function* (stream: string, seq: number) {
  const { deleteMessage } = yield* Broker
  return yield* deleteMessage("remove a delivery that was moved", stream, seq).pipe(
    Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false))
  )
})
