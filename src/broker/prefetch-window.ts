import { Effect } from "effect"
import { elapsedMs } from "../time/elapsed.ts"
import { timers } from "../time/timers.ts"
import type { Linked } from "./intrusive-list.ts"
import { IntrusiveList } from "./intrusive-list.ts"
import type { PullDemand } from "./puller.ts"
import type { StreamMessage } from "./stream-message.ts"

/** The part of a message that is used here. */
export type PrefetchedMessage = Pick<StreamMessage, "data" | "working">

/** A prefetched message. */
export interface Prefetched extends Linked<Prefetched> {
  readonly message: PrefetchedMessage
  /** Whose it is, where that is known. */
  readonly tenant: string
  /** ms of the monotonic clock */
  readonly since: number
  /** Number of deliveries that the message stands for. */
  parts: number
  /** True if `parts` is known, not assumed. */
  isWeighed: boolean
  /** True if the message no longer counts against the capacity of this window. */
  isExcluded: boolean
  /** Called when it has gone, where it is held beside the window. */
  letGo: (() => void) | undefined
}

/** Limits of what may be prefetched at the same time: deliveries, and bytes of message bodies. */
export interface PrefetchLimits {
  readonly deliveries: number
  readonly bytes: number
  /**
   * Deliveries at the beginning. For each message that is released, as many more are added as it
   * stood for, up to `deliveries`. (Default: `deliveries`)
   */
  readonly atFirst?: number
  /** Initial estimate of the deliveries that a message stands for. (Default: 1) */
  readonly usualParts?: number
  /**
   * Holds a message beside the window, where its tenant crowds that: then it leaves the window, and
   * messages of others find capacity. Returns what is called when it has gone; undefined where its tenant
   * may not have more held. (Default: none is held)
   */
  readonly hold?: (tenant: string, bytes: number) => (() => void) | undefined
}

/**
 * Share of the capacity that must be free before a request is worthwhile, and how often to check
 * for less, ms.
 */
const minFreeShare = 1 / 2
const freeCheckMs = 5
/** Messages of a tenant that crowds the window are held beside it after this time, ms. */
const crowdingMs = 50
/** How long `hasCapacity` waits at most, ms. */
const maxKeepAliveMs = 1_000

/**
 * The messages that a process has received and not settled. The broker would redeliver them after
 * ack_wait; while they are prefetched, `renew` reports work in progress three times per ack_wait.
 */
export class PrefetchWindow {
  readonly #messages = new IntrusiveList<Prefetched>()
  /** Sum over the messages that are not excluded. */
  #deliveries = 0
  #bytes = 0
  /** Moving average of the deliveries that a message stands for. */
  #usualParts: number
  /** The size of the last request, if it was too small for the next message. */
  #tooFew: number | undefined
  readonly #capacity: PrefetchLimits
  #waiting: (() => void) | undefined
  /** How many deliveries are allowed now. */
  #allowed: number
  /** When it last reported work in progress, and after how long without that it is too late, ms. */
  #reportedAt = elapsedMs()
  #tooLateAfterMs = Number.POSITIVE_INFINITY
  /** The end of the last standstill of this process in which it was too late, ms of `elapsedMs`. */
  #stoodStillUntil = Number.NEGATIVE_INFINITY

  constructor(capacity: PrefetchLimits) {
    this.#capacity = capacity
    this.#allowed = capacity.atFirst ?? capacity.deliveries
    this.#usualParts = capacity.usualParts ?? 1
  }

