import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage } from "../../broker/scan.ts"

/**
 * Removes one message.
 *
 * @returns false if it was gone already.
 */
export const removeMessage = Effect.fnUntraced(function* (stream: string, seq: number) {
  const { ask, jsm } = yield* Broker
  return yield* ask("remove a delivery that was moved", () =>
    jsm.streams.deleteMessage(stream, seq, false)
  ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false)))
})
