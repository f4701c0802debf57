import { Effect } from "effect"
import type { Wanted } from "../../broker/puller.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Linked } from "./chain.ts"
import { Chain } from "./chain.ts"

/** A message as far as it matters here. */
export type Handed = Pick<StreamMessage, "data" | "working">

/** One of them in hand. */
export interface Hand extends Linked<Hand> {
  readonly message: Handed
  /** ms of the monotonic clock */
  readonly since: number
  /** Deliveries that it stands for. */
  parts: number
  /** It is counted elsewhere. */
  isApart: boolean
}

/** What may be in hand at the same time: deliveries, and bytes of messages' bodies. */
export interface Capacity {
  readonly deliveries: number
  readonly bytes: number
  /** How many deliveries a message may turn out to stand for, as long as nobody knows. (Default: 1) */
  readonly usualParts?: number
}

/** The part of its capacity that is worth a request, and how long to wait for it, ms. */
const worthwhile = 1 / 2
const moment = 5
/** How long it is waited for room at all, ms. */
const longest = 1_000

/**
 * The messages a process has taken and not settled. The broker would hand them to somebody else
 * after ack_wait; while they are in hand it is told, three times as often, that work goes on.
 */
export class InHand {
  readonly #hands = new Chain<Hand>()
  /** Of those that are counted here. */
  #deliveries = 0
  #bytes = 0
  /** Deliveries that a message stands for lately. */
  #usualParts: number
  /** Bytes that were too few for the message that comes next. */
  #tooFew: number | undefined
  readonly #capacity: Capacity
  #waiting: (() => void) | undefined

  constructor(capacity: Capacity) {
    this.#capacity = capacity
    this.#usualParts = capacity.usualParts ?? 1
  }

  /**
   * How much more may be asked for, undefined while it is nothing. While there is none in hand a
   * single message may be of any size: it could not come otherwise.
   */
  get room(): Wanted | undefined {
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

  take(message: Handed): Hand {
    const since = performance.now()
    const hand: Hand = {
      message,
      since,
      parts: 1,
      isApart: false,
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
  weigh(hand: Hand, deliveries: number): void {
    const parts = Math.max(1, deliveries)
    this.#usualParts += (parts - this.#usualParts) / 16
    this.#deliveries += parts - hand.parts
    hand.parts = parts
  }

  /** It stays in hand, and takes up no room here any more. */
  setApart(hand: Hand): void {
    if (hand.isApart || !this.#hands.has(hand)) return
    hand.isApart = true
    this.#makeRoom(hand)
  }

  release(hand: Hand): void {
    if (!this.#hands.remove(hand)) return
    if (!hand.isApart) this.#makeRoom(hand)
  }

  #makeRoom({ message, parts }: Hand): void {
    this.#deliveries -= parts
    this.#bytes -= message.data.length
    if (this.#waiting !== undefined && this.#isWorthwhile) this.#waiting()
  }

  get #free(): number {
    return this.#capacity.deliveries - this.#deliveries
  }

  get #isWorthwhile(): boolean {
    return this.room !== undefined && this.#free >= worthwhile * this.#capacity.deliveries
  }

  /**
   * Waits until enough room has come together for a batch that is worth a request, or for any at
   * all where that takes longer than a moment; for a second at most.
   */
  readonly roomy: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#isWorthwhile) return resume(Effect.void)
    const until = performance.now() + longest
    const done = () => {
      clearInterval(timer)
      this.#waiting = undefined
      resume(Effect.void)
    }
    const timer = setInterval(() => {
      if (this.room !== undefined || performance.now() >= until) done()
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
