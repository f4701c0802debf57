import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./connection.ts"
import { isNoSuchMessage } from "./scan.ts"

/**
 * Removes a message if `isIt` confirms it: a truncated stream may hold another message at the
 * sequence.
 *
 * @param operation named in the error.
 * @returns false if the message is gone already. Fails with BrokerError.
 */
export const removeIf = Effect.fnUntraced(function* (
  operation: string,
  stream: string,
  seq: number,
  isIt: (message: StoredMsg) => boolean
) {
  const { ask, jsm } = yield* Broker
  const message = yield* ask(operation, () => jsm.streams.getMessage(stream, { seq })).pipe(
    Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null))
  )
  if (message === null || !isIt(message)) return false
  return yield* ask(operation, () => jsm.streams.deleteMessage(stream, seq, false)).pipe(
    Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false))
  )
})
