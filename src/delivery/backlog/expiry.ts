import type { Clock } from "effect"
import { Effect } from "effect"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import { waitingIn } from "../../domain/backlog-message.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { isPastDeadline } from "../../policy/next-step.ts"
import { grouped } from "../bodies/event-bodies.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { BacklogPage, BacklogPosition } from "./backlog-page.ts"
import { bodyBytes, placeIn, positionsIn } from "./backlog-page.ts"
import type { BacklogReader, ReadDelivery } from "./backlog-reader.ts"
import type { Drain } from "./drain.ts"
import type { ReadStanding } from "./late-messages.ts"

/** Pause before the end of a delivery is tried again that failed, ms. */
const endRetryMs = 30_000

interface ExpiryOptions {
  readonly reader: Pick<BacklogReader, "contents" | "pages">
  readonly memory: Pick<StreamMemory, "completed">
  readonly clock: Clock.Clock
  /** False while the clock may be wrong: nothing is ended then. */
  readonly isClockTrusted: () => boolean
  /** Ends a delivery whose deadline has passed. It was read and is not begun. */
  readonly expire: (handle: AckHandle) => Effect.Effect<void>
  /** Tells where deliveries are that were read, of which a former owner may have stored some late. */
  readonly standing: (
    to: Addressee,
    read: ReadonlyArray<ReadDelivery>
  ) => Effect.Effect<(read: ReadDelivery) => ReadStanding>
  /** Keeps an unreadable message, whose deadlines are therefore unknown. */
  readonly keep: (drain: Drain, seq: number) => Effect.Effect<void>
  /**
   * Called with deliveries of a message that have ended before they were read. Removes the message
   * if none is left, else stores that they have ended.
   */
  readonly ended: (
    drain: Drain,
    page: BacklogPage,
    slots: ReadonlyArray<number>
  ) => Effect.Effect<void, BrokerError | PublishError>
  /** Maximum messages and bytes per read. */
  readonly batch: { readonly messages: number; readonly bytes: number }
  /** Limits the time that the searches of all the worker's backlogs take. */
  readonly dutyCycle: DutyCycle
}

/**
 * No search for deadlines begins before `until`, ms of the monotonic clock. Searches cost time and
 * requests.
 */
export interface DutyCycle {
  until: number
}

/**
 * Ratio of the pause after a read to the read's duration: searches take a tenth of a worker's time.
 */
const pauseFactor = 9
/** How long a read may take before another one may begin, ms. */
const maxReadMs = 1_000

/** Maximum deliveries, and bytes of their bodies, that are ended together and held at once. */
const portion = { items: 64, bytes: 1024 * 1024 }

/**
 * Ends deliveries in a backlog whose deadline has passed while the endpoint accepts nothing. They
 * may be anywhere in the backlog, so all messages are searched once the earliest known deadline has
 * passed, or none is known. The search reads one batch at a time, one backlog after the other,
 * takes at most a tenth of a worker's time, and stops while the endpoint accepts deliveries.
 */
export class Expiry {
  readonly #options: ExpiryOptions

  constructor(options: ExpiryOptions) {
    this.#options = options
  }

