import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream"
import type { Msg } from "@nats-io/transport-node"
import { createInbox, nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import { Broker } from "./broker.ts"
import { BrokerError } from "./broker-error.ts"
import { natsClients } from "./clients.ts"

/** A message that was read; valid until the callback returns. */
export interface Seen {
  readonly message: Msg
  readonly seq: number
  /** When the broker stored it, ns since the epoch, as text. */
  readonly nanoseconds: string
}

export interface ReadingOptions {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  /** Sequences, both inclusive. */
  readonly from: number
  readonly to: number
  /** Read without bodies. (Default: false) */
  readonly headersOnly?: boolean
  /** The message that was read before `from`, where the reading goes on from an earlier one. */
  readonly after?: Pick<Seen, "nanoseconds" | "seq"> | undefined
}

/** Messages per request. Two requests are open, so that the broker is never idle. */
const messagesPerRequest = 2_000
/** After a silence of this length, ms, the end of the stream is checked. */
const silenceMs = 2_000
/** How long a replica that serves the reading may show nothing while it lags, ms. */
const maxSilenceMs = 60_000

/**
 * Reads a range of a stream, in order and each message once, up to the end that the stream's leader
 * has: waits for a replica that lags. Costs a third of the client's own iterator. Fails if the stream
 * is deleted, or if nothing arrives for a minute although there is more.
 *
 * Fails also where it goes on after another message than the one that was read last: a broker that
 * loses the end of a stream gives its sequences to other messages. A message that was removed says
 * nothing.
 */
export const readThrough = Effect.fnUntraced(function* (
  options: ReadingOptions,
  see: (seen: Seen) => void
) {
  const { from, stream, to } = options
  const operation = `read ${stream}`
  // A stream that never had a message begins at 0, where no consumer can.
  let next = Math.max(1, from)
  let last = options.after?.nanoseconds === "" ? undefined : options.after
  let isOther = false
  const seeNext = (seen: Seen) => {
    if (last?.seq === seen.seq) isOther = last.nanoseconds !== seen.nanoseconds
    else if (!isOther) {
      last = seen
      see(seen)
    }
  }
  let silentSince = timers.monotonicMs()
  while (next <= to) {
    const before = next
    next = Math.max(next, yield* readOn({ ...options, from: last?.seq ?? next }, seeNext))
    if (isOther)
      return yield* new BrokerError({
        operation,
        cause: new Error("the broker has lost the end of what was read")
      })
    if (next > to) return
    if (yield* isAtEnd(options, next)) return
    if (next > before) silentSince = timers.monotonicMs()
    else if (timers.monotonicMs() - silentSince > maxSilenceMs)
      return yield* new BrokerError({ operation, cause: new Error("the broker broke off") })
    yield* Effect.sleep("100 millis")
  }
})

/** True if the leader has nothing more in the range: the last messages may have been removed. */
const isAtEnd = Effect.fnUntraced(function* (
  { stream, subjects, to }: ReadingOptions,
  seq: number
) {
  const { readMessage } = yield* Broker
  for (const next_by_subj of subjects) {
    const query = { seq, next_by_subj }
    const message = yield* readMessage(`look for the end of ${stream}`, stream, query)
    if (message !== null && message.seq <= to) return false
  }
  return true
})

/** Reads until the end, a lost message or a silence; returns the next sequence to read. */
const readOn = Effect.fnUntraced(function* (options: ReadingOptions, see: (seen: Seen) => void) {
  const { ask, connection, isClosed, jsm } = yield* natsClients
  const { stream, subjects, to } = options
  const consumer = yield* Effect.acquireRelease(
    ask(`read ${stream}`, () =>
      jsm.consumers.add(stream, {
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: options.from,
        filter_subjects: [...subjects],
        headers_only: options.headersOnly ?? false,
        inactive_threshold: nanos(60_000),
        mem_storage: true,
        num_replicas: 1
      })
    ),
    ({ name }) => Effect.sync(() => void jsm.consumers.delete(stream, name).catch(() => undefined))
  )
  if (consumer.num_pending === 0) return options.from
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
      isClosed()
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
        see({ message, seq, nanoseconds: tokens[at + 2] ?? "0" })
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
