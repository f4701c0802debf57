import { OrderedMap, OrderedSet } from "../../broker/ordered-map.ts"
import { Shares } from "../../policy/shares.ts"
import { type Timer, timers } from "../../time/timers.ts"
import type { LiveSource } from "./live-sources.ts"

/**
 * How long a request waits for a place before it is refused, ms. Most get one within that time: some
 * three times as many leave as there are places. Who is refused at once comes again at once by the
 * same connection, and each refusal takes a sixth of the time of a webhook that is taken.
 */
const waitsMs = 25
/** Requests that wait at the same time. Further ones are refused at once. */
const maxWaiting = 2_048

type Named = Pick<LiveSource, "key" | "source">

interface Waiter {
  readonly live: Named
  readonly resume: () => void
  timer: Timer | undefined
}

/**
 * Requests that wait for a place before their bodies are read. At most half of them are of one
 * tenant, and a quarter of one source.
 */
export class WaitingRequests {
  /** Those of each source in their order. The source whose turn is next is the first. */
  readonly #waiters = new OrderedMap<string, OrderedSet<Waiter>>()
  readonly #tenants = new Shares(maxWaiting)
  readonly #sources = new Shares(maxWaiting, maxWaiting / 4)

  /** Returns true while requests of a source wait. */
  has(key: string): boolean {
    return this.#waiters.has(key)
  }

  /**
   * Lets a request wait. Returns false if there are too many.
   *
   * @param resume called once there is a place for it, or it has waited long enough.
   */
  add(live: Named, resume: () => void): boolean {
    const { key, source } = live
    if (!this.#sources.take(key)) return false
    if (!this.#tenants.take(source.tenant)) {
      this.#sources.give(key)
      return false
    }
    const waiter: Waiter = { live, resume, timer: undefined }
    waiter.timer = timers.after(waitsMs, () => this.#end(waiter))
    const waiters = this.#waiters.get(key) ?? new OrderedSet<Waiter>()
    waiters.add(waiter)
    this.#waiters.set(key, waiters)
    return true
  }

  /** Resumes the one that waits longest of the first source for which there is room. */
  wake(hasRoom: (live: Named) => boolean): void {
    for (const { key, value: waiters } of this.#waiters) {
      const first = waiters.oldest
      if (first === undefined || !hasRoom(first.live)) continue
      this.#waiters.renew(key)
      timers.cancel(first.timer)
      this.#end(first)
      return
    }
  }

  #end(waiter: Waiter): void {
    const { key, source } = waiter.live
    const waiters = this.#waiters.get(key)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiters.delete(key)
    this.#sources.give(key)
    this.#tenants.give(source.tenant)
    waiter.resume()
  }
}