  /**
   * Returns how much more may be requested, or undefined for nothing. While the window is empty, a
   * single message may be of any size: it could not arrive otherwise.
   */
  get capacity(): PullDemand | undefined {
    const isEmpty = this.#deliveries === 0
    const fitting = Math.floor(this.#free / this.#usualParts)
    const messages = isEmpty ? Math.max(1, fitting) : fitting
    const bytes = this.#capacity.bytes - this.#bytes
    if (this.#tooFew === undefined)
      return messages > 0 && bytes > 0 ? { messages, bytes } : undefined
    if (isEmpty) return { messages: 1 }
    return messages > 0 && bytes > this.#tooFew ? { messages, bytes } : undefined
  }

  /**
   * Returns the same, but no more than messages whose deliveries have about `deliveryBytes` bytes
   * of bodies together. A message of up to `largest` bytes is requested in any case.
   */
  capacityWithin(deliveryBytes: number, largest: number): PullDemand | undefined {
    const wanted = this.capacity
    if (wanted?.bytes === undefined) return wanted
    const bytes = Math.max(largest, deliveryBytes / this.#usualParts)
    return { ...wanted, bytes: Math.min(wanted.bytes, bytes) }
  }

  /**
   * Bytes of the bodies of all deliveries, those of excluded messages included, but not of messages
   * that are held beside the window: one tenant's would take what others need. A message that was not
   * weighed counts as many times as usual.
   */
  get deliveryBytes(): number {
    let bytes = 0
    for (const { isWeighed, letGo, message, parts } of this.#messages)
      if (letGo === undefined) bytes += (isWeighed ? parts : this.#usualParts) * message.data.length
    return bytes
  }

  /** Number of deliveries that a message stands for, as a moving average. */
  get usualParts(): number {
    return this.#usualParts
  }

  /** Called when the broker's next message did not fit into the request. */
  tooLarge({ bytes }: PullDemand): void {
    this.#tooFew = bytes
  }

  /** Number of prefetched messages, excluded ones included. */
  get size(): number {
    return this.#messages.size
  }

  /**
   * Returns the tenant whose messages of more than `ageMs` take up more than half of a window that is
   * full; undefined where there is none.
   */
  crowdedBy(ageMs: number): string | undefined {
    if (this.capacity !== undefined) return undefined
    const before = timers.monotonicMs() - ageMs
    const held = new Map<string, { deliveries: number; bytes: number }>()
    for (const { isExcluded, message, parts, since, tenant } of this.#messages) {
      if (since > before) break
      if (isExcluded) continue
      const own = held.get(tenant) ?? { deliveries: 0, bytes: 0 }
      held.set(tenant, own)
      own.deliveries += parts
      own.bytes += message.data.length
      if (own.deliveries > this.#capacity.deliveries / 2 || own.bytes > this.#capacity.bytes / 2)
        return tenant
    }
    return undefined
  }

  /** True where a tenant's messages take up half of the window or more. */
  isHalfOf(tenant: string): boolean {
    let [deliveries, bytes] = [0, 0]
    for (const message of this.#messages)
      if (!message.isExcluded && message.tenant === tenant) {
        deliveries += message.parts
        bytes += message.message.data.length
      }
    return deliveries >= this.#capacity.deliveries / 2 || bytes >= this.#capacity.bytes / 2
  }

  /** @param tenant whose message it is, for `crowdedBy`. */
  take(message: PrefetchedMessage, tenant = ""): Prefetched {
    const since = timers.monotonicMs()
    const prefetched: Prefetched = {
      message,
      tenant,
      since,
      parts: 1,
      isWeighed: false,
      isExcluded: false,
      letGo: undefined,
      before: undefined,
      after: undefined
    }
    this.#messages.add(prefetched)
    this.#deliveries++
    this.#bytes += message.data.length
    this.#tooFew = undefined
    return prefetched
  }

  /**
   * Sets how many deliveries a message stands for, 1 at least. Must be called for every message or
   * for none.
   */
  weigh(prefetched: Prefetched, deliveries: number): void {
    const parts = Math.max(1, deliveries)
    this.#usualParts += (parts - this.#usualParts) / 16
    this.#deliveries += parts - prefetched.parts
    prefetched.parts = parts
    prefetched.isWeighed = true
  }

  /**
   * Keeps the message prefetched, but frees its capacity in this window.
   *
   * @param remaining number of its deliveries that have not ended. (Default: all)
   */
  exclude(prefetched: Prefetched, remaining = prefetched.parts): void {
    if (prefetched.isExcluded || !this.#messages.has(prefetched)) return
    prefetched.isExcluded = true
    this.#freeCapacity(prefetched)
    prefetched.parts = remaining
  }

  /** Sets how many deliveries of an excluded message have not ended. */
  restate(prefetched: Prefetched, remaining: number): void {
    if (prefetched.isExcluded) prefetched.parts = remaining
  }

  release(prefetched: Prefetched): void {
    if (!this.#messages.remove(prefetched)) return
    this.#allowed = Math.min(this.#capacity.deliveries, this.#allowed + prefetched.parts)
    if (!prefetched.isExcluded) this.#freeCapacity(prefetched)
    prefetched.letGo?.()
  }

  #freeCapacity({ message, parts }: Prefetched): void {
    this.#deliveries -= parts
    this.#bytes -= message.data.length
    if (this.#waiting !== undefined && this.#isWorthwhile) this.#waiting()
  }

  /** Holds messages beside a window that one tenant has filled. */
  #relieve(): void {
    const { hold } = this.#capacity
    const crowding = hold === undefined ? undefined : this.crowdedBy(crowdingMs)
    if (hold === undefined || crowding === undefined) return
    const before = timers.monotonicMs() - crowdingMs
    for (const prefetched of this.#messages) {
      const { isExcluded, message, since, tenant } = prefetched
      if (since > before) return
      if (isExcluded || tenant !== crowding) continue
      prefetched.letGo = hold(tenant, message.data.length)
      if (prefetched.letGo === undefined) return
      this.exclude(prefetched)
    }
  }

  get #free(): number {
    return this.#allowed - this.#deliveries
  }

  get #isWorthwhile(): boolean {
    return this.capacity !== undefined && this.#free >= minFreeShare * this.#allowed
  }

  /**
   * Waits until enough capacity is free for a worthwhile batch, or after 5 ms for any at all; waits
   * one second at most.
   */
  readonly hasCapacity: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#isWorthwhile) return resume(Effect.void)
    const until = timers.monotonicMs() + maxKeepAliveMs
    const done = () => {
      timers.cancel(timer)
      this.#waiting = undefined
      resume(Effect.void)
    }
    const timer = timers.every(freeCheckMs, () => {
      this.#relieve()
      if (this.capacity !== undefined || timers.monotonicMs() >= until) done()
    })
    this.#waiting = done
    return Effect.sync(() => timers.cancel(timer))
  })

  /**
   * True where the broker may have redelivered a message: this process stood still, and so reported
   * nothing, for longer than the broker waits.
   *
   * @param since when the message came, ms of `elapsedMs`.
   */
  mayBeRedelivered(since: number): boolean {
    this.#noteStandstill()
    return since < this.#stoodStillUntil
  }

  #noteStandstill(): void {
    const now = elapsedMs()
    if (now - this.#reportedAt >= this.#tooLateAfterMs) this.#stoodStillUntil = now
  }

  /** Reports work in progress for all messages that were prefetched more than `age` ms ago. */
  renew(age: number): void {
    this.#noteStandstill()
    this.#reportedAt = elapsedMs()
    const before = timers.monotonicMs() - age
    for (const { message, since } of this.#messages) {
      if (since > before) return
      message.working()
    }
  }

  /** Renews all prefetched messages until the scope closes. */
  keepAlive(ackWaitMs: number) {
    const interval = ackWaitMs / 3
    this.#reportedAt = elapsedMs()
    // A message that came just after one report is in the second one after it.
    this.#tooLateAfterMs = 2 * interval
    return Effect.acquireRelease(
      Effect.sync(() => timers.every(interval, () => this.renew(interval))),
      (timer) => Effect.sync(() => timers.cancel(timer))
    )
  }
}
