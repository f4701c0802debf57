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
  /** It is counted elsewhere. */
  isApart: boolean
}

/** What may be in hand at the same time: messages, and bytes of their bodies. */
export interface Capacity {
  readonly messages: number
  readonly bytes: number
}

/** Messages that are worth a request of their own, and how long to wait for them, ms. */
const worthwhile = 32
const moment = 5

/**
 * The messages a process has taken and not settled. The broker would hand them to somebody else
 * after ack_wait; while they are in hand it is told, three times as often, that work goes on.
 */
export class InHand {
  readonly #hands = new Chain<Hand>()
  #apart = 0
  #bytes = 0
  /** Bytes that were too few for the message that comes next. */
  #tooFew: number | undefined
  readonly #capacity: Capacity
  #waiting: (() => void) | undefined

  constructor(capacity: Capacity) {
    this.#capacity = capacity
  }

  /**
   * How much more may be asked for, undefined while it is nothing. While there is none in hand a
   * single message may be of any size: it could not come otherwise.
   */
  get room(): Wanted | undefined {
    const counted = this.#hands.size - this.#apart
    const messages = this.#capacity.messages - counted
    const bytes = this.#capacity.bytes - this.#bytes
    if (this.#tooFew === undefined)
      return messages > 0 && bytes > 0 ? { messages, bytes } : undefined
    if (counted === 0) return { messages: 1 }
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
    const hand: Hand = { message, since, isApart: false, before: undefined, after: undefined }
    this.#hands.add(hand)
    this.#bytes += message.data.length
    this.#tooFew = undefined
    return hand
  }

  /** It stays in hand, and takes up no room here any more. */
  setApart(hand: Hand): void {
    if (hand.isApart || !this.#hands.has(hand)) return
    hand.isApart = true
    this.#apart++
    this.#makeRoom(hand.message)
  }

  release(hand: Hand): void {
    if (!this.#hands.remove(hand)) return
    if (hand.isApart) this.#apart--
    else this.#makeRoom(hand.message)
  }

  #makeRoom({ data }: Handed): void {
    this.#bytes -= data.length
    if (this.#waiting !== undefined && this.#isWorthwhile) this.#waiting()
  }

  get #isWorthwhile(): boolean {
    return (this.room?.messages ?? 0) >= Math.min(worthwhile, this.#capacity.messages)
  }

  /**
   * Waits until enough room has come together for a batch that is worth a request, or for any at
   * all where that takes longer than a moment.
   */
  readonly roomy: Effect.Effect<void> = Effect.callback((resume) => {
    const done = () => {
      clearInterval(timer)
      this.#waiting = undefined
      resume(Effect.void)
    }
    const timer = setInterval(() => {
      if (this.room !== undefined) done()
    }, moment)
    this.#waiting = done
    if (this.#isWorthwhile) done()
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
