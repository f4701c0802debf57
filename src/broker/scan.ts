import type { Consumer, JsMsg, StoredMsg } from "@nats-io/jetstream"
import { DeliverPolicy } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { Deferred, Effect, Option, Stream } from "effect"
import { Broker, BrokerError } from "./connection.ts"

/** Which messages of a stream to read. Sequences are inclusive; times in ms since the epoch. */
export interface Range {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  readonly fromSeq?: number | undefined
  readonly fromTime?: number | undefined
  /** Leave the bodies out. (Default: false) */
  readonly headersOnly?: boolean
  /** Go on with what is stored later. (Default: end with what is there now) */
  readonly follow?: boolean
}

/**
 * How long one request for messages stays open, ms. After a restart of the broker the client may
 * count on an answer to one that is forgotten; it asks again when this has passed.
 */
const requestExpiryMs = 5_000
/** Seconds without a message after which nothing more will come; the client needs 5 to ask again. */
const idleLooks = 8

/** How long a copy that is behind is given, ms. */
const catchUpPauseMs = 100

/** For how long it is remembered that a stream has one copy only, ms: `petrel init` may give it more. */
const soleCopyKnownMs = 10_000
/** Until when that is known of each stream, by the connection it is read through; performance.now. */
const soleCopies = new WeakMap<NatsConnection, Map<string, number>>()

/**
 * What a stream holds now, as its leader says; undefined where it has one copy only, which is that
 * one. The stream decides: what a server says of its cluster may be missing, behind a leaf node for
 * one.
 */
const stateOfCopied = Effect.fnUntraced(function* (stream: string) {
  const { ask, connection, jsm } = yield* Broker
  const known = soleCopies.get(connection) ?? new Map<string, number>()
  soleCopies.set(connection, known)
  if ((known.get(stream) ?? 0) > performance.now()) return undefined
  const { config, state } = yield* ask(`look at ${stream}`, () => jsm.streams.info(stream))
  if (config.num_replicas > 1) return state
  known.set(stream, performance.now() + soleCopyKnownMs)
  return undefined
})

/** Where reading begins, and which messages are meant. */
interface Beginning {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  readonly fromSeq: number
}

/**
 * Reads all that was acknowledged before it began. Where a stream has copies any of them may answer,
 * and be behind though the broker is well: so it is read on until the leader knows of nothing more.
 */
const complete = <A extends { readonly seq: number }, E>(
  { fromSeq, stream, subjects }: Beginning,
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
 * Messages of a stream that keeps what was read (a work queue takes no second consumer: `scanQueue`).
 * Where it does not follow, it reads all that was acknowledged before it began.
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
 * Shows all that was acknowledged before it began, as it comes: no stream is composed for it, and
 * nothing is kept. For what is many and mostly passed over.
 *
 * @param see says true where it has seen enough.
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

/** Messages that are asked for at once where they are only seen. */
const messagesPerRequest = 5_000

/** Says up to which sequence it has come, and whether that was enough. */
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
    // Else it stays for minutes, which adds up where much is looked for.
    (consumer) => Effect.sync(() => void consumer.delete().catch(() => undefined))
  )
})

/**
 * Waits until a consumer has nothing more. The last message may be removed before it is read: then
 * none says that it is the last. But what the broker has sent and nobody has seen may also have been
 * lost with a connection: the client notices within two heartbeats, and gets it again.
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

/** Reads through an ordered consumer, which the client makes anew after a gap. */
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
 * The sequence at which reading a stream from a time (ms since the epoch) begins.
 *
 * A consumer that starts at a time is not made anew by the client after a gap: the broker refuses
 * the start time beside the sequence to go on from. One that starts at a sequence is.
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

/** Of one request: in bytes too, for the broker drops a connection that takes too much at once. */
export interface BatchLimits {
  readonly batch: number
  readonly max_bytes: number
}
const limits: BatchLimits = { batch: 256, max_bytes: 4 * 1024 * 1024 }
/** How long the broker may take for a batch, ms. */
const batchTimeoutMs = 10_000

/**
 * Everything that is stored under a subject of a stream, delivered or not, by batched direct get.
 * Sees all that was acknowledged before it began; what is settled meanwhile may or may not appear.
 *
 * @param from sequence. (Default: all)
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
 * Messages of a subject from a sequence on, in order, by one direct get: not more than fit the
 * limits, but one at least where there is one. Any copy of the stream may answer, and be behind.
 */
export const readBatch = Effect.fnUntraced(function* (
  stream: string,
  subject: string,
  seq: number,
  limits: BatchLimits
) {
  const { ask, jsm } = yield* Broker
  const operation = `read ${subject}`
  // A share of a worker's room may not be whole, and the broker refuses a fraction.
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
    // The client watches over the first message only.
    Effect.timeoutOrElse({
      duration: batchTimeoutMs,
      orElse: () =>
        Effect.fail(new BrokerError({ operation, cause: new Error("the broker broke off") }))
    })
  )
})

const isNotFound = (error: Error): boolean => "code" in error && error.code === 404

/** JetStream's ways to say that there is no message at a sequence. */
const noSuchMessage: ReadonlySet<number> = new Set([10037, 10043, 10057])

/** True where a request failed because the message it is about is not there, or not any more. */
export const isNoSuchMessage = ({ code }: BrokerError): boolean =>
  code !== undefined && noSuchMessage.has(code)

/** When the broker stored a message, ms since the epoch. */
export const storedAt = ({ timestampNanos }: Pick<JsMsg, "timestampNanos">): number =>
  // Its `info` has them as a number, which is rounded, at times to another ms.
  Number(timestampNanos / 1_000_000n)
