import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage } from "../../broker/scan.ts"

/**
 * Removes one message from among the others.
 *
 * @returns false where it was gone already.
 */
export const removeMessage = Effect.fnUntraced(function* (stream: string, seq: number) {
  const { ask, jsm } = yield* Broker
  return yield* ask("remove a delivery that lies elsewhere now", () =>
    jsm.streams.deleteMessage(stream, seq, false)
  ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false)))
})
