import type {
  Consumer,
  JetStreamClient,
  JetStreamManager,
  JsMsg,
  StoredMsg
} from "@nats-io/jetstream"
import { DeliverPolicy } from "@nats-io/jetstream"
import { Deferred, Effect, Stream } from "effect"
import type { BatchLimits, BatchStart, Range } from "./broker.ts"
import { ask, BrokerError } from "./broker-error.ts"
import type { Clients } from "./clients.ts"
import { isFasterUnfiltered, isFew, subjectMatcher } from "./filters.ts"

type ReadingClients = Pick<Clients, "js" | "jsm">

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

/** Time-out of a batch, ms. */
const batchTimeoutMs = 10_000

/** Messages per request of `seeStream`. */
const messagesPerRequest = 5_000

/** Returns the last sequence seen, and whether `see` ended the scan. */
export const seeOrdered = Effect.fnUntraced(function* (
  clients: ReadingClients,
  range: Range,
  fromSeq: number,
  see: (message: JsMsg) => boolean
) {
  const { consumer, pending, wants } = yield* openReading(clients, range, fromSeq)
  let last = fromSeq - 1
  let enough = false
  if (pending === 0) return { seq: last, enough: false }
  const through = yield* Deferred.make<void>()
  const callback = (message: JsMsg) => {
    if (enough) return
    last = Math.max(last, message.seq)
    enough = wants(message.subject) && see(message)
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

/** Makes an ordered consumer for a reading, with the filters that make it fastest. */
const openReading = ({ js, jsm }: ReadingClients, range: Range, fromSeq: number) => {
  const open = Effect.fnUntraced(function* (filters: ReadonlyArray<string>) {
    const consumer = yield* orderedConsumer(js, range, filters, fromSeq)
    const { num_pending: pending } = yield* ask(`read ${range.stream}`, () => consumer.info())
    return { consumer, pending }
  })
  const { follow, lastOfSubjects, subjects } = range
  return follow === true || lastOfSubjects === true
    ? Effect.map(open(subjects), (filtered) => ({ ...filtered, wants: anySubject }))
    : openFastest(jsm, range, fromSeq, open)
}

/**
 * Makes a consumer with the filters of a reading, or without any where that is faster: then
 * `wants` tells which messages match them.
 *
 * @param open makes it with filters, and returns with it how many messages it will give.
 */
export const openFastest = Effect.fnUntraced(function* <A extends { readonly pending: number }, R>(
  jsm: JetStreamManager,
  { stream, subjects }: Pick<Range, "stream" | "subjects">,
  fromSeq: number,
  open: (filters: ReadonlyArray<string>) => Effect.Effect<A, BrokerError, R>
) {
  const filtered = yield* open(subjects)
  return (yield* areFiltersFaster(jsm, stream, subjects, fromSeq, filtered.pending))
    ? { ...filtered, wants: anySubject }
    : { ...(yield* open([])), wants: subjectMatcher(subjects) }
})

const anySubject = (_subject: string): boolean => true

const areFiltersFaster = Effect.fnUntraced(function* (
  jsm: JetStreamManager,
  stream: string,
  filters: ReadonlyArray<string>,
  fromSeq: number,
  matches: number
) {
  if (isFew(filters, matches)) return true
  const { config, state } = yield* ask(`read ${stream}`, () => jsm.streams.info(stream))
  // All of a stream's subjects are no filter to the broker.
  if (filters.length === 1 && config.subjects?.includes(filters[0] ?? "") === true) return true
  const total = Math.min(state.messages, state.last_seq - fromSeq + 1)
  return !isFasterUnfiltered({ filters, matches, total, subjects: state.num_subjects ?? 0 })
})

const orderedConsumer = Effect.fnUntraced(function* (
  js: JetStreamClient,
  range: Range,
  filters: ReadonlyArray<string>,
  opt_start_seq: number
) {
  return yield* Effect.acquireRelease(
    ask(`read ${range.stream}`, () =>
      js.consumers.get(range.stream, {
        filter_subjects: [...filters],
        headers_only: range.headersOnly ?? false,
        ...(range.lastOfSubjects === true
          ? { deliver_policy: DeliverPolicy.LastPerSubject }
          : {
              deliver_policy: DeliverPolicy.StartSequence,
              opt_start_seq: Math.max(1, opt_start_seq)
            })
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
export const readOrdered = (
  clients: ReadingClients,
  range: Range,
  fromSeq: number
): Stream.Stream<JsMsg, BrokerError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { consumer, pending, wants } = yield* openReading(clients, range, fromSeq)
      if (pending === 0 && range.follow !== true) return Stream.empty
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
      let last = fromSeq - 1
      const ended = isAtEnd(range.stream, consumer, () => last)
      return all.pipe(
        Stream.takeUntil((message) => message.info.pending === 0),
        Stream.interruptWhen(ended),
        Stream.tap(({ seq }) =>
          Effect.sync(() => {
            last = Math.max(last, seq)
          })
        ),
        Stream.filter(({ subject }) => wants(subject))
      )
    })
  )

/**
 * Returns the sequence of the first message at or after a time (ms since the epoch).
 *
 * The client cannot recreate a consumer that starts at a time after a gap: the broker rejects the
 * start time next to the sequence to resume from. It can recreate one that starts at a sequence.
 */
export const firstSince = Effect.fnUntraced(function* (
  js: JetStreamClient,
  stream: string,
  time: number
) {
  if (time <= 0) return 1
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

/**
 * Counts the messages stored since a time (ms since the epoch), of a subject or all: with the first one
 * the broker says how many follow. The stream must allow direct gets.
 */
export const countSince = (jsm: JetStreamManager, stream: string, since: number, subject = ">") =>
  Effect.map(
    readBatch(jsm, stream, subject, { time: since }, { batch: 1, max_bytes: 1 }),
    ([first]) => (first === undefined ? 0 : 1 + Number(first.header.get("Nats-Num-Pending")))
  )

/**
 * Reads messages of a subject in order, from a sequence or a time on, by one direct get. It returns
 * no more than the limits allow, but at least one if there is one. Any replica may answer, and may
 * lag.
 */
export const readBatch = Effect.fnUntraced(function* (
  jsm: JetStreamManager,
  stream: string,
  subject: string,
  from: BatchStart,
  limits: BatchLimits
) {
  const start =
    typeof from === "number"
      ? { seq: from }
      : from.time <= 0
        ? { seq: 1 }
        : { start_time: new Date(from.time).toISOString() }
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
          .getBatch(stream, { ...whole, ...start, next_by_subj: subject, callback })
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
