/** How long what the leader has may be missing from the watch before nothing is planned by it, ms. */
export const maxLagMs = 3_000
/** Age of the leader's last answer beyond which nobody knows how far the watch is behind, ms. */
export const maxSilenceMs = 6_000

/** What the leader was asked of its bucket's stream. */
export interface LeaderQuestion {
  /** When it was asked, ms of the monotonic clock. */
  readonly at: number
  /** What the watch had shown when the question before this one was asked. */
  readonly reachedBefore: number
}

/** What the leader said of its bucket's stream. */
export interface LeaderAnswer {
  readonly lastSeq: number
  /** Whether it has a message beyond what the watch had shown, and up to `lastSeq`. */
  readonly hasMore: boolean
}

/**
 * How a watch stands to the leader:
 * - `current`: it shows all that the leader had, as far as that can be expected yet;
 * - `unanswered`: the leader has not said for too long what it has;
 * - `behind`: something is missing for too long, and more is coming;
 * - `stuck`: something is missing for too long, and nothing comes;
 * - `truncated`: the leader has less than the watch has shown: the stream has lost its end.
 */
export type WatchStanding = "current" | "unanswered" | "behind" | "stuck" | "truncated"

/**
 * How far a watch of a bucket is behind the bucket's leader. Any copy of the stream may serve a watch,
 * and lag; and a watch whose consumer has died shows nothing, as one does of a bucket at rest.
 * Times are ms of the monotonic clock.
 */
export class WatchLag {
  #reached = 0
  /** What was reached when the last question was asked. */
  #reachedWhenAsked = 0
  /** When the latest of the answered questions was asked. */
  #answeredAt: number
  #shownAt: number
  /** What must be shown yet, and when the leader was first asked that had it. */
  #goal: { readonly seq: number; readonly at: number } | undefined
  #isTruncated = false

  /** @param now when the watch was begun. */
  constructor(now: number) {
    this.#answeredAt = now
    this.#shownAt = now
  }

  /** The sequence up to which everything was shown that the leader still has. */
  get reached(): number {
    return this.#reached
  }

  /** The watch has shown a message. True where that was the last one that was missing. */
  shown(seq: number, now: number): boolean {
    this.#shownAt = now
    return this.#advance(seq)
  }

  asked(now: number): LeaderQuestion {
    const reachedBefore = this.#reachedWhenAsked
    this.#reachedWhenAsked = this.#reached
    return { at: now, reachedBefore }
  }

  /** Questions may overlap, and be answered in another order. */
  answered({ at, reachedBefore }: LeaderQuestion, { hasMore, lastSeq }: LeaderAnswer): void {
    this.#answeredAt = Math.max(this.#answeredAt, at)
    // A copy may be ahead of its leader, but only for a moment: not of what the leader is asked later.
    if (lastSeq < reachedBefore) this.#isTruncated = true
    // What is between may have been purged: no watch shows it, however long it is waited for.
    if (!hasMore) this.#advance(lastSeq)
    else if (this.#reached < lastSeq) this.#goal ??= { seq: lastSeq, at }
  }

  at(now: number): WatchStanding {
    if (this.#isTruncated) return "truncated"
    if (now - this.#answeredAt > maxSilenceMs) return "unanswered"
    if (this.#goal === undefined || now - this.#goal.at <= maxLagMs) return "current"
    return now - this.#shownAt > maxLagMs ? "stuck" : "behind"
  }

  /** Whether it has shown all that the leader had when it was asked last: stricter than `current`. */
  isCaughtUp(now: number): boolean {
    return this.#goal === undefined && this.at(now) === "current"
  }

  #advance(seq: number): boolean {
    this.#reached = Math.max(this.#reached, seq)
    if (this.#goal === undefined || this.#reached < this.#goal.seq) return false
    this.#goal = undefined
    return true
  }
}

/** A value of a bucket, or that there is none. */
export interface Shown {
  readonly revision: number
  /** Undefined where it was removed, or was never there. */
  readonly text: string | undefined
}

/**
 * What to do with a value that a watch shows. One that is no newer than what is known may come from a
 * copy that lags, or from a stream that has lost its end and gives its sequences again: only the
 * leader can tell.
 */
export const weigh = (known: Shown, shown: Shown): "take" | "same" | "ask-leader" => {
  if (shown.revision > known.revision) return "take"
  return shown.revision === known.revision && shown.text === known.text ? "same" : "ask-leader"
}
