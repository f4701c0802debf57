import { Deferred, Effect } from "effect"
import { maxEntries } from "../../domain/backlog-message.ts"
import { timers } from "../../time/timers.ts"
import type { BacklogSubject } from "./backlog-end.ts"
import type { BacklogWrite, PendingStore } from "./backlog-write.ts"
import type { Replaced } from "./written-tails.ts"

/** Pause after a replaced message could not be removed, ms. */
const removalPauseMs = 5_000
/**
 * Pause between two messages of one endpoint, ms, unless so many deliveries wait for the next: each
 * message costs requests, however few it holds. The events wait for it, and no delivery does.
 */
const lingerMs = 20
const enough = 64

/** What is written for one endpoint, and what is known of the end of its backlog. */
export class EndpointWrites {
  readonly key: string
  readonly of: BacklogSubject
  /** Requests of which no message is being written, in order. */
  queue: Array<PendingStore> = []
  /** The message that is being written, until it is known what became of it. */
  write: BacklogWrite | undefined
  /** Sequence of the subject's last message, 0 where there is none; undefined if unknown. */
  tail: number | undefined
  /** Number of deliveries that were ever stored, see `BacklogLabel`. */
  stored = 0
  /** Messages whose references are stored again, and that may still be there. */
  replaced: ReadonlyArray<Replaced> = []
  /** The message that holds all of them again where its subject holds nothing else before it. */
  replacedBy: Replaced | undefined
  /** Maximum requests in the next message: fewer after one that was too large. */
  most = maxEntries
  /** How often in a row another message was stored first. */
  refusals = 0
  isWorking = false
  #purgedBelow = 0
  #nextAt = 0
  #removeAt = 0
  #woken: Deferred.Deferred<void> | undefined

  constructor(key: string, of: BacklogSubject) {
    this.key = key
    this.of = of
  }

  get hasWork(): boolean {
    return this.write !== undefined || this.queue.length > 0 || this.replaced.length > 0
  }

  get isRemovalDue(): boolean {
    return this.replaced.length > 0 && timers.monotonicMs() >= this.#removeAt
  }

  /** How long the next message is put off, for more to come into it, ms. */
  get lingerMs(): number {
    return this.queue.length >= enough ? 0 : Math.max(0, this.#nextAt - timers.monotonicMs())
  }

  /** Notes where a message was stored. It may have been delivered and purged in between. */
  storedAt(seq: number): void {
    this.tail = seq < this.#purgedBelow ? 0 : seq
    this.#nextAt = timers.monotonicMs() + lingerMs
    this.refusals = 0
    this.most = Math.min(maxEntries, 2 * this.most)
  }

  /** Notes that the messages below a sequence are gone. */
  purged(below: number): void {
    this.#purgedBelow = Math.max(this.#purgedBelow, below)
    if (this.tail !== undefined && this.tail < below) this.tail = 0
    this.replaced = this.replaced.filter(({ seq }) => seq >= below)
  }

  removed(gone: ReadonlyArray<Replaced>): void {
    this.replaced = this.replaced.filter((one) => !gone.includes(one))
    this.replacedBy = undefined
  }

  removalFailed(): void {
    this.#removeAt = timers.monotonicMs() + removalPauseMs
  }

  /** Drops a request of which no message is being written. */
  takeBack(request: PendingStore): void {
    const at = this.queue.indexOf(request)
    if (at !== -1) this.queue.splice(at, 1)
  }

  /** Puts requests back that are certainly not stored. */
  putBack(requests: ReadonlyArray<PendingStore>): void {
    for (const request of requests) request.isSent = false
    this.queue.unshift(...requests)
  }

  /** Allows half as many requests in the next message. */
  halve(requests: number): void {
    this.most = Math.max(1, Math.floor(Math.min(this.most, requests) / 2))
  }

  /** Begins a pause: until there is more to do, or for a time, ms. */
  pause(ms: number): Effect.Effect<void> {
    this.#woken = Deferred.makeUnsafe<void>()
    return Effect.raceFirst(Effect.sleep(ms), Deferred.await(this.#woken))
  }

  /** Ends a pause. */
  wake(): void {
    if (this.#woken !== undefined) Deferred.doneUnsafe(this.#woken, Effect.void)
  }
}
