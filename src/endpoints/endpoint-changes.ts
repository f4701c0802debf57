import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Result } from "effect"
import { Broker } from "../broker/broker.ts"
import type { ConfigurationChange } from "../domain/configuration.ts"
import { configurationOf } from "../domain/configuration.ts"
import type { EndpointChange } from "../history/configuration.ts"
import { readAuthor, readState } from "../history/configuration.ts"
import { decodeEndpoint, encodeEndpoint } from "./endpoint-value.ts"

/** A value of the endpoints bucket, or its removal. */
export interface Stored {
  readonly revision: number
  /** When the bucket stored it, ms since the epoch; 0 for a removal that left no marker. */
  readonly at: number
  /** Undefined if it was removed. */
  readonly text: string | undefined
}

/** Returns the change to append to the history for a value under a key. */
const changeOf = (key: string, { at, revision, text }: Stored): ConfigurationChange => {
  if (text === undefined) return { revision, storedAt: at }
  const decoded = decodeEndpoint(key, text)
  return Result.isFailure(decoded)
    ? { revision, storedAt: at, isUnreadable: true }
    : { revision, storedAt: at, now: configurationOf(encodeEndpoint(decoded.success)) }
}

/** Headers that only delete markers have. */
const marks = ["KV-Operation", "Nats-Marker-Reason"]

/** Reads the value in a message of the bucket's stream. */
export const storedUnder = (message: StoredMsg): Stored => ({
  revision: message.seq,
  at: message.time.getTime(),
  text: marks.some((name) => message.header.has(name)) ? undefined : message.string()
})

/**
 * Reads the change with a revision of a key from the bucket's leader; undefined if a later change
 * has replaced it.
 */
export const readChange = Effect.fnUntraced(function* (key: string, revision: number) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage(
    `look at revision ${revision} of ${key}`,
    `KV_${names.buckets.endpoints}`,
    { seq: revision }
  )
  if (message === null || message.subject !== `$KV.${names.buckets.endpoints}.${key}`)
    return undefined
  const header = (name: string) => message.header.get(name)
  return { ...named(key, storedUnder(message)), ...readAuthor(header), state: readState(header) }
})

/** Makes the change of the endpoint under a key. */
export const named = (key: string, stored: Stored): EndpointChange => {
  const [tenant = "", endpoint = ""] = key.split(".")
  return { tenant, endpoint, change: changeOf(key, stored) }
}
