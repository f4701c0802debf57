import { Effect } from "effect"
import type { Wanted } from "../../broker/puller.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"

/** A message as far as it matters here. */
export type Handed = Pick<StreamMessage, "data" | "working">

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
  readonly #since = new Map<Handed, number>()
  /** Those that are counted elsewhere. */
  readonly #apart = new Set<Handed>()
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
    const counted = this.#since.size - this.#apart.size
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
    return this.#since.size
  }

  take(message: Handed): void {
    this.#since.set(message, performance.now())
    this.#bytes += message.data.length
    this.#tooFew = undefined
  }

  /** It stays in hand, and takes up no room here any more. */
  setApart(message: Handed): void {
    if (!this.#since.has(message) || this.#apart.has(message)) return
    this.#apart.add(message)
    this.#makeRoom(message)
  }

  release(message: Handed): void {
    if (this.#since.delete(message) && !this.#apart.delete(message)) this.#makeRoom(message)
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
    for (const [message, since] of this.#since) {
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
