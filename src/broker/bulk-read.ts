import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import { Broker, type ReadingOptions, type Seen } from "./broker.ts"
import { BrokerError } from "./broker-error.ts"

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
  const { readRun } = yield* Broker
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
    next = Math.max(next, yield* readRun({ ...options, from: last?.seq ?? next }, seeNext))
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
