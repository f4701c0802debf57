import { Deferred, Effect } from "effect"
import type { HandedOver } from "./hand-over.ts"
import type { Ownership } from "./ownership.ts"

/** A partition that this worker owns, from when it takes the lease until it releases it. */
export interface OwnedPartition {
  readonly ownership: Ownership
  /**
   * True once no new work may begin: the partition is to move or has moved to another worker, or
   * this worker stops.
   */
  readonly isOver: () => boolean
  /** Waits until `isOver` is true. */
  readonly over: Effect.Effect<void>
  /**
   * True where another worker waits for it, and for what is remembered of it. No more messages are
   * requested then, and it is over when the open request has ended, which takes a second.
   */
  readonly isAskedFor: () => boolean
}

/** A partition in the hands of this worker, until its lease is released. */
export class TakenPartition implements OwnedPartition {
  readonly ownership: Ownership
  readonly over: Effect.Effect<void>
  /** True once this worker delivers in it. */
  isBegun = false
  readonly #ended = Deferred.makeUnsafe<void>()
  readonly #released = Deferred.makeUnsafe<HandedOver | undefined>()
  #isAskedFor = false

  constructor(ownership: Ownership) {
    this.ownership = ownership
    this.over = Effect.raceFirst(Deferred.await(this.#ended), ownership.lost)
  }

  readonly isOver = (): boolean => Deferred.isDoneUnsafe(this.#ended) || this.ownership.isLost()

  readonly isAskedFor = (): boolean => this.#isAskedFor

  end(): void {
    Deferred.doneUnsafe(this.#ended, Effect.void)
  }

  /**
   * Lets it end for a worker that asks. Returns what waits until it is released, and returns
   * undefined where that failed.
   */
  handOver(): Effect.Effect<HandedOver | undefined> {
    this.#isAskedFor = true
    return Deferred.await(this.#released)
  }

  /** Called when its lease is released. */
  released(handed: HandedOver | undefined): void {
    Deferred.doneUnsafe(this.#released, Effect.succeed(handed))
  }
}
