/**
 * How long an entry of the leader may be missing from the watch before no plan may be based on it,
 * ms.
 */
export const maxLagMs = 3_000
/** Age of the leader's last answer beyond which the lag of the watch is unknown, ms. */
export const maxSilenceMs = 6_000

/** A question to the leader about its bucket's stream. */
interface LeaderQuestion {
  /** When it was asked, ms of the monotonic clock. */
  readonly at: number
  /** The sequence that the watch had reached when the previous question was asked. */
  readonly reachedBefore: number
}

/** The leader's answer about its bucket's stream. */
interface LeaderAnswer {
  readonly lastSeq: number
  /** True if the leader has a message beyond what the watch has shown, up to `lastSeq`. */
  readonly hasMore: boolean
}

/**
 * State of a watch relative to the leader:
 * - `current`: it shows all that the leader had, as far as that can be expected yet;
 * - `unanswered`: the leader has not answered for too long;
 * - `behind`: an entry is missing for too long, and more entries arrive;
 * - `stuck`: an entry is missing for too long, and none arrive;
 * - `truncated`: the leader has less than the watch has shown: the stream was truncated.
 */
type WatchStanding = "current" | "unanswered" | "behind" | "stuck" | "truncated"

/**
 * Tracks how far a watch of a bucket is behind the bucket's leader. Any replica may serve a watch,
 * and lag. A watch whose consumer has died shows nothing, like a watch of an idle bucket. Times are
 * ms of the monotonic clock.
 */
export class WatchLag {
  #reached = 0
  /** The sequence that was reached when the last question was asked. */
  #reachedWhenAsked = 0
  /** When the latest answered question was asked. */
  #answeredAt: number
  #shownAt: number
  /**
   * The sequences that must be shown yet, ascending, and when the first question was asked whose
   * answer had each: one at most for each question while the watch shows less.
   */
  #goals: Array<{ readonly seq: number; readonly at: number }> = []
  #isTruncated = false

  /** @param now when the watch was started. */
  constructor(now: number) {
    this.#answeredAt = now
    this.#shownAt = now
  }

  /** The sequence up to which the watch has shown everything that the leader still has. */
  get reached(): number {
    return this.#reached
  }

  /** Called when the watch shows a message. Returns true if it was the last missing one. */
  shown(seq: number, now: number): boolean {
    this.#shownAt = now
    return this.#advance(seq)
  }

  asked(now: number): LeaderQuestion {
    const reachedBefore = this.#reachedWhenAsked
    this.#reachedWhenAsked = this.#reached
    return { at: now, reachedBefore }
  }

  /** Called with the leader's answer. Questions may overlap, and be answered in another order. */
  answered({ at, reachedBefore }: LeaderQuestion, { hasMore, lastSeq }: LeaderAnswer): void {
    this.#answeredAt = Math.max(this.#answeredAt, at)
    // A replica may be ahead of the leader's answer, but only for a moment: not of a later answer.
    if (lastSeq < reachedBefore) this.#isTruncated = true
    // Messages in between may have been purged: no watch ever shows them.
    if (!hasMore) this.#advance(lastSeq)
    else if (lastSeq > Math.max(this.#reached, this.#goals.at(-1)?.seq ?? 0))
      this.#goals.push({ seq: lastSeq, at })
  }

  at(now: number): WatchStanding {
    if (this.#isTruncated) return "truncated"
    if (now - this.#answeredAt > maxSilenceMs) return "unanswered"
    const [goal] = this.#goals
    if (goal === undefined || now - goal.at <= maxLagMs) return "current"
    return now - this.#shownAt > maxLagMs ? "stuck" : "behind"
  }

  /**
   * True if the watch has shown all that the leader had when it was last asked: stricter than
   * `current`.
   */
  isCaughtUp(now: number): boolean {
    return this.#goals.length === 0 && this.at(now) === "current"
  }

  #advance(seq: number): boolean {
    this.#reached = Math.max(this.#reached, seq)
    if (this.#goals.length === 0) return false
    this.#goals = this.#goals.filter((goal) => goal.seq > this.#reached)
    return this.#goals.length === 0
  }
}

/** A value of a bucket, or its absence. */
export interface ShownValue {
  readonly revision: number
  /** Undefined if it was removed or never existed. */
  readonly text: string | undefined
}

/**
 * Decides what to do with a value that a watch shows. A value that is no newer than the known one
 * may come from a lagging replica, or from a truncated stream that reuses its sequences: only the
 * leader can tell.
 */
export const weigh = (known: ShownValue, shown: ShownValue): "take" | "same" | "ask-leader" => {
  if (shown.revision > known.revision) return "take"
  return shown.revision === known.revision && shown.text === known.text ? "same" : "ask-leader"
}
