import type { JsMsg, StoredMsg } from "@nats-io/jetstream"
import type { MsgHdrs } from "@nats-io/transport-node"
import { Effect, Option, Stream } from "effect"
import { timers } from "../time/timers.ts"
import type { BatchLimits, Range } from "./broker.ts"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { readThrough } from "./bulk-read.ts"
import { millisOf } from "./stream-message.ts"

/** Pause before a lagging replica is read again, ms. */
const catchUpPauseMs = 100

/** How long it is cached that a stream has one replica, ms: `petrel init` may add more. */
const soleCopyKnownMs = 10_000
/** Expiry of that cache by broker and stream, ms of the monotonic clock. */
const soleCopies = new WeakMap<Broker["Service"], Map<string, number>>()

/**
 * Returns the stream's state from its leader; undefined if the stream has a single replica, which
 * is the leader. The configuration of the stream decides: the server's information about its
 * cluster may be missing, for example behind a leaf node.
 */
const stateOfCopied = Effect.fnUntraced(function* (stream: string) {
  const broker = yield* Broker
  const known = soleCopies.get(broker) ?? new Map<string, number>()
  soleCopies.set(broker, known)
  if ((known.get(stream) ?? 0) > timers.monotonicMs()) return undefined
  const { config, state } = yield* broker.streamInfo(`look at ${stream}`, stream)
  if (config.num_replicas > 1) return state
  known.set(stream, timers.monotonicMs() + soleCopyKnownMs)
  return undefined
})

/** Where reading begins, and which subjects it covers. */
interface ScanStart {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  readonly fromSeq: number
}

/**
 * Reads all messages that were acknowledged before it began. Any replica may answer, and may lag
 * even if the broker is healthy. So reading is repeated until the leader has no further message.
 */
const complete = <A extends { readonly seq: number }, E>(
  { fromSeq, stream, subjects }: ScanStart,
  read: (fromSeq: number) => Stream.Stream<A, E, Broker>
): Stream.Stream<A, E | BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { readMessage } = yield* Broker
      const state = yield* stateOfCopied(stream)
      if (state === undefined) return read(fromSeq)
      let next = fromSeq
      const isBehind = Effect.gen(function* () {
        if (next > state.last_seq) return false
        const ahead = yield* Effect.forEach(subjects, (next_by_subj) => {
          const query = { seq: next, next_by_subj }
          return readMessage(`look at ${stream}`, stream, query)
        })
        return ahead.some((message) => message !== null && message.seq <= state.last_seq)
      })
      const pass: Stream.Stream<A, E | BrokerError, Broker> = Stream.suspend(() => read(next)).pipe(
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
 * Reads messages of a stream with limits retention; a work queue allows no second consumer, see
 * `scanQueue`. Unless it follows, it reads all messages that were acknowledged before it began.
 */
export const readStream = (range: Range): Stream.Stream<JsMsg, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { firstSince, read } = yield* Broker
      const fromSeq = range.fromSeq ?? (yield* firstSince(range.stream, range.fromTime ?? 0))
      return range.follow === true
        ? read(range, fromSeq)
        : complete({ ...range, fromSeq }, (next) => read(range, next))
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
    const fromSeq = range.fromSeq ?? (yield* broker.firstSince(range.stream, range.fromTime ?? 0))
    const passes = complete({ ...range, fromSeq }, (next) =>
      Stream.fromEffect(Effect.scoped(broker.see(range, next, see)))
    )
    yield* Stream.runDrain(Stream.takeUntil(passes, ({ enough }) => enough))
  })

/** A message of a stream, however it was read. */
export interface SeenMessage {
  readonly seq: number
  readonly subject: string
  /** When the broker stored it, ms since the epoch. */
  readonly at: number
  readonly headers: MsgHdrs | undefined
  readonly string: () => string
}

/**
 * Passes each message under a subject that was acknowledged before it began to `see`, for what is
 * mostly the short rest of a stream: one direct get reads a few messages, and a consumer what follows
 * them. A consumer takes the broker four requests, however little there is.
 *
 * @param range `headersOnly`: whether bodies may be left out, which they are where there are many.
 * @param see returns true once it needs no more.
 */
export const seeRest = Effect.fnUntraced(function* (
  range: {
    readonly stream: string
    readonly subject: string
    readonly fromSeq: number
    readonly headersOnly?: boolean
  },
  see: (message: SeenMessage) => boolean
) {
  const { fromSeq, headersOnly = false, stream, subject } = range
  let from = fromSeq
  // The only copy lacks nothing.
  if ((yield* stateOfCopied(stream)) === undefined) {
    const few = yield* readOneOfFew(stream, subject, fromSeq)
    for (const message of few) {
      const { header: headers, seq, subject, time } = message
      const at = time.getTime()
      if (see({ seq, subject, at, headers, string: () => message.string() })) return
      from = seq + 1
    }
    const last = few.at(-1)
    if (last === undefined || last.header.get("Nats-Num-Pending") === "0") return
  }
  const to = yield* endOf(stream)
  let enough = false
  const all = { stream, subjects: [subject], from, to, headersOnly }
  yield* readThrough(all, ({ message, nanoseconds, seq }) => {
    if (enough) return
    const { headers, subject } = message
    const at = millisOf(nanoseconds)
    enough = see({ seq, subject, at, headers, string: () => message.string() })
  })
})

const readOneOfFew = (stream: string, subject: string, seq: number) =>
  Effect.flatMap(Broker, ({ batch, oneOfFew }) =>
    oneOfFew.withPermit(batch(stream, subject, seq, limits))
  )

/** Limits of one request of `scanQueue`. */
const limits: BatchLimits = { batch: 256, max_bytes: 4 * 1024 * 1024 }
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
  complete({ stream, subjects: [subject], fromSeq: from }, (next) =>
    Stream.paginate(next, (seq: number) =>
      Effect.map(readOneOfFew(stream, subject, seq), (batch) => {
        const last = batch.at(-1)
        const more =
          last !== undefined && last.seq < to && last.header.get("Nats-Num-Pending") !== "0"
        return [batch, more ? Option.some(last.seq + 1) : Option.none<number>()] as const
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
