import type { Consumer, JsMsg, StoredMsg } from "@nats-io/jetstream"
import { DeliverPolicy } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { Deferred, Effect, Option, Stream } from "effect"
import { timers } from "../time/timers.ts"
import { Broker, BrokerError } from "./connection.ts"

/** Which messages of a stream to read. Sequences are inclusive; times in ms since the epoch. */
export interface Range {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  readonly fromSeq?: number | undefined
  readonly fromTime?: number | undefined
  /** Omits the bodies. (Default: false) */
  readonly headersOnly?: boolean
  /** Continues with messages that are stored later. (Default: end with the last one stored now) */
  readonly follow?: boolean
}

/**
 * How long one request for messages stays open, ms. After a restart of the broker the client may
 * wait for the answer to a request that the broker has forgotten; it repeats the request after this
 * time.
 */
const requestExpiryMs = 5_000
/**
 * Seconds without a message after which none will come; the client needs 5 to repeat its request.
 */
const idleLooks = 8

/** Pause before a lagging replica is read again, ms. */
const catchUpPauseMs = 100

/** How long it is cached that a stream has one replica, ms: `petrel init` may add more. */
const soleCopyKnownMs = 10_000
/** Expiry of that cache by connection and stream; timers.monotonicMs. */
const soleCopies = new WeakMap<NatsConnection, Map<string, number>>()

/**
 * Returns the stream's state from its leader; undefined if the stream has a single replica, which
 * is the leader. The configuration of the stream decides: the server's information about its
 * cluster may be missing, for example behind a leaf node.
 */
