import type { StreamConfig, StreamInfo } from "@nats-io/jetstream"
import { DiscardPolicy } from "@nats-io/jetstream"
import { timers } from "../time/timers.ts"

/**
 * Key in a stream's metadata. When a limit of the stream was last raised, nothing stored since this
 * time (ISO 8601) had been dropped. Without it, messages dropped by a lower limit would look as if
 * removed by hand.
 */
const keptSinceKey = "petrel-kept-since"

/**
 * A stream that drops by size is nearly full all the time: it stays below its limit by at most its
 * largest message.
 */
const nearlyFull = 15 / 16

/** The part of the broker's stream information that is used here. */
export interface Held extends Pick<StreamInfo, "ts"> {
  readonly config: Pick<StreamConfig, "discard" | "max_age" | "max_bytes" | "metadata">
  readonly state: Pick<StreamInfo["state"], "bytes" | "first_seq" | "first_ts" | "messages">
}

/** The broker's clock, ms since the epoch. */
const clockOf = ({ ts }: Held): number => (ts === undefined ? timers.wallMs() : Date.parse(ts))

/**
 * Returns the time since which nothing was removed from the beginning of a stream, ms since the
 * epoch; 0 if nothing ever was.
 */
export const keptSince = (held: Held): number => {
  const { first_seq, first_ts, messages } = held.state
  if (first_seq <= 1) return 0
  return messages === 0 ? clockOf(held) : Date.parse(first_ts)
}

/**
 * Returns the time since which the broker has dropped nothing by age or size, ms since the epoch; 0
 * if it has dropped nothing at all. A message stored since then that is missing was removed by
 * hand.
 */
export const undroppedSince = (held: Held): number => {
  const { discard, max_age, max_bytes, metadata } = held.config
  const { bytes, first_seq } = held.state
  if (first_seq <= 1) return 0
  const dropsBySize = discard === DiscardPolicy.Old && max_bytes > 0
  return Math.max(
    max_age > 0 ? clockOf(held) - max_age / 1e6 : 0,
    Date.parse(metadata?.[keptSinceKey] ?? "") || 0,
    dropsBySize && bytes > max_bytes * nearlyFull ? keptSince(held) : 0
  )
}

/** Returns the new metadata of a stream if its limits are raised, and nothing otherwise. */
export const notingRaise = (
  wanted: Partial<StreamConfig>,
  held: Held
): { readonly metadata?: Record<string, string> } => {
  const { discard, max_age, max_bytes, metadata } = held.config
  const isRaised = (next: number | undefined, now: number) =>
    next !== undefined && now > 0 && (next <= 0 || next > now)
  const isNoted =
    isRaised(wanted.max_age, max_age) ||
    (discard === DiscardPolicy.Old && isRaised(wanted.max_bytes, max_bytes))
  const since = undroppedSince(held)
  return isNoted && since > 0
    ? { metadata: { ...metadata, [keptSinceKey]: new Date(since).toISOString() } }
    : {}
}
