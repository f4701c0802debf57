import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Result, Schedule } from "effect"
import { Broker } from "../broker/broker.ts"
import type { ConfigurationChange } from "../domain/configuration.ts"
import { configurationOf } from "../domain/configuration.ts"
import { isEndpointKey } from "../domain/endpoint.ts"
import type { EndpointChange, LastChanges } from "../history/configuration.ts"
import {
  appendChangeSurely,
  readAuthor,
  readLastChanges,
  readState
} from "../history/configuration.ts"
import { decodeEndpoint, encodeEndpoint } from "./stored-values.ts"

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
 *
 * @param revision 0 where nothing was stored in the bucket yet: the broker refuses to be asked for it.
 */
export const readChange = Effect.fnUntraced(function* (key: string, revision: number) {
  const { names, readMessage } = yield* Broker
  if (revision === 0) return undefined
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

const retryPause = Schedule.spaced("1 second")

/** Appends changes that a worker sees in the endpoints bucket to the history. */
export interface ChangeRecorder {
  /** Reads the last change of each endpoint that the history has. */
  readonly known: Effect.Effect<LastChanges>
  /**
   * Waits until the history has the change, however long that takes. Ignores keys that cannot be an
   * endpoint.
   */
  readonly record: (key: string, stored: Stored) => Effect.Effect<void>
}

/**
 * Makes a change recorder. Whoever writes to the bucket appends the change too, but may have died in
 * between, or be a person with a command-line tool of the broker.
 */
export const makeChangeRecorder = Effect.gen(function* () {
  const context = yield* Effect.context<Broker>()
  const recorder: ChangeRecorder = {
    known: readLastChanges.pipe(
      Effect.retry(retryPause),
      Effect.orDie,
      Effect.provideContext(context)
    ),
    record: (key, stored) =>
      isEndpointKey(key)
        ? readChange(key, stored.revision).pipe(
            Effect.retry(retryPause),
            Effect.orDie,
            Effect.flatMap((change) => appendChangeSurely(change ?? named(key, stored))),
            Effect.provideContext(context)
          )
        : Effect.void
  }
  return recorder
})
