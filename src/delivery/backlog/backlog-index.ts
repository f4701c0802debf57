import type { Delivery } from "../../domain/delivery.ts"
import type { Drain } from "./drain.ts"
import type { Beginning } from "./drain-window.ts"

/** The end of a backlog in which no readable message was left. */
interface EmptyBacklog extends Beginning {
  /** When it was found empty, ms of the monotonic clock. */
  readonly at: number
  /** The highest sequence of the stream that was known then, though a power cut may have taken it. */
  readonly last: number
}

/**
 * What a partition's owner knows of its backlogs, by endpoint key. The drainer writes it; lanes and
 * the watch for truncated streams read it.
 */
export class BacklogIndex {
  /** Backlogs with readable deliveries, or with deliveries that are being stored. */
  readonly drains = new Map<string, Drain>()
  /**
   * Where reading continues in backlogs that were empty: a replica that is behind may still return
   * removed messages.
   */
  readonly empty = new Map<string, EmptyBacklog>()
  readonly #most: number
  readonly #isOverShare: (key: string, delivery: Delivery) => boolean

  /**
   * @param most maximum deliveries in one backlog.
   * @param isOverShare returns true where an endpoint has its share of the space for backlogs, so that
   *   a delivery finds none.
   */
  constructor(
    most: number,
    isOverShare: (key: string, delivery: Delivery) => boolean = () => false
  ) {
    this.#most = most
    this.#isOverShare = isOverShare
  }

  /**
   * True while deliveries wait in an endpoint's backlog, or are being stored there. Unreadable
   * messages do not count: nothing has to wait behind them.
   */
  hasBacklog(key: string): boolean {
    return this.drains.has(key)
  }

  /** True where an endpoint's backlog does not accept a delivery. */
  isFull(key: string, delivery: Delivery): boolean {
    return this.count(key) >= this.#most || this.#isOverShare(key, delivery)
  }

  /** Returns the number of deliveries in an endpoint's backlog, without unreadable messages. */
  count(key: string): number {
    return this.drains.get(key)?.count ?? 0
  }

  /**
   * Returns the number of deliveries in an endpoint's backlog that have not ended; undefined where the
   * stream has to tell how many wait.
   */
  readonly countedIn = (key: string): number | undefined => {
    const drain = this.drains.get(key)
    return drain?.isCounted === true ? drain.count : undefined
  }

  /** Returns the number in all backlogs, as {@link countedIn} one; undefined where one is unknown. */
  readonly countedInAll = (): number | undefined => {
    let sum = 0
    for (const drain of this.drains.values()) {
      if (!drain.isCounted) return undefined
      sum += drain.count
    }
    return this.unreadableCount() === 0 ? sum : undefined
  }

  /** Returns the highest known sequence of the stream. */
  highest(): number {
    let highest = 0
    for (const key of this.empty.keys()) highest = Math.max(highest, this.highestOf(key))
    for (const key of this.drains.keys()) highest = Math.max(highest, this.highestOf(key))
    return highest
  }

  /** Returns the highest known sequence of an endpoint's backlog. */
  highestOf(key: string): number {
    const { last, window } = this.drains.get(key) ?? { last: 0, window: { next: 0 } }
    const { from = 0, last: before = 0 } = this.empty.get(key) ?? {}
    return Math.max(last, before, Math.ceil(window.next) - 1, from - 1)
  }

  /** Returns the number of unreadable messages in all backlogs, as far as they were read. */
  unreadableCount(): number {
    let count = 0
    for (const { window } of this.drains.values()) count += window.unreadable.count
    for (const [key, { unreadable }] of this.empty)
      if (!this.drains.has(key)) count += unreadable.count
    return count
  }
}
