/**
 * Time for which nothing must be answered before a stream counts as one that stores nothing, ms: a
 * leader is elected within it, and a broker that is merely slow answers something.
 */
const storesNothingAfterMs = 10_000
/** So many publishes must have timed out meanwhile: single answers may be lost. */
const leastTimedOut = 3
/** After the last time-out a stream counts for so long, ms: what waits is published again sooner. */
const forgottenAfterMs = 60_000

/** A stream for which the broker, though connected, acknowledges nothing that is published. */
export interface UnansweredStream {
  readonly stream: string
  /** For how long. */
  readonly ms: number
}

interface Silence {
  /** When the first publish was sent that timed out, and when the last one did. */
  readonly since: number
  readonly latest: number
  /** Number of publishes that timed out. */
  readonly count: number
}

/**
 * The streams in which publishes time out and none is stored. After a failed write to its disk the
 * broker stores nothing in the stream until it is restarted, and does not answer. Only refusals by
 * a precondition, and duplicates, are still answered. Times are ms of the monotonic clock.
 */
export class Unanswered {
  readonly #streamOf: (subject: string) => string | undefined
  readonly #silences = new Map<string, Silence>()
  /** By stream, when what it has stored was sent, the latest. */
  readonly #storedUpTo = new Map<string, number>()
  /**
   * The stream of a subject by the one that acknowledges it: where tenants have streams of their own,
   * events are stored in another one first. Every acknowledgement needs it, and a subject takes longer.
   */
  readonly #streams = new Map<string, string>()

  /** @param streamOf returns the stream that a subject is stored in; undefined if unknown. */
  constructor(streamOf: (subject: string) => string | undefined) {
    this.#streamOf = streamOf
  }

  timedOut(subject: string, sentAt: number, now: number): void {
    const stream = this.#streamOf(subject)
    // What was sent later is stored: only an answer was lost.
    if (stream === undefined || (this.#storedUpTo.get(stream) ?? 0) > sentAt) return
    const known = this.#silences.get(stream)
    const isOld = known === undefined || now - known.latest > forgottenAfterMs
    const begun = isOld ? { since: sentAt, count: 0 } : known
    this.#silences.set(stream, { since: begun.since, latest: now, count: begun.count + 1 })
  }

  /**
   * The broker has stored a message.
   *
   * @param acknowledges the stream that its acknowledgement names.
   */
  stored(subject: string, sentAt: number, acknowledges: string): void {
    let stream = this.#streams.get(acknowledges)
    if (stream === undefined) {
      stream = this.#streamOf(subject) ?? acknowledges
      this.#streams.set(acknowledges, stream)
    }
    if (sentAt > (this.#storedUpTo.get(stream) ?? 0)) this.#storedUpTo.set(stream, sentAt)
    if (this.#silences.size > 0) this.#silences.delete(stream)
  }

  /**
   * A message that timed out when it was sent first turns out to be stored: the broker calls the next
   * attempt a duplicate. So the stream stored something after that, and its answer was lost.
   */
  wasStored(subject: string, sentAt: number): void {
    const stream = this.#streamOf(subject)
    const silence = stream === undefined ? undefined : this.#silences.get(stream)
    if (stream !== undefined && silence !== undefined && silence.since <= sentAt)
      this.#silences.delete(stream)
  }

  /** Forgets all: there is another connection, and perhaps another broker. */
  clear(): void {
    this.#silences.clear()
    this.#storedUpTo.clear()
  }

  streams(now: number): ReadonlyArray<UnansweredStream> {
    return [...this.#silences].flatMap(([stream, { count, latest, since }]) =>
      count < leastTimedOut ||
      latest - since < storesNothingAfterMs ||
      now - latest > forgottenAfterMs
        ? []
        : [{ stream, ms: Math.round(now - since) }]
    )
  }
}