const stateOfCopied = Effect.fnUntraced(function* (stream: string) {
  const { ask, connection, jsm } = yield* Broker
  const known = soleCopies.get(connection) ?? new Map<string, number>()
  soleCopies.set(connection, known)
  if ((known.get(stream) ?? 0) > timers.monotonicMs()) return undefined
  const { config, state } = yield* ask(`look at ${stream}`, () => jsm.streams.info(stream))
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
      const { ask, jsm } = yield* Broker
      const state = yield* stateOfCopied(stream)
      if (state === undefined) return read(fromSeq)
      let next = fromSeq
      const isBehind = Effect.gen(function* () {
        if (next > state.last_seq) return false
        const ahead = yield* Effect.forEach(subjects, (next_by_subj) => {
          const query = { seq: next, next_by_subj }
          return ask(`look at ${stream}`, () => jsm.streams.getMessage(stream, query))
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
      const fromSeq = range.fromSeq ?? (yield* firstSince(range.stream, range.fromTime ?? 0))
      return range.follow === true
        ? readCopy(range, fromSeq)
        : complete({ ...range, fromSeq }, (next) => readCopy(range, next))
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
    const fromSeq = range.fromSeq ?? (yield* firstSince(range.stream, range.fromTime ?? 0))
    const passes = complete({ ...range, fromSeq }, (next) =>
      Stream.fromEffect(Effect.scoped(seeCopy(range, next, see)))
    )
    yield* Stream.runDrain(Stream.takeUntil(passes, ({ enough }) => enough))
  })

/** Messages per request of `seeStream`. */
const messagesPerRequest = 5_000

/** Returns the last sequence seen, and whether `see` ended the scan. */
const seeCopy = Effect.fnUntraced(function* (
  range: Range,
  opt_start_seq: number,
  see: (message: JsMsg) => boolean
) {
  const { ask } = yield* Broker
  const consumer = yield* orderedConsumer(range, opt_start_seq)
  let last = opt_start_seq - 1
  let enough = false
  const info = yield* ask(`read ${range.stream}`, () => consumer.info())
  if (info.num_pending === 0) return { seq: last, enough: false }
  const through = yield* Deferred.make<void>()
  const callback = (message: JsMsg) => {
    if (enough) return
    last = Math.max(last, message.seq)
    enough = see(message)
    if (enough || message.info.pending === 0) Deferred.doneUnsafe(through, Effect.void)
  }
  yield* Effect.acquireRelease(
    ask(`read ${range.stream}`, () =>
      consumer.consume({ max_messages: messagesPerRequest, expires: requestExpiryMs, callback })
    ),
    (messages) => Effect.sync(() => messages.stop())
  )
  yield* Effect.raceFirst(
    Deferred.await(through),
    isAtEnd(range.stream, consumer, () => last)
  )
  return { seq: last, enough }
})

const orderedConsumer = Effect.fnUntraced(function* (range: Range, opt_start_seq: number) {
  const { ask, js } = yield* Broker
  return yield* Effect.acquireRelease(
    ask(`read ${range.stream}`, () =>
      js.consumers.get(range.stream, {
        filter_subjects: [...range.subjects],
        headers_only: range.headersOnly ?? false,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: Math.max(1, opt_start_seq)
      })
    ),
    // Otherwise the consumer stays for minutes, which adds up with many searches.
    (consumer) => Effect.sync(() => void consumer.delete().catch(() => undefined))
  )
})

/**
 * Waits until a consumer has no more messages. If the last message is removed before it is read, no
 * message marks the end. But messages that the broker has sent and that were not seen may have been
 * lost with a connection: the client notices within two heartbeats and gets them again.
 */
const isAtEnd = Effect.fnUntraced(function* (
  stream: string,
  consumer: Consumer,
  seen: () => number
) {
  const { ask } = yield* Broker
  let lastBefore = -1
  let idle = 0
  yield* ask(`read ${stream}`, () => consumer.info()).pipe(
    Effect.map(({ delivered, num_pending }) => {
      const last = seen()
      idle = last === lastBefore ? idle + 1 : 0
      lastBefore = last
      return num_pending === 0 && (delivered.stream_seq <= last || idle >= idleLooks)
    }),
    Effect.orElseSucceed(() => false),
    Effect.delay("1 second"),
    Effect.repeat({ until: (done) => done })
  )
})

/** Reads through an ordered consumer, which the client recreates after a gap. */
const readCopy = (range: Range, opt_start_seq: number): Stream.Stream<JsMsg, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { ask } = yield* Broker
      const consumer = yield* orderedConsumer(range, opt_start_seq)
      const info = yield* ask(`read ${range.stream}`, () => consumer.info())
      if (info.num_pending === 0 && range.follow !== true) return Stream.empty
      const messages = yield* Effect.acquireRelease(
        ask(`read ${range.stream}`, () =>
          consumer.consume({ max_messages: 1_000, expires: requestExpiryMs })
        ),
        (messages) => Effect.sync(() => messages.stop())
      )
      const all = Stream.fromAsyncIterable(
        messages,
        (cause) => new BrokerError({ operation: `read ${range.stream}`, cause })
      )
      if (range.follow === true) return all
      let last = opt_start_seq - 1
      const ended = isAtEnd(range.stream, consumer, () => last)
      return all.pipe(
        Stream.takeUntil((message) => message.info.pending === 0),
        Stream.interruptWhen(ended),
        Stream.tap(({ seq }) =>
          Effect.sync(() => {
            last = Math.max(last, seq)
          })
        )
      )
    })
  )

/**
 * Returns the sequence of the first message at or after a time (ms since the epoch).
 *
 * The client cannot recreate a consumer that starts at a time after a gap: the broker rejects the
 * start time next to the sequence to resume from. It can recreate one that starts at a sequence.
 */
export const firstSince = Effect.fnUntraced(function* (stream: string, time: number) {
  if (time <= 0) return 1
  const { ask, js } = yield* Broker
  return yield* ask(`look for a time in ${stream}`, async () => {
    const consumer = await js.consumers.get(stream, {
      deliver_policy: DeliverPolicy.StartTime,
      opt_start_time: new Date(time).toISOString()
    })
    const { delivered } = await consumer.info(true)
    await consumer.delete()
    return delivered.stream_seq + 1
  })
})

const oneOfFew = <A, E, R>(reading: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Broker, ({ oneOfFew }) => oneOfFew.withPermit(reading))

/**
 * Limits of one request. Bytes are limited too, because the broker drops a connection that takes
 * too much at once.
 */
export interface BatchLimits {
  readonly batch: number
  readonly max_bytes: number
}
const limits: BatchLimits = { batch: 256, max_bytes: 4 * 1024 * 1024 }
/** Time-out of a batch, ms. */
const batchTimeoutMs = 10_000

/**
 * Reads everything that is stored under a subject of a stream, delivered or not, by batched direct
 * get. It sees all messages that were acknowledged before it began; those settled meanwhile may or
 * may not appear.
 *
 * @param from first sequence. (Default: all)
 */
export const scanQueue = (
  stream: string,
  subject: string,
  from = 1
): Stream.Stream<StoredMsg, BrokerError, Broker> =>
  complete({ stream, subjects: [subject], fromSeq: from }, (next) =>
    Stream.paginate(next, (seq: number) =>
      Effect.map(oneOfFew(readBatch(stream, subject, seq, limits)), (batch) => {
        const last = batch.at(-1)
        const more = last !== undefined && last.header.get("Nats-Num-Pending") !== "0"
        return [batch, more ? Option.some(last.seq + 1) : Option.none<number>()] as const
      })
    )
  )

/**
 * Reads messages of a subject in order, from a sequence on, by one direct get. It returns no more
 * than the limits allow, but at least one if there is one. Any replica may answer, and may lag.
 */
export const readBatch = Effect.fnUntraced(function* (
  stream: string,
  subject: string,
  seq: number,
  limits: BatchLimits
) {
  const { ask, jsm } = yield* Broker
  const operation = `read ${subject}`
  // A share of a worker's capacity may be fractional, and the broker refuses fractions.
  const whole = { ...limits, max_bytes: Math.floor(limits.max_bytes) }
  return yield* ask(
    operation,
    () =>
      new Promise<Array<StoredMsg>>((resolve, reject) => {
        const list: Array<StoredMsg> = []
        // The client's iterator form leaks its subscription; its callback form does not.
        const callback = (done: { readonly err?: Error } | null, message: StoredMsg) => {
          if (done === null) list.push(message)
          else if (done.err === undefined || isNotFound(done.err)) resolve(list)
          else reject(done.err)
        }
        jsm.direct
          .getBatch(stream, { ...whole, seq, next_by_subj: subject, callback })
          .catch(reject)
      })
  ).pipe(
    // The client's time-out covers the first message only.
    Effect.timeoutOrElse({
      duration: batchTimeoutMs,
      orElse: () =>
        Effect.fail(new BrokerError({ operation, cause: new Error("the broker broke off") }))
    })
  )
})

const isNotFound = (error: Error): boolean => "code" in error && error.code === 404

/** JetStream's error codes for a missing message. */
const noSuchMessage: ReadonlySet<number> = new Set([10037, 10043, 10057])

/** True if a request failed because its message does not exist, or no longer. */
export const isNoSuchMessage = ({ code }: BrokerError): boolean =>
  code !== undefined && noSuchMessage.has(code)

/** When the broker stored a message, ms since the epoch. */
export const storedAt = ({ timestampNanos }: Pick<JsMsg, "timestampNanos">): number =>
  // The client's `info` has the time as a number, which is rounded, at times to another ms.
  Number(timestampNanos / 1_000_000n)
