import type { StreamInfoRequestOptions } from "@nats-io/jetstream"
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream"
import { createInbox, nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import type { Broker, ReadingOptions, Seen } from "./broker.ts"
import { ask, askForState, isForbidden, isNoSuchMessage } from "./broker-error.ts"
import type { Clients } from "./clients.ts"
import { makeConsumer } from "./make-consumer.ts"
import {
  countSince,
  firstSince,
  openFastest,
  readBatch,
  readOrdered,
  seeOrdered
} from "./nats-reads.ts"
import type { Pull } from "./pull.ts"
import { pullWith } from "./pull.ts"
import { TakeTurns } from "./take-turns.ts"

/** Messages per request. Two requests are open, so that the broker is never idle. */
const messagesPerRequest = 2_000
/** After a silence of this length, ms, the reading ends: its caller looks whether there is more. */
const silenceMs = 2_000

/** Reads until the end, a lost message or a silence; returns the next sequence to read. */
export const readRun = Effect.fnUntraced(function* (
  { connection, jsm }: Pick<Clients, "connection" | "jsm">,
  options: ReadingOptions,
  see: (seen: Seen) => void
) {
  const { stream, to } = options
  const open = (filters: ReadonlyArray<string>) =>
    Effect.acquireRelease(
      ask(`read ${stream}`, () =>
        jsm.consumers.add(stream, {
          ack_policy: AckPolicy.None,
          deliver_policy: DeliverPolicy.StartSequence,
          opt_start_seq: options.from,
          filter_subjects: [...filters],
          headers_only: options.headersOnly ?? false,
          inactive_threshold: nanos(60_000),
          mem_storage: true,
          num_replicas: 1
        })
      ),
      ({ name }) =>
        Effect.sync(() => void jsm.consumers.delete(stream, name).catch(() => undefined))
    ).pipe(Effect.map((consumer) => ({ consumer, pending: consumer.num_pending })))
  const { consumer, pending, wants } = yield* openFastest(jsm, options, options.from, open)
  if (pending === 0) return options.from
  return yield* Effect.callback<number>((resume) => {
    const inbox = createInbox()
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer.name}`
    let next = options.from
    let count = 0
    let lastCount = -1
    let ended = false
    const end = () => {
      if (ended) return
      ended = true
      timers.cancel(watch)
      subscription.unsubscribe()
      resume(Effect.succeed(next))
    }
    const request = () =>
      connection.isClosed()
        ? end()
        : connection.publish(
            subject,
            JSON.stringify({ batch: messagesPerRequest, expires: nanos(60_000) }),
            {
              reply: inbox
            }
          )
    const subscription = connection.subscribe(inbox, {
      callback: (error, message) => {
        if (ended || error !== null || !message.reply?.startsWith("$JS.ACK.")) return
        const tokens = message.reply.split(".")
        const at = tokens.length === 9 ? 5 : 7
        // A broken connection lost messages: another consumer reads them again.
        if (Number(tokens[at + 1]) !== count + 1) return end()
        count++
        const seq = Number(tokens[at])
        if (seq > to) {
          next = seq
          return end()
        }
        next = seq + 1
        if (wants(message.subject)) see({ message, seq, nanoseconds: tokens[at + 2] ?? "0" })
        if (next > to || tokens[at + 3] === "0") return end()
        if (count % messagesPerRequest === 0) request()
      }
    })
    const watch = timers.every(silenceMs, () => {
      if (count === lastCount) end()
      lastCount = count
    })
    request()
    request()
    return Effect.sync(end)
  })
}, Effect.scoped)

/** The subject on which each server tells a client who it is, whatever its account. */
const userInfo = "$SYS.REQ.USER.INFO"
/** Time-out of that question, ms. */
const answerWithinMs = 5_000

/** Returns whether a consumer hands out no bodies, true if that cannot be known now. */
const headersOnlyOf =
  ({ jsm }: Pick<Clients, "jsm">) =>
  ({ consumer, stream }: Pull) =>
    ask(`look at the consumer of ${stream}`, () => jsm.consumers.info(stream, consumer)).pipe(
      Effect.map(({ config }) => config.headers_only === true),
      Effect.orElseSucceed(() => true)
    )

const entryOf =
  ({ bucket }: Pick<Clients, "bucket">): Broker["Service"]["entry"] =>
  (name, key) =>
    Effect.flatMap(bucket(name), (kv) =>
      askForState(ask(`read ${key} in KV_${name}`, () => kv.get(key)))
    )

/** Returns the broker's operations, carried out by the NATS clients. */
export const operationsOf = (
  clients: Clients,
  onReconnect: Broker["Service"]["onReconnect"]
): Omit<Broker["Service"], "names" | "oneOfFew"> => {
  const { bucket, connection, js, jsm, publisher, wire } = clients
  const { outbound } = publisher
  const turns = { deliveries: new TakeTurns(), events: new TakeTurns() }
  const failedPulls = new Set<Pull>()
  let mayList = true
  return {
    publish: (subject, body, headers, life) => publisher.publish(subject, body, headers, life),
    send: (subject, body, headers, settle) => publisher.send(subject, body, headers, settle),
    life: () => outbound.life,
    unanswered: () => publisher.unanswered.streams(timers.monotonicMs()),
    largestMessage: () => outbound.largest,
    pull: (options) =>
      pullWith(wire, outbound, turns, onReconnect, failedPulls, headersOnlyOf(clients), options),
    failedPulls: () => [...new Set([...failedPulls].map(({ stream }) => stream))],
    readMessage: (operation, stream, query) =>
      Effect.catchIf(
        askForState(ask(operation, () => jsm.streams.getMessage(stream, query))),
        isNoSuchMessage,
        () => Effect.succeed(null)
      ),
    batch: (stream, subject, from, limits) => readBatch(jsm, stream, subject, from, limits),
    read: (range, fromSeq) => readOrdered(clients, range, fromSeq),
    see: (range, fromSeq, see) => seeOrdered(clients, range, fromSeq, see),
    readRun: (options, see) => readRun(clients, options, see),
    firstSince: (stream, time) => firstSince(js, stream, time),
    countSince: (stream, since, subject) => countSince(jsm, stream, since, subject),
    entry: entryOf(clients),
    watch: (name) =>
      Effect.flatMap(bucket(name), (kv) =>
        Effect.acquireRelease(
          ask(`watch ${name}`, () => kv.watch()),
          (entries) => Effect.sync(() => entries.stop())
        )
      ),
    streamInfo: (operation, stream, options) =>
      askForState(
        ask(operation, () =>
          jsm.streams.info(stream, options as Partial<StreamInfoRequestOptions> | undefined)
        )
      ),
    streamNames: (operation, subject) =>
      ask(operation, async () => {
        const names: Array<string> = []
        for await (const name of jsm.streams.names(subject)) names.push(name)
        return names
      }),
    listStreams: (operation) =>
      Effect.suspend(() =>
        mayList ? ask(operation, () => jsm.streams.list().next()) : Effect.succeed([])
      ).pipe(
        // Each attempt is a line in the broker's log, so it is asked once.
        Effect.catchIf(isForbidden, () => {
          mayList = false
          return Effect.succeed([])
        })
      ),
    consumerInfo: (operation, stream, consumer) =>
      askForState(ask(operation, () => jsm.consumers.info(stream, consumer))),
    makeConsumer: (operation, stream, config) =>
      ask(operation, () => makeConsumer(clients, stream, config)),
    deleteMessage: (operation, stream, seq) =>
      Effect.catchIf(
        ask(operation, () => jsm.streams.deleteMessage(stream, seq, false)),
        isNoSuchMessage,
        () => Effect.succeed(false)
      ),
    purge: (operation, stream, options) => ask(operation, () => jsm.streams.purge(stream, options)),
    say: (subject, body, reply) => {
      if (connection.isClosed()) return
      connection.publish(subject, body, reply === undefined ? undefined : { reply })
    },
    listen: (subject, receive, onPermission) => wire.subscribe(subject, receive, onPermission),
    inbox: () => wire.inbox(),
    flush: ask("flush", () => connection.flush()),
    server: () => connection.info ?? {},
    userInfo: ask("ask as whom the broker knows us", async () =>
      (await connection.request(userInfo, "", { timeout: answerWithinMs })).string()
    ),
    onReconnect,
    closed: Effect.promise(() => connection.closed()),
    isClosed: () => connection.isClosed()
  }
}
