import { timers } from "../time/timers.ts"

/**
 * How long something that was stored may stay unseen by a watch, ms: the watch is started again
 * when it is behind for two seconds.
 */
const unseenMs = 10_000

/**
 * What a quota has let through and its count does not show yet, by tenant: without it, whatever is
 * asked for at the same time would pass.
 */
export class Reservations {
  /** Keys, with when they were reserved, ms of the monotonic clock. */
  readonly #pending = new Map<string, Map<string, number>>()

  /**
   * Takes a place for a key. Returns false if there are `most` already.
   *
   * @param counted how many are known to be there.
   * @param isCounted true for a key among these.
   */
  take(
    tenant: string,
    key: string,
    most: number,
    counted: number,
    isCounted: (key: string) => boolean
  ): boolean {
    const now = timers.monotonicMs()
    const pending = this.#pending.get(tenant) ?? new Map<string, number>()
    for (const [one, at] of pending) if (isCounted(one) || now - at > unseenMs) pending.delete(one)
    if (!pending.has(key) && counted + pending.size >= most) return false
    this.#pending.set(tenant, pending.set(key, now))
    return true
  }

  /** Gives the place of a key back that was not stored. */
  give(tenant: string, key: string): void {
    const pending = this.#pending.get(tenant)
    pending?.delete(key)
    if (pending?.size === 0) this.#pending.delete(tenant)
  }
}
