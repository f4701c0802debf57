import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./connection.ts"
import { isNoSuchMessage } from "./scan.ts"

/**
 * Removes a message if it is the one that is meant: a stream that has lost its end may have another
 * one at the sequence.
 *
 * @param operation what failed, where this fails.
 * @returns false where it is gone already. Fails with BrokerError.
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
