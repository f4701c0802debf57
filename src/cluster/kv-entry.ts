import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"

/**
 * Reads the entry under a key of a bucket from the leader. `revision` is what a compare-and-set
 * must name even if the value has ended (0: there has never been a value). `text` is undefined if
 * there is no value.
 */
export const readEntry = Effect.fnUntraced(function* (bucket: string, key: string) {
  const { readMessage } = yield* Broker
  const message = yield* readMessage(`look at ${key}`, `KV_${bucket}`, {
    last_by_subj: `$KV.${bucket}.${key}`
  })
  const ended = message === null || message.data.length === 0
  return { revision: message?.seq ?? 0, text: ended ? undefined : message.string() }
})
