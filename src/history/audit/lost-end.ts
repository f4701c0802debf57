import { Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { Seen } from "../../broker/bulk-read.ts"
import { millisOf } from "../../broker/stream-message.ts"
import type { AuditProblem } from "./problem.ts"

/** The broker lost the end of a stream after it was read, as in a power cut. */
export class EndLost extends Schema.TaggedError<EndLost>()("EndLost", {
  of: Schema.Literals(["events", "history"]),
  /** The last sequence that was read, and the first one that is known to be lost. */
  to: Schema.Int,
  from: Schema.Int
}) {
  override get message() {
    return `${this.says}: audit again`
  }
  get says() {
    const stream = this.of === "events" ? "event stream" : "history"
    const what = this.from === this.to ? `${this.to}` : `${this.from} to ${this.to}`
    return `the broker lost the end of the ${stream} after it was read: what was ${what} is not there, or is another`
  }
  get problem(): AuditProblem {
    return this.of === "events"
      ? { kind: "event-gap", eventSeq: this.from, says: this.says }
      : { kind: "history-gap", seq: this.from, to: this.to, says: this.says }
  }
}

/** The position up to which a stream was read. */
export interface ReadPosition {
  readonly next: number
  readonly last: Pick<Seen, "nanoseconds" | "seq"> | undefined
}

/** Pause before a loss is believed, ms: a newly elected leader may need a moment to catch up. */
const retryPauseMs = 1_000

/**
 * Fails if a stream does not continue where it was left. A broker that lost the end of a stream
 * reuses the sequences, so a reader that continues would skip the new messages.
 */
export const goesOn = Effect.fnUntraced(function* (of: "events" | "history", left: ReadPosition) {
  const { names, readMessage, streamInfo } = yield* Broker
  const { last, next } = left
  if (last === undefined) return
  const stream = names[of]
  const look = Effect.gen(function* () {
    const { state } = yield* streamInfo(`look at ${stream}`, stream)
    if (state.last_seq < next - 1) return state.last_seq + 1
    const message = yield* readMessage(`look where ${stream} was left`, stream, { seq: last.seq })
    const isOther = message !== null && message.time.getTime() !== millisOf(last.nanoseconds)
    return isOther ? last.seq : undefined
  })
  if ((yield* look) === undefined) return
  const from = yield* Effect.delay(look, retryPauseMs)
  if (from !== undefined) return yield* new EndLost({ of, from, to: next - 1 })
})
