import type { Linked } from "../broker/intrusive-list.ts"
import { IntrusiveList } from "../broker/intrusive-list.ts"
import type { Timer } from "../time/timers.ts"
import { timers } from "../time/timers.ts"

/**
 * How long direct deliveries may keep an event in the prefetch window, ms: `answers` applies when
 * all requests are sent, `line` when some deliveries still wait in lanes.
 */
const maxDirectMs = { answers: 20, line: 100 }
/** Interval of the check while there are such events, ms. */
const tickMs = 10

/** An event with direct deliveries in flight. */
export interface TimedEvent extends Linked<TimedEvent> {
  /** When the first of them began, ms of the monotonic clock. */
  since: number
  /** True where none of them waits in a lane. */
  readonly areRequestsBegun: boolean
  /** Called once when the direct deliveries exceed their time. */
  becameSlow(): void
}

/** Watches events with direct deliveries, and reports each that becomes slow. */
export class SlowEventTimer {
  readonly #young = new IntrusiveList<TimedEvent>()
  #timer: Timer | undefined

  /** Called when a direct delivery of an event begins. Watches the event, unless it does already. */
  add(event: TimedEvent): void {
    if (this.#young.has(event)) return
    event.since = timers.monotonicMs()
    this.#young.add(event)
    this.#timer ??= timers.after(tickMs, () => this.#look())
  }

  remove(event: TimedEvent): void {
    this.#young.remove(event)
  }

  /** Stops the timer: no event is reported any more. */
  close(): void {
    timers.cancel(this.#timer)
  }

  #look(): void {
    this.#timer = undefined
    const now = timers.monotonicMs()
    for (const event of this.#young) {
      const age = now - event.since
      if (age < maxDirectMs.answers) break
      if (age < maxDirectMs.line && !event.areRequestsBegun) continue
      this.#young.remove(event)
      event.becameSlow()
    }
    if (this.#young.size > 0) this.#timer ??= timers.after(tickMs, () => this.#look())
  }
}
