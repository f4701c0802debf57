import type { JsMsg, StoredMsg, StreamState } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { timers } from "../time/timers.ts"
import type { BatchLimits, BatchStart, Range } from "./broker.ts"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { readThrough } from "./bulk-read.ts"

/** Pause before a lagging replica is read again, ms. */
const catchUpPauseMs = 100

/** How long it is cached that a stream has one replica, ms: `petrel init` may add more. */
const soleCopyKnownMs = 10_000
/** What is cached of a stream, and until when, ms of the monotonic clock. */
interface SoleCopy {
  readonly copies: Copies
  readonly until: number
}
const soleCopies = new WeakMap<Broker["Service"], Map<string, SoleCopy>>()

/** What reading a stream depends on. */
interface Copies {
  /** The stream's state from its leader. Undefined if it has a single replica, which is the leader. */
  readonly state: StreamState | undefined
  /** Whether it answers direct gets. */
  readonly isDirect: boolean
}

/**
 * Returns how a stream may be read. The configuration of the stream decides: the server's
 * information about its cluster may be missing, for example behind a leaf node.
 */
const copiesOf = Effect.fnUntraced(function* (stream: string) {
  const broker = yield* Broker
  const known = soleCopies.get(broker) ?? new Map<string, SoleCopy>()
  soleCopies.set(broker, known)
  const cached = known.get(stream)
  if (cached !== undefined && cached.until > timers.monotonicMs()) return cached.copies
  const { config, state } = yield* broker.streamInfo(`look at ${stream}`, stream)
  const isSole = config.num_replicas <= 1
  const copies: Copies = {
    state: isSole ? undefined : state,
    isDirect: config.allow_direct
  }
  if (isSole) known.set(stream, { copies, until: timers.monotonicMs() + soleCopyKnownMs })
  return copies
})

/** Where reading begins, and which subjects it covers. */
interface ScanStart {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  readonly from: BatchStart
}

/** Returns the sequence where reading begins. */
const seqOf = (stream: string, from: BatchStart) =>
  typeof from === "number" ? Effect.succeed(from) : firstSince(stream, from.time)

/**
 * Reads all messages that were acknowledged before it began. Any replica may answer, and may lag
 * even if the broker is healthy. So reading is repeated until the leader has no further message.
 */
const complete = <A extends { readonly seq: number }, E>(
  { from, stream, subjects }: ScanStart,
  read: (from: BatchStart, isDirect: boolean) => Stream.Stream<A, E, Broker>
): Stream.Stream<A, E | BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { readMessage } = yield* Broker
      const { isDirect, state } = yield* copiesOf(stream)
      if (state === undefined) return read(from, isDirect)
      let next = yield* seqOf(stream, from)
      const isBehind = Effect.gen(function* () {
        if (next > state.last_seq) return false
        const ahead = yield* Effect.forEach(subjects, (next_by_subj) => {
          const query = { seq: next, next_by_subj }
          return readMessage(`look at ${stream}`, stream, query)
        })
        return ahead.some((message) => message !== null && message.seq <= state.last_seq)
      })
      const pass: Stream.Stream<A, E | BrokerError, Broker> = Stream.suspend(() =>
        read(next, isDirect)
      ).pipe(
        Stream.tap(({ seq }) =>
          Effect.sync(() => {
            next = seq + 1
          })
        ),
        Stream.concat(
          Stream.unwrap(
            Effect.map(isBehind, (behind) =>
              behind
                ? Stream.unwrap(Effect.delay(Effect.succeed(pass), catchUpPauseMs))
                : Stream.empty
            )
          )
        )
      )
      return pass
    })
  )

/**
 * A message of a stream, however it was read. One that was read by a direct get also has the headers
 * that the broker adds to it (`Nats-Sequence` and others).
 */
export interface ReadMessage
  extends Pick<
    JsMsg,
    "data" | "headers" | "seq" | "string" | "subject" | "time" | "timestampNanos"
  > {
  /** `pending`: how many followed when it was read. */
  readonly info: Pick<JsMsg["info"], "pending">
}

const nanosPerSecond = 1_000_000_000n

