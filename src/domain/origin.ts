import type { EventIdentity } from "./event.ts"
import { eventName, readEventName } from "./event.ts"

/** The message that a source of EVENTS copied: its stream, and its sequence there. */
export interface Origin {
  /**
   * The stream's name. For a stream of another account, also a fingerprint of how it is reached.
   */
  readonly stream: string
  readonly seq: number
}

const originPattern = /^(\S+) (\d+)(?: |$)/

/** Returns the origin that a message's `Nats-Stream-Source` header names, or undefined. */
export const readOrigin = (header: string | undefined): Origin | undefined => {
  const [, stream, seq] = originPattern.exec(header ?? "") ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq) }
}

/**
 * Returns one word for an event's origin. It contains the tenant, so that an event of one tenant is
 * never taken for another's.
 */
export const originName = (tenant: string, { seq, stream }: Origin): string =>
  `${tenant}.${stream}.${seq}`

const repeats = "repeats-"

/**
 * Returns the reason in the plan of an event that a source published again. It names the first
 * event.
 */
export const repeatOf = (first: EventIdentity): string => `${repeats}${eventName(first)}`

/** Returns the first event that such a reason names, or undefined. */
export const readRepeat = (reason: unknown): EventIdentity | undefined =>
  typeof reason === "string" && reason.startsWith(repeats)
    ? readEventName(reason.slice(repeats.length))
    : undefined

/**
 * Detects events that a source published again. Events must be shown in order: a source publishes
 * the messages of a stream in order, and goes back to an earlier one only after a restart.
 */
export class Repeats {
  readonly #highest = new Map<string, number>()

  /** Returns true if this message, or a later one of its stream, was shown before. */
  isRepeat(tenant: string, { seq, stream }: Origin): boolean {
    const key = `${tenant}.${stream}`
    const highest = this.#highest.get(key) ?? 0
    if (seq > highest) this.#highest.set(key, seq)
    return seq <= highest
  }
}
