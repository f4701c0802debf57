import type { JsMsg } from "@nats-io/jetstream"
import { Effect } from "effect"

/** A message as far as it matters here. */
export type Handed = Pick<JsMsg, "data" | "working">

/** What may be in hand at the same time: messages, and bytes of their bodies. */
export interface Capacity {
  readonly messages: number
  readonly bytes: number
}

/** Messages asked for at a time, however much room there is: their sizes are not known before. */
const largestBatch = 128
/** Messages that are worth a request of their own, and how long to wait for them, ms. */
const worthwhile = 32
const moment = 5

/**
 * The messages a process has taken and not settled. The broker would hand them to somebody else
 * after ack_wait; while they are in hand it is told, three times as often, that work goes on.
 */
export class InHand {
  readonly #since = new Map<Handed, number>()
  #bytes = 0
  /** Of the bodies taken lately; a guess until there were any. */
  #usualSize = 16 * 1024
  readonly #capacity: Capacity
  #waiting: (() => void) | undefined

  constructor(capacity: Capacity) {
    this.#capacity = capacity
  }

  /**
   * How many more may be asked for: as many as there are places, and as will fit if they are
   * about as large as the last ones (the client cannot limit a request by number and by bytes).
   * At least one while there are none, however large it may be.
   */
  get room(): number {
    const { bytes, messages } = this.#capacity
    const fitting = Math.floor((bytes - this.#bytes) / this.#usualSize)
    const room = Math.min(messages - this.size, fitting, largestBatch)
    return Math.max(this.size === 0 ? 1 : 0, room)
  }

  /** Messages in hand. */
  get size(): number {
    return this.#since.size
  }

  take(message: Handed): void {
    this.#since.set(message, performance.now())
    this.#bytes += message.data.length
    this.#usualSize += (Math.max(512, message.data.length) - this.#usualSize) / 16
  }

  release(message: Handed): void {
    if (!this.#since.delete(message)) return
    this.#bytes -= message.data.length
    if (this.#waiting !== undefined && this.room >= worthwhile) this.#waiting()
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
      if (this.room > 0) done()
    }, moment)
    this.#waiting = done
    if (this.room >= worthwhile) done()
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
