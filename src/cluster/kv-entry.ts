import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"

/**
 * What lies under a key of a bucket now, read from the leader: its revision, which a compare-and-set
 * must name even where the value has ended (0: there has never been one), and the value.
 */
export const readEntry = Effect.fnUntraced(function* (bucket: string, key: string) {
  const { ask, jsm } = yield* Broker
  const message = yield* ask(`look at ${key}`, () =>
    jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: `$KV.${bucket}.${key}` })
  )
  const ended = message === null || message.data.length === 0
  return { revision: message?.seq ?? 0, text: ended ? undefined : message.string() }
})