  /** True where a search of a backlog is due. */
  isDue(drain: Drain): boolean {
    const { clock, dutyCycle, isClockTrusted } = this.#options
    const next = drain.scan === undefined ? Math.min(drain.nextDeadline, drain.nextStored) : 0
    if (clock.currentTimeMillisUnsafe() < next || this.#elapsed() < dutyCycle.until) return false
    return isClockTrusted()
  }

  /** Returns the pause until the next check, ms. */
  pause({ scan }: Drain, usual: number): number {
    const { until } = this.#options.dutyCycle
    return scan === undefined ? usual : Math.max(1, Math.min(usual, until - this.#elapsed()))
  }

  /**
   * Ends what has passed its deadline in the next batch of a backlog, if a search is due.
   *
   * @param isWanted returns true once the endpoint accepts deliveries.
   */
  readonly scan = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, isWanted: () => boolean) {
      const { batch, dutyCycle, keep, reader } = this.#options
      if (drain.replacing > 0 || !this.isDue(drain) || isWanted()) return
      const begun = this.#elapsed()
      dutyCycle.until = begun + maxReadMs
      if (drain.scan === undefined) drain.nextStored = Number.POSITIVE_INFINITY
      let { first, from } = drain.scan ?? { first: Number.POSITIVE_INFINITY, from: 0 }
      from = Math.max(from, Math.floor(drain.window.passed))
      drain.scan = { first, from }
      drain.reading++
      const read = yield* reader
        .pages(drain, from, batch.messages, batch.bytes)
        .pipe(Effect.ensuring(Effect.sync(() => drain.reading--)))
      from = Math.max(from, read.through + 1)
      for (const page of read.pages) {
        if (page.entries === undefined) yield* keep(drain, page.seq)
        first = Math.min(first, yield* this.#endOver(drain, page, isWanted))
      }
      if (read.isWhole) drain.nextDeadline = first
      drain.scan = read.isWhole ? undefined : { first, from }
      const done = this.#elapsed()
      dutyCycle.until = done + pauseFactor * (done - begun)
    }
  )

  #elapsed(): number {
    return Number(this.#options.clock.monotonicTimeNanosUnsafe()) / 1_000_000
  }

  /**
   * Ends what has passed its deadline in one message. Returns when it is to be looked at again, ms
   * since the epoch.
   */
  readonly #endOver = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, page: BacklogPage, isWanted: () => boolean) {
      const { clock, memory } = this.#options
      const now = clock.currentTimeMillisUnsafe()
      const waiting = positionsIn(page).filter(
        ({ slot }) => !drain.window.has(slot) && !memory.completed.has(slot, page.at)
      )
      const isOver = ({ of }: BacklogPosition) => isPastDeadline(waitingIn(of), now)
      const over = waiting.filter(isOver)
      const first = waiting
        .filter((position) => !isOver(position))
        .reduce(
          (least, { of }) => Math.min(least, waitingIn(of).deadline),
          Number.POSITIVE_INFINITY
        )
      if (over.length === 0) return first
      if (isWanted()) return now
      const left = yield* this.#endAll(drain, page, over)
      return left > 0 ? Math.min(first, now + endRetryMs) : first
    }
  )

  /** Ends deliveries of one message. Returns how many could not be ended. */
  readonly #endAll = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, page: BacklogPage, over: ReadonlyArray<BacklogPosition>) {
      const { ended, reader, standing } = this.#options
      const slots: Array<number> = []
      const endOne = (read: ReadDelivery) =>
        Effect.map(this.#end(drain, read), (isGone) => {
          if (isGone) slots.push(read.position.slot)
        })
      for (const positions of grouped(over, bodyBytes, portion)) {
        const found = yield* reader.contents(drain, positions)
        const standingOf = yield* standing(drain.to, found)
        const handled = found.filter((read) => standingOf(read) === "handled")
        for (const { position } of handled) {
          drain.endedEarly(position.slot, Effect.void)
          slots.push(position.slot)
        }
        const waiting = found.filter((read) => standingOf(read) === "waiting")
        yield* Effect.forEach(waiting, endOne, { concurrency: 16, discard: true })
      }
      if (slots.length > 0) yield* ended(drain, page, slots)
      return over.length - slots.length
    }
  )

  /** Ends a delivery. Returns false where it could not be ended. */
  readonly #end = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, { body, delivery, position }: ReadDelivery) {
      const { slot } = position
      const handle = drain.hold(placeIn(position), delivery, body)
      let gone: Effect.Effect<void> | undefined
      yield* this.#options.expire({
        ...{ place: handle.place, delivery, body, deliveryCount: handle.deliveryCount },
        ack: (erase) =>
          Effect.sync(() => {
            gone = erase
          }),
        nak: () => undefined
      })
      if (gone === undefined) drain.release(slot)
      else drain.endedEarly(slot, gone)
      return gone !== undefined
    }
  )
}
