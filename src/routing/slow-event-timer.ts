import type { Linked } from "../broker/intrusive-list.ts"
import { IntrusiveList } from "../broker/intrusive-list.ts"

/**
 * How long deliveries of an event may be attempted before it no longer counts as in hand, ms: where
 * all that is missing are answers, and where some stand in line.
 */
const moments = { answers: 20, line: 100 }
/** How often that is looked at while there are any, ms. */
const tick = 10

/** An event of which deliveries are attempted. */
export interface TimedEvent extends Linked<TimedEvent> {
  /** When that began, ms of the monotonic clock. */
  since: number
  /** True where none of them stands in line. */
  readonly areRequestsBegun: boolean
  /** Told once that they last for longer than a moment. */
  becameSlow(): void
}

/** Events of which deliveries are attempted, for no longer than a moment so far. */
export class SlowEventTimer {
  readonly #young = new IntrusiveList<TimedEvent>()
  #timer: NodeJS.Timeout | undefined

  /** Its first delivery begins now. */
  add(event: TimedEvent): void {
    event.since = performance.now()
    this.#young.add(event)
    this.#timer ??= setTimeout(() => this.#look(), tick)
  }

  remove(event: TimedEvent): void {
    this.#young.remove(event)
  }

  /** Tells nobody any more. */
  close(): void {
    clearTimeout(this.#timer)
  }

  #look(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const event of this.#young) {
      const age = now - event.since
      if (age < moments.answers) break
      if (age < moments.line && !event.areRequestsBegun) continue
      this.#young.remove(event)
      event.becameSlow()
    }
    if (this.#young.size > 0) this.#timer ??= setTimeout(() => this.#look(), tick)
  }
}
