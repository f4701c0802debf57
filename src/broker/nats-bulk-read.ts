import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream"
import { createInbox, nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import type { ReadingOptions, Seen } from "./broker.ts"
import { ask } from "./broker-error.ts"
import type { Clients } from "./clients.ts"

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
