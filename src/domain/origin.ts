import type { EventIdentity } from "./event.ts"
import { eventName, readEventName } from "./event.ts"
import type { GetHeader } from "./header-names.ts"
import type { Restart } from "./names.ts"
import { readRestart } from "./names.ts"

/** The message that a source copied: its stream, and its sequence there. */
export interface Origin {
  /**
   * The stream's name. For a stream of another account, also a fingerprint of how it is reached.
   */
  readonly stream: string
  readonly seq: number
  /** The last restart of the source before it copied the message; absent if there was none. */
  readonly restart?: Restart
}

const originPattern = /^(\S+) (\d+)(?: |$)/

/** Returns the origin that a message's `Nats-Stream-Source` header names, or undefined. */
export const readOrigin = (header: string | undefined): Origin | undefined => {
  const [, stream, seq] = originPattern.exec(header ?? "") ?? []
  if (stream === undefined) return undefined
  const restart = readRestart(header ?? "")
  return { stream, seq: Number(seq), ...(restart === undefined ? {} : { restart }) }
}

/**
 * Identifies the sequences that a stream gave to one message each. After the stream has lost its
 * end, the lost sequences are given again and count with those of the restart.
 */
const sequencesOf = (tenant: string, { restart, seq, stream }: Origin): string =>
  restart !== undefined && seq <= restart.lostThrough
    ? `${tenant}.${stream}.r${restart.number}`
    : `${tenant}.${stream}`

/**
 * Returns one word for an event's origin. It contains the tenant, so that an event of one tenant is
 * never taken for another's, and differs for messages that had the same sequence one after the other.
 */
export const originName = (tenant: string, origin: Origin): string =>
  `${sequencesOf(tenant, origin)}.${origin.seq}`

/** True for what a restarted source brings although it was copied before the restart. */
export const isBroughtAgain = ({ restart, seq }: Origin): boolean =>
  restart !== undefined && seq > restart.lostThrough && seq <= restart.copiedThrough

const repeats = "repeats-"

/**
 * The event that a repeat repeats. After a restart of a source its position is not searched: the
 * origin shows that it is a repeat.
 */
export type Repeated = EventIdentity | "restart"

/**
 * Returns the reason in the plan of an event that a source published again. It names the first
 * event.
 */
export const repeatOf = (first: Repeated): string =>
  `${repeats}${first === "restart" ? first : eventName(first)}`

/** Returns what such a reason names, or undefined. */
export const readRepeat = (reason: unknown): Repeated | undefined => {
  if (typeof reason !== "string" || !reason.startsWith(repeats)) return undefined
  const first = reason.slice(repeats.length)
  return first === "restart" ? first : readEventName(first)
}

/**
 * Detects events that a source published again. Events must be shown in order: a source publishes
 * the messages of a stream in order, and goes back to an earlier one only after a restart.
 */
export class Repeats {
  readonly #highest = new Map<string, number>()

  /** Returns true if this message, or a later one of its stream, was shown before. */
  isRepeat(tenant: string, origin: Origin): boolean {
    const { seq } = origin
    const key = sequencesOf(tenant, origin)
    const highest = this.#highest.get(key) ?? 0
    if (seq > highest) this.#highest.set(key, seq)
    return seq <= highest || isBroughtAgain(origin)
  }
}

/** The header by which the API says how an event was published through it. */
export const channelHeader = "petrel-channel"

/** How an event comes through the API: over HTTP, or as a request over NATS. */
const apiChannels = ["http", "nats-api"] as const
export type ApiChannel = (typeof apiChannels)[number]

/** How an event came that was published to its subject. */
export const directChannel = "nats"

/**
 * Returns how an event came: through the API, or copied from a stream (`stream:ORDERS`). Undefined
 * for one that was published to its subject, as any is that says nothing else of itself.
 */
export const channelOf = (get: GetHeader): string | undefined => {
  const origin = readOrigin(get("nats-stream-source"))
  if (origin !== undefined) return `stream:${origin.stream}`
  const named = get(channelHeader)
  return apiChannels.find((channel) => channel === named)
}
