import { timers } from "../time/timers.ts"
import type { HeaderList, PubAck, PublishError } from "./publication.ts"
import type { SlotMap } from "./slot-map.ts"

export type Settle = (result: PubAck | PublishError) => void

/** A publish in flight. Times are from timers.monotonicMs. */
export interface PendingPublication {
  readonly subject: string
  readonly headers: HeaderList
  /** The body, if it is text and short enough to be kept. */
  body: string | undefined
  readonly sentAt: number
  /** Number of the connection that it was sent on. */
  readonly sentOn: number
  /** The caller's callback; undefined once the publish has timed out. */
  settle: Settle | undefined
  /** When the publish times out. */
  deadline: number
  /** True if it has taken longer than the configured time-out. */
  isSlow: boolean
}

/** A publish that has timed out, kept for its late answer and its next attempt. */
interface Late {
  readonly token: number
  readonly publication: PendingPublication
  /** Token of the next attempt, if one was sent. */
  again: number | undefined
  /** The late acknowledgement, if it has arrived. */
  ack: PubAck | undefined
}

/** The time-out grows up to this multiple of the configured one. */
const maxTimeoutFactor = 6
/** A timed out publish is remembered for this multiple of the configured time-out. */
const rememberedFactor = 12
/** Maximum number of remembered publishes, and of characters of each body. */
const maxLatePublications = 4_096
const maxLateBodyLength = 4_096
/** The time-out is this multiple of the recent slowest acknowledgement. */
const slowestFactor = 2

/**
 * Turns the acknowledgement of one publish into that of another under the same id, as the broker
 * would answer: unless the body is known to be the same, it is a duplicate.
 */
const answerTo = (ack: PubAck, one: string | undefined, other: unknown): PubAck =>
  one !== undefined && one === other ? ack : { ...ack, duplicate: true }

/**
 * Returns a key that is equal for attempts to publish the same message; undefined for a message
 * without id.
 */
const keyOf = (subject: string, headers: HeaderList): string | undefined => {
  for (const [name, value] of headers) if (name === "Nats-Msg-Id") return `${value} ${subject}`
  return undefined
}

/**
 * The publishes that have timed out, and how slow the broker is. A broker that is slower than the
 * time-out still stores what it is sent. So that such a broker counts as slow and not as failed, late
 * acknowledgements are used:
 * - While acknowledgements are slow, the time-out grows with them, up to {@link maxTimeoutFactor}
 *   times the configured one.
 * - A publish that repeats the id of an unanswered one first waits for that answer. It is sent
 *   again only after twice the time-out: more of the same makes a slow broker slower. If the
 *   connection of the earlier publish is gone, no answer comes, and it is sent at once.
 * - If the answer has arrived in between, it is used. Unless the body is known to be the same, the
 *   publish counts as a duplicate.
 *
 * None of this delays a message: it is sent within the configured time-out or not at all.
 */
export class LatePublications {
  readonly #configuredMs: number
  /** The publishes that an answer may still come for, by the token of their reply subject. */
  readonly #outstanding: SlotMap<PendingPublication>
  /** Timed out publishes by `keyOf`, or by token if they have no id. */
  readonly #byKey = new Map<string, Late>()
  #timeoutMs: number
  /** The recent slowest acknowledgement, ms, and when the last slow one arrived. */
  #slowest = 0
  #slowAt = Number.NEGATIVE_INFINITY

  /** @param timeoutMs the configured time-out, ms. */
  constructor(timeoutMs: number, outstanding: SlotMap<PendingPublication>) {
    this.#configuredMs = timeoutMs
    this.#timeoutMs = timeoutMs
    this.#outstanding = outstanding
  }

  /** The time-out of a publish that is sent now, ms. */
  get timeoutMs(): number {
    return this.#timeoutMs
  }

  /** Returns the earlier publish of the same message; undefined if none has timed out. */
  earlier(subject: string, headers: HeaderList): Late | undefined {
    if (this.#byKey.size === 0) return undefined
    const key = keyOf(subject, headers)
    return key === undefined ? undefined : this.#byKey.get(key)
  }

  /**
   * Lets a repeated publish wait for the answer to the earlier one. Returns false if it must be sent
   * instead.
   */
  awaits(
    { ack, again, publication }: Late,
    body: Uint8Array | string,
    now: number,
    settle: Settle
  ): boolean {
    if (ack !== undefined) {
      this.#drop(publication)
      settle(answerTo(ack, publication.body, body))
      return true
    }
    const until = publication.sentAt + slowestFactor * this.#timeoutMs
    if (again !== undefined || until <= now) return false
    this.#drop(publication)
    publication.settle = (result) =>
      settle(result instanceof Error ? result : answerTo(result, publication.body, body))
    publication.deadline = Math.min(now + this.#timeoutMs, until)
    return true
  }

  /** Handles a late answer: the next attempt of the same publish may still be waiting. */
  answered(
    token: number,
    { headers, subject }: PendingPublication,
    result: PubAck | PublishError
  ): void {
    this.#byKey.delete(`${token}`)
    const late = this.earlier(subject, headers)
    if (late?.token !== token) return
    if (result instanceof Error) {
      this.#drop(late.publication)
      return
    }
    const again = late.again === undefined ? undefined : this.#outstanding.take(late.again)
    late.ack = result
    if (again?.settle === undefined) return
    this.#drop(late.publication)
    again.settle(answerTo(result, late.publication.body, again.body))
  }

  /** Lets the time-out grow with an answer that took this long, ms. */
  wasSlow(took: number): void {
    this.#slowAt = timers.monotonicMs()
    this.#slowest = Math.max(took, (7 * this.#slowest + took) / 8)
    this.#timeoutMs = Math.min(maxTimeoutFactor * this.#configuredMs, slowestFactor * this.#slowest)
  }

  /** Remembers a timed out publish, whose answer may still arrive. */
  keep(token: number, publication: PendingPublication): boolean {
    if (this.#byKey.size >= maxLatePublications) return false
    const key = keyOf(publication.subject, publication.headers) ?? `${token}`
    if ((publication.body?.length ?? 0) > maxLateBodyLength) publication.body = undefined
    const before = this.#byKey.get(key)
    if (before?.ack !== undefined) return false
    // Keep the earlier one too: the time that its answer takes still counts.
    if (before !== undefined) this.#byKey.set(`${before.token}`, before)
    this.#byKey.set(key, { token, publication, again: undefined, ack: undefined })
    return true
  }

  /** Forgets what is too old, and the slowness of long ago. */
  sweep(now: number): void {
    const longAgo = now - rememberedFactor * this.#configuredMs
    if (this.#timeoutMs > this.#configuredMs && this.#slowAt < longAgo) {
      this.#timeoutMs = this.#configuredMs
      this.#slowest = 0
    }
    this.#forget(({ sentAt }) => sentAt < longAgo)
  }

  /** Forgets all: their connection is gone, and no answer comes. */
  clear(): void {
    this.#forget(() => true)
  }

  #drop({ headers, subject }: PendingPublication): void {
    const key = keyOf(subject, headers)
    if (key !== undefined) this.#byKey.delete(key)
  }

  #forget(isOver: (publication: PendingPublication) => boolean): void {
    for (const [key, { publication, token }] of this.#byKey) {
      if (!isOver(publication)) continue
      this.#byKey.delete(key)
      this.#outstanding.take(token)
    }
  }
}
