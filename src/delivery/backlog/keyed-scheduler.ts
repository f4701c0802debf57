import { Effect } from "effect"

/** When there is something to do for a key again: at once, after a while (ms), or never. */
export type NextTurn = "at once" | "never" | number

export interface KeyedSchedulerOptions {
  /** Keys that are worked on at the same time, at most. */
  readonly atOnce: number
  /** Does a piece of the work for a key. */
  readonly work: (key: string) => Effect.Effect<NextTurn>
  /** Begins to work; what it begins ends by itself. */
  readonly run: (work: Effect.Effect<void>) => void
}

/**
 * Work for many keys, of which most have nothing to do: what waits costs an entry in a map, where a
 * fiber for each took tens of KB. The work for one key is never done twice at the same time.
 */
export class KeyedScheduler {
  readonly #ready = new Set<string>()
  readonly #busy = new Set<string>()
  /** Woken while they were worked on. */
  readonly #woken = new Set<string>()
  /** When to look again, ms of the monotonic clock. */
  readonly #later = new Map<string, number>()
  readonly #options: KeyedSchedulerOptions
  #workers = 0

  constructor(options: KeyedSchedulerOptions) {
    this.#options = options
  }

  /** There is something to do for a key. */
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
   * Wakes those whose time has come, as far as they have something to do; the others are asked again
   * after `pause` ms.
   */
  tick(hasWork: (key: string) => boolean, pause: number): void {
    const now = performance.now()
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
        const [key = ""] = this.#ready
        this.#ready.delete(key)
        this.#busy.add(key)
        return Effect.map(this.#options.work(key), (next) => ({ key, next }))
      },
      step: ({ key, next }) => this.#after(key, next)
    })
  )

  #after(key: string, next: NextTurn): void {
    this.#busy.delete(key)
    if (this.#woken.delete(key) || next === "at once") this.#ready.add(key)
    else if (next !== "never") this.#later.set(key, performance.now() + next)
  }
}
