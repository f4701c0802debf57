import { Effect } from "effect"
import { OrderedMap, OrderedSet } from "../../broker/ordered-map.ts"
import { tenantOfKey } from "../../domain/endpoint.ts"
import { timers } from "../../time/timers.ts"

/** When a key has work again: at once, after a pause (ms), or never. */
export type NextTurn = "at once" | "never" | number

interface KeyedSchedulerOptions {
  /** Maximum keys that are worked on at the same time. */
  readonly atOnce: number
  /** Returns the same for the keys of one tenant. */
  readonly atOnceOfTenant: () => number
  /** Does one step of a key's work. */
  readonly work: (key: string) => Effect.Effect<NextTurn>
  /** Starts a worker, which ends by itself. */
  readonly run: (work: Effect.Effect<void>) => void
}

/**
 * Keys with work, in line by tenant: a tenant with thousands holds up no other one. Neither does one
 * whose work takes long.
 */
class TenantLines {
  readonly #lines = new OrderedMap<string, OrderedSet<string>>()
  /** How many keys of each tenant are worked on. */
  readonly #busy = new Map<string, number>()
  readonly #most: () => number

  /** @param most returns how many keys of one tenant are worked on at the same time. */
  constructor(most: () => number) {
    this.#most = most
  }

  /** True where a key in line may be worked on. */
  get hasNext(): boolean {
    return this.#next() !== undefined
  }

  add(key: string): void {
    const tenant = tenantOfKey(key)
    const line = this.#lines.get(tenant) ?? new OrderedSet<string>()
    line.add(key)
    this.#lines.set(tenant, line)
  }

  /** Removes the oldest key of the tenant whose turn it is, which is worked on until `done`. */
  take(): string | undefined {
    const next = this.#next()
    if (next === undefined) return undefined
    const { key: tenant, value: line } = next
    const key = line.takeOldest()
    this.#busy.set(tenant, this.#busyOf(tenant) + 1)
    if (line.size > 0) this.#lines.renew(tenant)
    else this.#lines.delete(tenant)
    return key
  }

  done(key: string): void {
    const tenant = tenantOfKey(key)
    const left = this.#busyOf(tenant) - 1
    if (left > 0) this.#busy.set(tenant, left)
    else this.#busy.delete(tenant)
  }

  #busyOf(tenant: string): number {
    return this.#busy.get(tenant) ?? 0
  }

  #next() {
    const most = this.#most()
    for (const line of this.#lines) if (this.#busyOf(line.key) < most) return line
    return undefined
  }
}

/**
 * Schedules work for many endpoint keys, most of which are idle. Tenants take turns. A waiting key
 * costs one map entry; a fiber per key took tens of KB. At most one worker works for a key at a time.
 */
export class KeyedScheduler {
  readonly #ready: TenantLines
  readonly #busy = new Set<string>()
  /** Keys that were woken while they were worked on. */
  readonly #woken = new Set<string>()
  /** When each key is checked again, ms of the monotonic clock. */
  readonly #later = new Map<string, number>()
  readonly #options: KeyedSchedulerOptions
  #workers = 0

  constructor(options: KeyedSchedulerOptions) {
    this.#options = options
    this.#ready = new TenantLines(options.atOnceOfTenant)
  }

  /** Schedules work for a key. */
  wake(key: string): void {
    if (this.#busy.has(key)) {
      this.#woken.add(key)
      return
    }
    this.#later.delete(key)
    this.#ready.add(key)
    if (this.#workers >= this.#options.atOnce || !this.#ready.hasNext) return
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
      while: () => this.#ready.hasNext,
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
    this.#ready.done(key)
    if (this.#woken.delete(key) || next === "at once") this.#ready.add(key)
    else if (next !== "never") this.#later.set(key, timers.monotonicMs() + next)
  }
}
