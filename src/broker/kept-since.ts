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
 * Key in the metadata of the event stream: the age (ms) above which workers remove what was routed.
 * The stream has no age limit of its own, by which the broker would remove unrouted events, too.
 */
const routedAgeKey = "petrel-max-age-ms"

/** The metadata by which workers remove routed events above an age, ms. */
export const routedAge = (ageMs: number): Record<string, string> => ({
  [routedAgeKey]: String(ageMs)
})

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

/** Returns the age above which a stream's messages are removed, ms; 0 for none. */
export const ageLimitMs = ({
  max_age = 0,
  metadata
}: Partial<Pick<StreamConfig, "max_age" | "metadata">>): number =>
  Number(metadata?.[routedAgeKey]) || Math.max(0, max_age / 1e6)

/** The broker's clock, ms since the epoch. */
export const clockOf = ({ ts }: Pick<StreamInfo, "ts">): number =>
  ts === undefined ? timers.wallMs() : Date.parse(ts)

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
  const { discard, max_bytes, metadata } = held.config
  const { bytes, first_seq } = held.state
  if (first_seq <= 1) return 0
  const ageMs = ageLimitMs(held.config)
  const dropsBySize = discard === DiscardPolicy.Old && max_bytes > 0
  return Math.max(
    ageMs > 0 ? clockOf(held) - ageMs : 0,
    Date.parse(metadata?.[keptSinceKey] ?? "") || 0,
    dropsBySize && bytes > max_bytes * nearlyFull ? keptSince(held) : 0
  )
}

/**
 * Returns the metadata of a stream that is made again after it was removed: what it held before is
 * not known, as if it had been dropped.
 *
 * @param nowMs ms since the epoch.
 */
export const madeAgain = (
  { metadata }: Partial<Pick<StreamConfig, "metadata">>,
  nowMs: number
): { readonly metadata: Record<string, string> } => ({
  metadata: { ...metadata, [keptSinceKey]: new Date(nowMs).toISOString() }
})

/** Returns the new metadata of a stream, if they change: its own, and what a raised limit had dropped. */
export const notingRaise = (
  wanted: Partial<StreamConfig>,
  held: Held
): { readonly metadata?: Record<string, string> } => {
  const { discard, max_bytes, metadata } = held.config
  const isRaised = (next: number | undefined, now: number) =>
    next !== undefined && now > 0 && (next <= 0 || next > now)
  const isNoted =
    isRaised(namesAge(wanted) ? ageLimitMs(wanted) : undefined, ageLimitMs(held.config)) ||
    (discard === DiscardPolicy.Old && isRaised(wanted.max_bytes, max_bytes))
  const since = undroppedSince(held)
  const noted = isNoted && since > 0 ? { [keptSinceKey]: new Date(since).toISOString() } : undefined
  return noted === undefined && wanted.metadata === undefined
    ? {}
    : { metadata: { ...metadata, ...wanted.metadata, ...noted } }
}

const namesAge = ({ max_age, metadata }: Partial<StreamConfig>): boolean =>
  max_age !== undefined || metadata?.[routedAgeKey] !== undefined
