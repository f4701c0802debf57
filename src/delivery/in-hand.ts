import type { JsMsg } from "@nats-io/jetstream"
import { Effect } from "effect"

/**
 * The messages a process has taken and not settled. The broker would hand them to somebody else
 * after ack_wait; while they are in hand it is told, three times as often, that work goes on.
 */
export class InHand {
  readonly #since = new Map<JsMsg, number>()
  #bytes = 0
  #waiting: Array<() => void> = []

  /** Messages in hand. */
  get size(): number {
    return this.#since.size
  }

  /** Bytes of their bodies. */
  get bytes(): number {
    return this.#bytes
  }

  take(message: JsMsg): void {
    this.#since.set(message, performance.now())
    this.#bytes += message.data.length
  }

  release(message: JsMsg): void {
    if (!this.#since.delete(message)) return
    this.#bytes -= message.data.length
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }

  /** Waits for the next release. */
  readonly released: Effect.Effect<void> = Effect.callback((resume) => {
    this.#waiting.push(() => resume(Effect.void))
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
