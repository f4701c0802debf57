import { IntrusiveList, type Linked } from "../../broker/intrusive-list.ts"
import { OrderedMap, OrderedSet } from "../../broker/ordered-map.ts"
import { Shares } from "../../policy/shares.ts"
import { type Timer, timers } from "../../time/timers.ts"
import type { LiveSource } from "./live-sources.ts"

/**
 * How long a request may have lain in its socket before it is handled. Node handles all that has come
 * in one turn of its loop, and reads no socket meanwhile: what is handled now has come in this turn or
 * the one before.
 */
class RequestAge {
  /** When this turn began, ms of the monotonic clock; undefined between turns. */
  #began: number | undefined
  #lastTurnMs = 0

  /** Notes that a turn has begun, if nothing was handled in it before. */
  note(now: number): void {
    if (this.#began !== undefined) return
    this.#began = now
    timers.immediate(() => {
      this.#lastTurnMs = timers.monotonicMs() - now
      this.#began = undefined
    })
  }

  /** Returns the age that a request which is handled now has at most, ms. */
  at(now: number): number {
    return now - (this.#began ?? now) + this.#lastTurnMs
  }
}

/**
 * The age at which a request without a place is refused, ms. Most get one before: some three times as
 * many leave as there are places. Who is refused at once comes again at once by the same connection,
 * and each refusal takes a sixth of the time of a webhook that is taken.
 */
const refusedAtMs = 32
/** What it waits at least, ms, where the process is so slow that it is old already. */
const waitsAtLeastMs = 10
/** Requests that wait at the same time. Further ones are refused at once. */
const maxWaiting = 2_048

type Named = Pick<LiveSource, "key" | "source">

interface Waiter extends Linked<Waiter> {
  readonly live: Named
  readonly resume: () => void
  /** When it has waited long enough, ms of the monotonic clock. */
  readonly until: number
}

/**
 * Requests that wait for a place before their bodies are read. At most half of them are of one
 * tenant, and a quarter of one source.
 */
export class WaitingRequests {
  /** Those of each source in their order. The source whose turn is next is the first. */
  readonly #waiters = new OrderedMap<string, OrderedSet<Waiter>>()
  /** All of them, in the order in which they came. */
  readonly #all = new IntrusiveList<Waiter>()
  readonly #tenants = new Shares(maxWaiting)
  readonly #sources = new Shares(maxWaiting, maxWaiting / 4)
  readonly #age = new RequestAge()
  #timer: Timer | undefined

  /** Returns true while requests of a source wait. */
  has(key: string): boolean {
    return this.#waiters.has(key)
  }

  /**
   * Resumes those that have waited long enough. To be called before anything is handled: a timer alone
   * would resume them only after all that has come.
   */
  look(): void {
    const now = timers.monotonicMs()
    this.#age.note(now)
    this.#endUntil(now)
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
    const now = timers.monotonicMs()
    const until = now + Math.max(waitsAtLeastMs, refusedAtMs - this.#age.at(now))
    const waiter: Waiter = { live, resume, until, before: undefined, after: undefined }
    const waiters = this.#waiters.get(key) ?? new OrderedSet<Waiter>()
    waiters.add(waiter)
    this.#waiters.set(key, waiters)
    this.#all.add(waiter)
    this.#setTimer(now)
    return true
  }

  /** Resumes the one that waits longest of the first source for which there is a place. */
  wake(hasPlace: (live: Named) => boolean): void {
    for (const { key, value: waiters } of this.#waiters) {
      const first = waiters.oldest
      if (first === undefined || !hasPlace(first.live)) continue
      this.#waiters.renew(key)
      this.#end(first)
      return
    }
  }

  #endUntil(now: number): void {
    while (true) {
      const { first } = this.#all
      if (first === undefined || first.until > now) return
      this.#end(first)
    }
  }

  #setTimer(now: number): void {
    const { first } = this.#all
    if (first === undefined || this.#timer !== undefined) return
    this.#timer = timers.after(Math.max(1, first.until - now), () => {
      this.#timer = undefined
      const then = timers.monotonicMs()
      this.#endUntil(then)
      this.#setTimer(then)
    })
  }

  #end(waiter: Waiter): void {
    const { key, source } = waiter.live
    const waiters = this.#waiters.get(key)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiters.delete(key)
    this.#all.remove(waiter)
    this.#sources.give(key)
    this.#tenants.give(source.tenant)
    waiter.resume()
  }
}
