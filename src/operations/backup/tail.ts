import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { HeaderList } from "../../broker/publication.ts"
import { readStream, scanQueue } from "../../broker/scan.ts"
import { readBacklogEnd } from "../../delivery/backlog/backlog-end.ts"
import type { DeliveryReference, OriginStreams } from "../../domain/backlog-message.ts"
import {
  backlogEntriesIn,
  labelHeaders,
  labelIn,
  referencesHeader,
  replacesHeader,
  waitingIn
} from "../../domain/backlog-message.ts"
import type { Addressee, RoundIdentity } from "../../domain/delivery.ts"
import { deliverySubject } from "../../domain/delivery.ts"
import { readPlace } from "../../domain/fact.ts"
import type { GetHeader } from "../../domain/header-names.ts"
import { BackupError } from "./manifest.ts"

/*
 * What was stored in a stream after its copy was begun, and belongs to the copy: it replaces what was
 * removed from the stream before the copy came to it. A delivery that moves is stored at the end of a
 * stream before it is removed from its old place, and so is a newer value of a bucket's key.
 */

/** A message of a tail, one line of JSON each. */
const TailMessage = Schema.Struct({
  seq: Schema.Int,
  subject: Schema.String,
  headers: Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
  /** In base64. */
  body: Schema.String
})
export type TailMessage = typeof TailMessage.Type

const encode = Schema.encodeSync(Schema.fromJsonString(TailMessage))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(TailMessage))

/** Headers of the broker that a message is stored with again. It makes the others itself. */
const kept: ReadonlySet<string> = new Set([
  "nats-msg-id",
  "nats-schedule",
  "nats-schedule-target",
  "nats-ttl",
  "nats-rollup"
])

const isKept = (name: string): boolean =>
  !name.toLowerCase().startsWith("nats-") || kept.has(name.toLowerCase())

interface Headers {
  readonly keys: () => Array<string>
  readonly values: (name: string) => Array<string>
}

const headersOf = (headers: Headers | undefined): HeaderList =>
  (headers?.keys() ?? [])
    .filter(isKept)
    .flatMap((name) => (headers?.values(name) ?? []).map((value) => [name, value] as const))

interface Stored {
  readonly seq: number
  readonly subject: string
  readonly data: Uint8Array
}

const lineOf = ({ data, seq, subject }: Stored, headers: HeaderList): Uint8Array => {
  const body = Buffer.from(data).toString("base64")
  return Buffer.from(
    `${encode({ seq, subject, headers: headers.map(([a, b]) => [a, b]), body })}\n`
  )
}

/**
 * The messages of a queue or a backlog that were stored after a sequence, those still there.
 *
 * @param read gets their sequences.
 */
export const partitionTail = (stream: string, after: number, read: Set<number>) =>
  scanQueue(stream, ">", after + 1).pipe(
    Stream.map((message) => {
      read.add(message.seq)
      return lineOf(message, headersOf(message.header))
    })
  )

/**
 * The values of a bucket that were stored after a sequence, the last of each key. What the broker
 * has removed by itself, as its time was over, is no value.
 */
export const bucketTail = (
  stream: string,
  after: number
): Stream.Stream<Uint8Array, BrokerError, Broker> =>
  readStream({ stream, subjects: [">"], fromSeq: after + 1 }).pipe(
    Stream.map((message) => {
      const isGone = message.headers?.has("Nats-Marker-Reason") === true
      return lineOf(
        message,
        isGone
          ? [
              ["KV-Operation", "PURGE"],
              ["Nats-Rollup", "sub"],
              ["Nats-TTL", "60s"]
            ]
          : headersOf(message.headers)
      )
    })
  )

/** What is copied of a stream. */
interface Copied {
  readonly stream: string
  /** The last sequence of its copy. */
  readonly upTo: number
  /** The last sequence when its tail was begun. */
  readonly after: number
  /** The sequences in its tail. */
  readonly read: ReadonlySet<number>
}

const isIn = (
  origin: string | undefined,
  { read, stream, upTo }: Omit<Copied, "after">
): boolean => {
  const place = readPlace(origin ?? "")
  return place?.stream !== stream || place.seq <= upTo || read.has(place.seq)
}

