import type { EventIdentity } from "./event.ts"
import { eventName, readEventName } from "./event.ts"

/** Where a source of EVENTS took a message: from which stream, and its sequence there. */
export interface Origin {
  /** By its name and, of another account, a fingerprint of how that is reached. */
  readonly stream: string
  readonly seq: number
}

const originPattern = /^(\S+) (\d+)(?: |$)/

/** The origin that a message's `Nats-Stream-Source` tells of; undefined where it tells of none. */
export const readOrigin = (header: string | undefined): Origin | undefined => {
  const [, stream, seq] = originPattern.exec(header ?? "") ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq) }
}

/** One word for an event's origin. The tenant is in it: what one brings is never taken for another's. */
export const originName = (tenant: string, { seq, stream }: Origin): string =>
  `${tenant}.${stream}.${seq}`

const repeats = "repeats-"

/** The reason in the plan of an event that a source brought again: the event that it repeats. */
export const repeatOf = (first: EventIdentity): string => `${repeats}${eventName(first)}`

/** The event that a reason names as the first of two; undefined where it names none. */
export const readRepeat = (reason: unknown): EventIdentity | undefined =>
  typeof reason === "string" && reason.startsWith(repeats)
    ? readEventName(reason.slice(repeats.length))
    : undefined

/**
 * Finds what a source brought again among events that are shown in their order: a source brings what
 * a stream holds in its order, and begins anew with something earlier after a restart only.
 */
export class Repeats {
  readonly #highest = new Map<string, number>()

  /** True where the same, or something later of the same stream, was shown before. */
  isRepeat(tenant: string, { seq, stream }: Origin): boolean {
    const key = `${tenant}.${stream}`
    const highest = this.#highest.get(key) ?? 0
    if (seq > highest) this.#highest.set(key, seq)
    return seq <= highest
  }
}
