import type { StreamConfig, StreamInfo } from "@nats-io/jetstream"
import { DiscardPolicy } from "@nats-io/jetstream"

/**
 * In a stream's metadata: what was stored since this time (ISO 8601) had not been dropped when a limit
 * of the stream was last raised. Without it, what a lower limit dropped would look removed by hand.
 */
const keptSinceKey = "petrel-kept-since"

/** A stream that drops by size holds nearly as much as it may: all but its largest message. */
const nearlyFull = 15 / 16

/** What the broker says of a stream, as far as this looks at it. */
export interface Held extends Pick<StreamInfo, "ts"> {
  readonly config: Pick<StreamConfig, "discard" | "max_age" | "max_bytes" | "metadata">
  readonly state: Pick<StreamInfo["state"], "bytes" | "first_seq" | "first_ts" | "messages">
}

/** The broker's clock, ms since the epoch. */
const clockOf = ({ ts }: Held): number => (ts === undefined ? Date.now() : Date.parse(ts))

/** Since when nothing has left the beginning of a stream, ms since the epoch; 0: since the beginning. */
export const keptSince = (held: Held): number => {
  const { first_seq, first_ts, messages } = held.state
  if (first_seq <= 1) return 0
  return messages === 0 ? clockOf(held) : Date.parse(first_ts)
}

/**
 * What was stored since then, ms since the epoch, the broker has dropped neither by age nor by size:
 * where it is not there, somebody removed it. 0: nothing was dropped.
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

/** What a stream's metadata are to be where its limits are raised; nothing where they are not. */
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