/** Converts a time in RFC 3339, which the broker gives with up to nine digits of a second. */
const nanosOf = (timestamp: string): bigint => {
  const digits = /\.(\d+)/.exec(timestamp)?.[1] ?? ""
  const seconds = BigInt(Math.floor(Date.parse(timestamp) / 1_000))
  return seconds * nanosPerSecond + BigInt(digits.padEnd(9, "0"))
}

const readMessageOf = (message: StoredMsg): ReadMessage => {
  const { data, header: headers, seq, subject, time, timestamp } = message
  const pending = Number(headers.get("Nats-Num-Pending"))
  return {
    ...{ seq, subject, headers, data, time, info: { pending } },
    get timestampNanos() {
      return nanosOf(timestamp)
    },
    string: () => message.string()
  }
}

/**
 * Reads the first messages under a subject by one direct get, and returns from where more follow. A
 * consumer takes the broker four requests, however little there is.
 */
const readFew = (
  { headersOnly, stream, subject, wanted = limits.batch }: RestRange,
  from: BatchStart
): Effect.Effect<
  { readonly few: ReadonlyArray<ReadMessage>; readonly next: number | undefined },
  BrokerError,
  Broker
> =>
  Effect.map(
    readOneOfFew(stream, subject, from, {
      batch: Math.min(wanted, limits.batch),
      max_bytes: headersOnly === true ? maxBytesWithoutBodies : limits.max_bytes
    }),
    (few) => {
      const last = few.at(-1)
      const isEnd = last === undefined || last.header.get("Nats-Num-Pending") === "0"
      const next = isEnd ? undefined : last.seq + 1
      return { few: few.map(readMessageOf), next }
    }
  )

/**
 * Reads messages of a stream with limits retention; a work queue allows no second consumer, see
 * `scanQueue`. Unless it follows, it reads all messages that were acknowledged before it began:
 * those of one subject by one direct get where they are few, all others by a consumer.
 *
 * @param range `headersOnly`: what a direct get reads has its bodies nevertheless, some 64 KiB at most,
 *   or one message that is larger.
 */
export const readStream = (range: Range): Stream.Stream<ReadMessage, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { read } = yield* Broker
      const { follow, headersOnly, lastOfSubjects, stream, subjects, wanted } = range
      const start = range.fromSeq ?? { time: range.fromTime ?? 0 }
      const consume = (from: BatchStart) =>
        Stream.unwrap(Effect.map(seqOf(stream, from), (seq) => read(range, seq)))
      if (follow === true) return consume(start)
      const [subject, ...others] = subjects
      const isOne = others.length === 0 && lastOfSubjects !== true
      return complete({ stream, subjects, from: start }, (from, isDirect) => {
        if (subject === undefined || !isOne || !isDirect) return consume(from)
        const first = Effect.map(
          readFew({ stream, subject, headersOnly: headersOnly === true, wanted }, from),
          ({ few, next }) => {
            const rest = Stream.suspend(() => (next === undefined ? Stream.empty : consume(next)))
            return Stream.concat(Stream.fromIterable<ReadMessage>(few), rest)
          }
        )
        return Stream.unwrap(first)
      })
    })
  )

/**
 * Passes each message that was acknowledged before it began to `see`. Nothing is collected and no
 * Stream is built, for scans of many messages of which most are skipped.
 *
 * @param see returns true to end the scan.
 */
export const seeStream = (
  range: Omit<Range, "follow">,
  see: (message: JsMsg) => boolean
): Effect.Effect<void, BrokerError, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const { stream } = range
    const from = range.fromSeq ?? { time: range.fromTime ?? 0 }
    const passes = complete({ ...range, from }, (next) =>
      Stream.fromEffect(
        Effect.flatMap(seqOf(stream, next), (seq) => Effect.scoped(broker.see(range, seq, see)))
      )
    )
    yield* Stream.runDrain(Stream.takeUntil(passes, ({ enough }) => enough))
  })

/** What `seeRest` passes on of a message. */
type RestMessage = Pick<ReadMessage, "headers" | "seq" | "string" | "subject" | "timestampNanos">

