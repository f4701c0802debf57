import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"

/** How far somebody has read the history. */
export interface ReadingPosition {
  /** Sequence of the last fact that was read; 0 for none. */
  readonly seq: number
  /** When that fact was stored, ns since the epoch, as text; empty if that is not known. */
  readonly nanoseconds: string
}

/** Converts the broker's time, as RFC 3339 text with up to nine decimals. */
const nanosecondsOf = (timestamp: string): string => {
  const [whole = "", fraction = ""] = timestamp.replace("Z", "").split(".")
  return `${Date.parse(`${whole}Z`) / 1_000}${fraction.padEnd(9, "0")}`
}

/**
 * Returns true if the end of the history shows that it may not be the one that was read up to the
 * position: it ends before, or there and with another fact.
 */
export const hasOtherEnd = (
  { nanoseconds, seq }: ReadingPosition,
  state: { readonly last_seq: number; readonly last_ts: string }
): boolean =>
  seq > state.last_seq ||
  (seq === state.last_seq && nanoseconds !== "" && nanosecondsOf(state.last_ts) !== nanoseconds)

/**
 * Compares the history with the one that was read up to the position. It is another one if it ends
 * before, or has another fact there. A fact that the history no longer holds says nothing.
 */
export const compareHistory = Effect.fnUntraced(function* ({
  nanoseconds,
  seq
}: ReadingPosition): Effect.fn.Return<"other" | "same" | "unknown", BrokerError, Broker> {
  if (seq === 0) return "unknown"
  const { names, readMessage, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  if (seq > state.last_seq) return "other"
  if (seq < state.first_seq || nanoseconds === "") return "unknown"
  const message = yield* readMessage("compare the history", names.history, { seq })
  if (message === null) return "unknown"
  return nanosecondsOf(message.timestamp) === nanoseconds ? "same" : "other"
})
