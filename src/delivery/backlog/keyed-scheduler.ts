import { Effect } from "effect"
import { OrderedMap, OrderedSet } from "../../broker/ordered-map.ts"
import { tenantOfKey } from "../../domain/endpoint.ts"
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

/** Keys with work, in line by tenant: a tenant with thousands holds up no other one. */
class TenantLines {
  readonly #lines = new OrderedMap<string, OrderedSet<string>>()

  get isEmpty(): boolean {
    return this.#lines.size === 0
  }

  add(key: string): void {
    const tenant = tenantOfKey(key)
    const line = this.#lines.get(tenant) ?? new OrderedSet<string>()
    line.add(key)
    this.#lines.set(tenant, line)
  }

  /** Removes the oldest key of the tenant whose turn it is. */
  take(): string | undefined {
    const next = this.#lines.takeOldest()
    if (next === undefined) return undefined
    const key = next.value.takeOldest()
    if (next.value.size > 0) this.#lines.set(next.key, next.value)
    return key
  }
}

/**
 * Schedules work for many endpoint keys, most of which are idle. Tenants take turns. A waiting key
 * costs one map entry; a fiber per key took tens of KB. At most one worker works for a key at a time.
 */
export class KeyedScheduler {
  readonly #ready = new TenantLines()
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
      while: () => !this.#ready.isEmpty,
      body: () => {
        const key = this.#ready.take() ?? ""
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