/**
 * True if a delivery came into a backlog after its tail was begun, from a place in the queue that
 * neither the queue's copy nor its tail has. A message that this version cannot read may hold one.
 */
export const cameThroughQueue = Effect.fnUntraced(function* (
  backlog: Pick<Copied, "after" | "stream">,
  queue: Omit<Copied, "after">,
  streams: OriginStreams
) {
  const found = yield* scanQueue(backlog.stream, ">", backlog.after + 1).pipe(
    Stream.filter(({ header, subject }) => {
      const entries = backlogEntriesIn(subject, (name) => header.get(name) || undefined, streams)
      return entries?.some((entry) => !isIn(waitingIn(entry).origin, queue)) ?? true
    }),
    Stream.runHead
  )
  return Option.isSome(found)
})

/**
 * True if a delivery came into a queue after its tail was begun, from a place in the backlog that
 * neither the backlog's copy nor its tail has.
 */
export const cameThroughBacklog = Effect.fnUntraced(function* (
  queue: Pick<Copied, "after" | "stream">,
  backlog: Omit<Copied, "after">
) {
  const found = yield* scanQueue(queue.stream, ">", queue.after + 1).pipe(
    Stream.filter(({ header }) => !isIn(header.get("petrel-origin"), backlog)),
    Stream.runHead
  )
  return Option.isSome(found)
})

/** Parses a tail. */
export const readTail = Effect.fnUntraced(function* (text: string) {
  const found: Array<TailMessage> = []
  for (const line of text.split("\n")) {
    if (line === "") continue
    const message = Option.getOrUndefined(decode(line))
    if (message === undefined)
      return yield* new BackupError({
        message: "a file of this backup is not what it should be: restore another backup"
      })
    found.push(message)
  }
  return found
})

/** A delivery in a message of a tail. */
export interface TailDelivery extends Addressee, RoundIdentity {
  readonly message: TailMessage
  /** Undefined where the message holds nothing else. */
  readonly reference: DeliveryReference | undefined
}

const headerIn =
  ({ headers }: TailMessage): GetHeader =>
  (name) =>
    headers.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1] || undefined

/** The deliveries in a message of a partition's tail; undefined if this version cannot read it. */
export const deliveriesIn = (
  message: TailMessage,
  streams: OriginStreams
): ReadonlyArray<TailDelivery> | undefined => {
  const get = headerIn(message)
  const subject = deliverySubject({
    subject: message.subject,
    header: { get: (name) => get(name) ?? "" }
  })
  return backlogEntriesIn(subject, get, streams)?.map((of) => {
    const { endpoint, eventAt, eventSeq, round, tenant } = waitingIn(of)
    const reference = of.entry === undefined ? undefined : of.reference
    return { tenant, endpoint, eventAt, eventSeq, round, message, reference }
  })
}

/** Stores a message of a tail. */
export const storeAgain = Effect.fnUntraced(function* ({ body, headers, subject }: TailMessage) {
  const { publish } = yield* Broker
  yield* publish(subject, Buffer.from(body, "base64"), headers)
})

/**
 * Stores deliveries of a backlog's message at the end of that backlog. The message does not say what
 * the first one replaced: other messages may have those sequences now.
 */
export const storeInBacklog = Effect.fnUntraced(function* (
  stream: string,
  message: TailMessage,
  deliveries: ReadonlyArray<TailDelivery>,
  streams: OriginStreams
) {
  const { stored } = yield* readBacklogEnd({ stream, subject: message.subject })
  const { owner = 0 } = labelIn(headerIn(message)) ?? {}
  const references = deliveries.flatMap(({ reference }) => reference ?? [])
  const changed = [
    ...(references.length === 0 ? [] : [referencesHeader(references, streams)]),
    ...labelHeaders({ stored: stored + deliveries.length, owner, replaces: [] })
  ]
  const names = new Set([replacesHeader, ...changed.map(([name]) => name)])
  const others = message.headers.filter(([name]) => !names.has(name))
  yield* storeAgain({ ...message, headers: [...others, ...changed] })
})
