import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { natsClients } from "./clients.ts"

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
  const broker = yield* Broker
  const message = yield* broker.readMessage(operation, stream, { seq })
  return message !== null && isIt(message) && (yield* broker.deleteMessage(operation, stream, seq))
})

/** Changes the subjects that a stream listens to. */
export const changeSubjects = (stream: string, subjects: Array<string>) =>
  Effect.flatMap(natsClients, ({ ask, jsm }) =>
    ask(`change the subjects of ${stream}`, () => jsm.streams.update(stream, { subjects }))
  )

/** Removes a stream with all that it holds. */
export const removeStream = (stream: string) =>
  Effect.flatMap(natsClients, ({ ask, jsm }) =>
    ask(`remove stream ${stream}`, () => jsm.streams.delete(stream))
  )
