import { Effect } from "effect"
import type { Linked } from "./intrusive-list.ts"
import { IntrusiveList } from "./intrusive-list.ts"
import type { Wanted } from "./puller.ts"
import type { StreamMessage } from "./stream-message.ts"

/** A message as far as it matters here. */
export type PrefetchedMessage = Pick<StreamMessage, "data" | "working">

/** One of them in hand. */
export interface Prefetched extends Linked<Prefetched> {
  readonly message: PrefetchedMessage
  /** ms of the monotonic clock */
  readonly since: number
  /** Deliveries that it stands for. */
  parts: number
  /** It is counted elsewhere. */
  isExcluded: boolean
}

/** What may be in hand at the same time: deliveries, and bytes of messages' bodies. */
export interface PrefetchLimits {
  readonly deliveries: number
  readonly bytes: number
  /** How many deliveries a message may turn out to stand for, as long as nobody knows. (Default: 1) */
  readonly usualParts?: number
}

/** The part of its capacity that is worth a request, and how long to wait for it, ms. */
const minFreeShare = 1 / 2
const moment = 5
/** How long it is waited for room at all, ms. */
const maxKeepAliveMs = 1_000

/**
 * The messages a process has taken and not settled. The broker would hand them to somebody else
 * after ack_wait; while they are in hand it is told, three times as often, that work goes on.
 */
export class PrefetchWindow {
  readonly #hands = new IntrusiveList<Prefetched>()
  /** Of those that are counted here. */
  #deliveries = 0
  #bytes = 0
  /** Deliveries that a message stands for lately. */
  #usualParts: number
  /** Bytes that were too few for the message that comes next. */
  #tooFew: number | undefined
  readonly #capacity: PrefetchLimits
  #waiting: (() => void) | undefined

  constructor(capacity: PrefetchLimits) {
    this.#capacity = capacity
    this.#usualParts = capacity.usualParts ?? 1
  }

  /**
   * How much more may be asked for, undefined while it is nothing. While there is none in hand a
   * single message may be of any size: it could not come otherwise.
   */
  get capacity(): Wanted | undefined {
    const isEmpty = this.#deliveries === 0
    const fitting = Math.floor(this.#free / this.#usualParts)
    const messages = isEmpty ? Math.max(1, fitting) : fitting
    const bytes = this.#capacity.bytes - this.#bytes
    if (this.#tooFew === undefined)
      return messages > 0 && bytes > 0 ? { messages, bytes } : undefined
    if (isEmpty) return { messages: 1 }
    return messages > 0 && bytes > this.#tooFew ? { messages, bytes } : undefined
  }

  /** The broker's next message did not fit into what was asked for. */
  tooLarge({ bytes }: Wanted): void {
    this.#tooFew = bytes
  }

  /** Messages in hand. */
  get size(): number {
    return this.#hands.size
  }

  take(message: PrefetchedMessage): Prefetched {
    const since = performance.now()
    const hand: Prefetched = {
      message,
      since,
      parts: 1,
      isExcluded: false,
      before: undefined,
      after: undefined
    }
    this.#hands.add(hand)
    this.#deliveries++
    this.#bytes += message.data.length
    this.#tooFew = undefined
    return hand
  }

  /** It turns out to stand for so many deliveries, 1 at least; to be told of each message, or of none. */
  weigh(hand: Prefetched, deliveries: number): void {
    const parts = Math.max(1, deliveries)
    this.#usualParts += (parts - this.#usualParts) / 16
    this.#deliveries += parts - hand.parts
    hand.parts = parts
  }

  /** It stays in hand, and takes up no room here any more. */
  exclude(hand: Prefetched): void {
    if (hand.isExcluded || !this.#hands.has(hand)) return
    hand.isExcluded = true
    this.#freeCapacity(hand)
  }

  release(hand: Prefetched): void {
    if (!this.#hands.remove(hand)) return
    if (!hand.isExcluded) this.#freeCapacity(hand)
  }

  #freeCapacity({ message, parts }: Prefetched): void {
    this.#deliveries -= parts
    this.#bytes -= message.data.length
    if (this.#waiting !== undefined && this.#isWorthwhile) this.#waiting()
  }

  get #free(): number {
    return this.#capacity.deliveries - this.#deliveries
  }

  get #isWorthwhile(): boolean {
    return this.capacity !== undefined && this.#free >= minFreeShare * this.#capacity.deliveries
  }

  /**
   * Waits until enough room has come together for a batch that is worth a request, or for any at
   * all where that takes longer than a moment; for a second at most.
   */
  readonly hasCapacity: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#isWorthwhile) return resume(Effect.void)
    const until = performance.now() + maxKeepAliveMs
    const done = () => {
      clearInterval(timer)
      this.#waiting = undefined
      resume(Effect.void)
    }
    const timer = setInterval(() => {
      if (this.capacity !== undefined || performance.now() >= until) done()
    }, moment)
    this.#waiting = done
    return Effect.sync(() => clearInterval(timer))
  })

  /** Tells the broker of all that have been in hand for longer than `age` ms. */
  renew(age: number): void {
    const before = performance.now() - age
    for (const { message, since } of this.#hands) {
      if (since > before) return
      message.working()
    }
  }

  /** Renews for as long as the scope lives. */
  keepAlive(ackWaitMs: number) {
    const interval = ackWaitMs / 3
    return Effect.acquireRelease(
      Effect.sync(() => setInterval(() => this.renew(interval), interval)),
      (timer) => Effect.sync(() => clearInterval(timer))
    )
  }
}
