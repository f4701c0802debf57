import { JetStreamApiError } from "@nats-io/jetstream"
import { Effect, Stream } from "effect"
import { timers } from "../time/timers.ts"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { clockOf } from "./kept-since.ts"
import type { HeaderList, PubAck } from "./publication.ts"
import { PublishError } from "./publication.ts"
import { type ReadMessage, readStream } from "./scan.ts"

/** JetStream's error code when a compare-and-set finds another revision than expected. */
const wrongLastSequence = 10071

/** True if a write lost to another one: read again and decide anew. */
export const isConflict = (error: BrokerError | PublishError): boolean =>
  error instanceof PublishError
    ? error.code === wrongLastSequence
    : error.cause instanceof JetStreamApiError && error.cause.code === wrongLastSequence

/** Reads the value under a key from the leader; undefined if there is none or it was deleted. */
export const readValue = Effect.fnUntraced(function* (bucket: string, key: string) {
  const entry = yield* (yield* Broker).entry(bucket, key)
  return entry === null || entry.operation !== "PUT" ? undefined : entry
})

/** True while the delete marker of an erased value is there. Asks the leader. */
export const isErasedValue = Effect.fnUntraced(function* (bucket: string, key: string) {
  const entry = yield* (yield* Broker).entry(bucket, key)
  return entry?.operation === "PURGE"
})

/** A value of a bucket, with its revision there. */
export interface StoredValue {
  readonly key: string
  readonly text: string
  readonly revision: number
}

/** Returns the value in a message of a bucket's stream; none in the marker of a value that was erased. */
export const valueIn = (
  bucket: string,
  message: Pick<ReadMessage, "headers" | "seq" | "string" | "subject">
): ReadonlyArray<StoredValue> =>
  message.headers?.has("KV-Operation") === true
    ? []
    : [
        {
          key: message.subject.slice(`$KV.${bucket}.`.length),
          text: message.string(),
          revision: message.seq
        }
      ]

/**
 * Reads the values of a bucket together: for many values that takes a tenth of the time of separate
 * requests. With replicas, a value that was overwritten or erased may still appear, before
 * its successor.
 *
 * @param keys subject filter of the keys. (Default: all)
 */
export const readValues = (
  bucket: string,
  keys = ">"
): Stream.Stream<StoredValue, BrokerError, Broker> =>
  readStream({ stream: `KV_${bucket}`, subjects: [`$KV.${bucket}.${keys}`] }).pipe(
    Stream.map((message) => valueIn(bucket, message)),
    Stream.flattenIterable
  )

/**
 * How a value is written: with a TTL (ms), and only over this revision (0: only if there is none).
 */
interface WriteOptions {
  readonly ttl?: number
  readonly expected?: number
  /**
   * True where the revision may be compared after a reconnect, too: nobody else writes that key
   * again once the bucket was truncated. (Default: false)
   */
  readonly onAnyConnection?: boolean
  /** Further headers of the message. */
  readonly headers?: HeaderList
}

/**
 * Writes a value with a TTL, a precondition or headers. The client's `put` supports neither TTL nor
 * headers, so this publishes to the key's subject as `put` would.
 */
export const writeValue = Effect.fnUntraced(function* (
  bucket: string,
  key: string,
  value: string,
  options: WriteOptions = {}
): Effect.fn.Return<PubAck, PublishError, Broker> {
  const { life, publish } = yield* Broker
  const headers: Array<readonly [string, string]> = [...(options.headers ?? [])]
  if (options.ttl !== undefined) headers.push(["Nats-TTL", `${Math.ceil(options.ttl / 1000)}s`])
  if (options.expected !== undefined)
    headers.push(["Nats-Expected-Last-Subject-Sequence", String(options.expected)])
  // The expected revision was read on this connection: after a reconnect the bucket may be
  // truncated.
  const isBound = options.expected !== undefined && options.onAnyConnection !== true
  const readOn = isBound ? (life() ?? {}) : undefined
  return yield* publish(`$KV.${bucket}.${key}`, value, headers, readOn)
})

const eraseHeaders: HeaderList = [
  ["KV-Operation", "PURGE"],
  ["Nats-Rollup", "sub"],
  ["Nats-TTL", "60s"]
]

/**
 * Removes a value. The delete marker expires after a minute.
 *
 * @param expected the revision to remove. (Default: whichever is there)
 */
export const eraseValue = Effect.fnUntraced(function* (
  bucket: string,
  key: string,
  expected?: number
) {
  const { publish } = yield* Broker
  const headers: HeaderList =
    expected === undefined
      ? eraseHeaders
      : [...eraseHeaders, ["Nats-Expected-Last-Subject-Sequence", String(expected)]]
  return yield* publish(`$KV.${bucket}.${key}`, "", headers)
})

/** A value whose TTL has passed this many times is taken for one that has ended. */
const outlivedFactor = 1.5

const ttlIn = (text: string | undefined): number | undefined => {
  const seconds = /^(\d+)s$/.exec(text ?? "")?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}

/**
 * Returns true for a value that is still there long after its TTL, by the broker's clock. After it
 * was killed, nats-server 2.15.1 may bring a value back that had expired, and keep it for good. The
 * broker is asked only if the value is that old by this process's clock.
 *
 * @param ttl the value's header `Nats-TTL`.
 * @param at when it was stored, ms since the epoch.
 */
export const hasOutlived = Effect.fnUntraced(function* (
  bucket: string,
  ttl: string | undefined,
  at: number
) {
  const ttlMs = ttlIn(ttl)
  if (ttlMs === undefined) return false
  const end = at + ttlMs * outlivedFactor
  if (timers.wallMs() < end) return false
  const { streamInfo } = yield* Broker
  return clockOf(yield* streamInfo("ask for the broker's time", `KV_${bucket}`)) >= end
})

/**
 * Reads the entry under a key of a bucket from the leader. `revision` is what a compare-and-set
 * must name even if the value has ended (0: there has never been a value). `text` is undefined if
 * there is no value, or it has outlived its TTL.
 */
export const readEntry = Effect.fnUntraced(function* (bucket: string, key: string) {
  const { readMessage } = yield* Broker
  const message = yield* readMessage(`look at ${key}`, `KV_${bucket}`, {
    last_by_subj: `$KV.${bucket}.${key}`
  })
  if (message === null) return { revision: 0, text: undefined }
  const ended =
    message.data.length === 0 ||
    (yield* hasOutlived(bucket, message.header.get("Nats-TTL"), message.time.getTime()))
  return { revision: message.seq, text: ended ? undefined : message.string() }
})