/** The messages under a subject; `headersOnly`: bodies may be left out. */
interface RestRange {
  readonly stream: string
  readonly subject: string
  readonly headersOnly?: boolean
  readonly wanted?: number | undefined
}

/**
 * Passes each message under a subject that was acknowledged before it began to `see`, for what is
 * mostly the short rest of a stream: one direct get reads a few messages, and what follows them is
 * read at a third of the cost of `readStream`.
 *
 * @param range `headersOnly`: whether bodies may be left out, which they are where there are many.
 * @param see returns true once it needs no more.
 */
export const seeRest = Effect.fnUntraced(function* (
  range: RestRange & { readonly fromSeq: number },
  see: (message: RestMessage) => boolean
) {
  const { fromSeq, headersOnly = false, stream, subject } = range
  let from = fromSeq
  // The only copy has everything.
  if ((yield* copiesOf(stream)).state === undefined) {
    const { few, next } = yield* readFew(range, fromSeq)
    if (few.some((message) => see(message)) || next === undefined) return
    from = next
  }
  const to = yield* endOf(stream)
  let enough = false
  const all = { stream, subjects: [subject], from, to, headersOnly }
  yield* readThrough(all, ({ message, nanoseconds, seq }) => {
    if (enough) return
    const { headers, subject } = message
    const timestampNanos = BigInt(nanoseconds)
    enough = see({ seq, subject, timestampNanos, headers, string: () => message.string() })
  })
})

const readOneOfFew = (stream: string, subject: string, from: BatchStart, of: BatchLimits) =>
  Effect.flatMap(Broker, ({ batch, oneOfFew }) =>
    oneOfFew.withPermit(batch(stream, subject, from, of))
  )

/** Limits of one direct get. */
const limits: BatchLimits = { batch: 256, max_bytes: 4 * 1024 * 1024 }
/** Where bodies are not needed: a direct get has them, and a consumer can omit them. */
const maxBytesWithoutBodies = 64 * 1024
/**
 * Reads everything that is stored under a subject of a stream, delivered or not, by batched direct
 * get. It sees all messages that were acknowledged before it began; those settled meanwhile may or
 * may not appear, and so may those stored meanwhile. A scan whose reader has messages stored again
 * needs an end.
 *
 * @param from first sequence. (Default: all)
 * @param to last sequence, see {@link endOf}. (Default: the end of the stream, which may move)
 */
export const scanQueue = (
  stream: string,
  subject: string,
  from = 1,
  to = Number.POSITIVE_INFINITY
): Stream.Stream<StoredMsg, BrokerError, Broker> =>
  complete({ stream, subjects: [subject], from }, (next) =>
    Stream.paginate(next, (start: BatchStart) =>
      Effect.map(readOneOfFew(stream, subject, start, limits), (batch) => {
        const last = batch.at(-1)
        const more =
          last !== undefined && last.seq < to && last.header.get("Nats-Num-Pending") !== "0"
        return [batch, more ? Option.some<BatchStart>(last.seq + 1) : Option.none()] as const
      })
    )
  ).pipe(Stream.takeWhile(({ seq }) => seq <= to))

/** Returns the last sequence of a stream, as its leader has it. */
export const endOf = Effect.fnUntraced(function* (stream: string) {
  const { streamInfo } = yield* Broker
  const { state } = yield* streamInfo(`look where ${stream} ends`, stream)
  return state.last_seq
})

/**
 * Reads messages of a subject in order, from a sequence on, by one direct get: see `Broker.batch`.
 */
export const readBatch = (stream: string, subject: string, seq: number, limits: BatchLimits) =>
  Effect.flatMap(Broker, ({ batch }) => batch(stream, subject, seq, limits))

/** Returns the sequence of the first message at or after a time (ms since the epoch). */
export const firstSince = (stream: string, time: number) =>
  Effect.flatMap(Broker, (broker) => broker.firstSince(stream, time))

/** When the broker stored a message, ms since the epoch. */
export const storedAt = ({ timestampNanos }: Pick<JsMsg, "timestampNanos">): number =>
  // The client's `info` has the time as a number, which is rounded, at times to another ms.
  Number(timestampNanos / 1_000_000n)
