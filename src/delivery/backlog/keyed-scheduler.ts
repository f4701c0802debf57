import { Effect } from "effect"
import { OrderedSet } from "../../broker/ordered-map.ts"
import { timers } from "../../time/timers.ts"

/** When a key has work again: at once, after a pause (ms), or never. */
export type NextTurn = "at once" | "never" | number

interface KeyedSchedulerOptions {
  /** Maximum keys that are worked on at the same time. */
  readonly atOnce: number
  /** Does one step of a key's work. */
  readonly work: (key: string) => Effect.Effect<NextTurn>
  /** Starts a worker, which ends by itself. */
  readonly run: (work: Effect.Effect<void>) => void
}

/**
 * Schedules work for many keys, most of which are idle. A waiting key costs one map entry; a fiber
 * per key took tens of KB. At most one worker works for a key at a time.
 */
export class KeyedScheduler {
  readonly #ready = new OrderedSet<string>()
  readonly #busy = new Set<string>()
  /** Keys that were woken while they were worked on. */
  readonly #woken = new Set<string>()
  /** When each key is checked again, ms of the monotonic clock. */
  readonly #later = new Map<string, number>()
  readonly #options: KeyedSchedulerOptions
  #workers = 0

  constructor(options: KeyedSchedulerOptions) {
    this.#options = options
  }

  /** Schedules work for a key. */
  wake(key: string): void {
    if (this.#busy.has(key)) {
      this.#woken.add(key)
      return
    }
    this.#later.delete(key)
    this.#ready.add(key)
    if (this.#workers >= this.#options.atOnce) return
    this.#workers++
    this.#options.run(
      Effect.ensuring(
        this.#workOff,
        Effect.sync(() => {
          this.#workers--
        })
      )
    )
  }

  /**
   * Wakes keys whose time has come and that have work. The others are checked again after `pause`
   * ms.
   */
  tick(hasWork: (key: string) => boolean, pause: number): void {
    const now = timers.monotonicMs()
    for (const [key, at] of this.#later) {
      if (at > now) continue
      if (hasWork(key)) this.wake(key)
      else this.#later.set(key, now + pause)
    }
  }

  readonly #workOff = Effect.suspend(() =>
    Effect.whileLoop({
      while: () => this.#ready.size > 0,
      body: () => {
        const key = this.#ready.takeOldest() ?? ""
        this.#busy.add(key)
        return Effect.map(this.#options.work(key), (next) => ({ key, next }))
      },
      step: ({ key, next }) => this.#after(key, next)
    })
  )

  #after(key: string, next: NextTurn): void {
    this.#busy.delete(key)
    if (this.#woken.delete(key) || next === "at once") this.#ready.add(key)
    else if (next !== "never") this.#later.set(key, timers.monotonicMs() + next)
  }
}
