import type { JsMsg, OrderedConsumerOptions, StoredMsg } from "@nats-io/jetstream"
import { DeliverPolicy } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { Broker, BrokerError } from "./connection.ts"

/** Which messages of a stream to read. Sequences are inclusive; times in ms since the epoch. */
export interface Range {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  readonly fromSeq?: number | undefined
  readonly fromTime?: number | undefined
  /** Go on with what is stored later. (Default: end with what is there now) */
  readonly follow?: boolean
}

/**
 * Messages of a stream that keeps what was read (a work queue takes no second consumer: `scanQueue`).
 * Reads through an ordered consumer, which the client makes anew after a gap.
 */
export const readStream = (range: Range): Stream.Stream<JsMsg, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { ask, js } = yield* Broker
      const consumer = yield* ask(`read ${range.stream}`, () =>
        js.consumers.get(range.stream, startOf(range))
      )
      const info = yield* ask(`read ${range.stream}`, () => consumer.info())
      if (info.num_pending === 0 && range.follow !== true) return Stream.empty
      const messages = yield* Effect.acquireRelease(
        ask(`read ${range.stream}`, () => consumer.consume({ max_messages: 1_000 })),
        (messages) => Effect.sync(() => messages.stop())
      )
      const all = Stream.fromAsyncIterable(
        messages,
        (cause) => new BrokerError({ operation: `read ${range.stream}`, cause })
      )
      if (range.follow === true) return all
      return all.pipe(Stream.takeUntil((message) => message.info.pending === 0))
    })
  )

const startOf = (range: Range): Partial<OrderedConsumerOptions> => {
  const filter = { filter_subjects: [...range.subjects] }
  if (range.fromSeq !== undefined && range.fromSeq > 1)
    return { ...filter, deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: range.fromSeq }
  if (range.fromTime !== undefined && range.fromTime > 0)
    return {
      ...filter,
      deliver_policy: DeliverPolicy.StartTime,
      opt_start_time: new Date(range.fromTime).toISOString()
    }
  return filter
}

const batchSize = 256

/**
 * Everything that is stored under a subject of a work queue, delivered or not, by batched direct get.
 * Sees what was there when it began; what is settled meanwhile may or may not appear.
 */
export const scanQueue = (
  stream: string,
  subject: string
): Stream.Stream<StoredMsg, BrokerError, Broker> =>
  Stream.paginate(1, (seq: number) =>
    Effect.gen(function* () {
      const batch = yield* readBatch(stream, subject, seq)
      const last = batch.at(-1)
      const next =
        last === undefined || batch.length < batchSize
          ? Option.none<number>()
          : Option.some(last.seq + 1)
      return [batch, next] as const
    })
  )

const readBatch = Effect.fnUntraced(function* (stream: string, subject: string, seq: number) {
  const { ask, jsm } = yield* Broker
  return yield* ask(
    `read ${subject}`,
    () =>
      new Promise<Array<StoredMsg>>((resolve, reject) => {
        const list: Array<StoredMsg> = []
        // The client's iterator form leaks its subscription; its callback form does not.
        const callback = (done: { readonly err?: Error } | null, message: StoredMsg) => {
          if (done === null) list.push(message)
          else if (done.err === undefined) resolve(list)
          else reject(done.err)
        }
        const options = { seq, next_by_subj: subject, batch: batchSize, callback }
        jsm.direct.getBatch(stream, options).catch(reject)
      })
  )
})
