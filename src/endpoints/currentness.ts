import { Deferred, Effect } from "effect"
import { elapsedMs } from "../time/elapsed.ts"

/** A judgement expires after this time, ms: the machine may have been suspended since. */
const judgedForMs = 2_000

/** Whether plans may be based on the endpoints in memory. */
export interface Currentness {
  /** True while the endpoints are less than 10 s behind the bucket. */
  readonly isCurrent: () => boolean
  /** Waits until the endpoints are current; returns at once if they are. */
  readonly current: Effect.Effect<void>
  /**
   * While the endpoints are current: the revision of the bucket up to which all changes are in
   * memory. No later change is.
   */
  readonly revision: () => number
}

/** The currentness of the endpoints, as readings of the bucket and reconnects change it. */
export class CurrentnessSwitch implements Currentness {
  /** The revision up to which the reading under way is complete. */
  reached = (): number => 0
  #isOpen = false
  #opening = Deferred.makeUnsafe<void>()
  readonly #complete = Deferred.makeUnsafe<void>()
  #judgedAt = 0
  /** Changes at each reconnect: earlier answers prove nothing any more. */
  #connection = 0
  #interrupted = Deferred.makeUnsafe<void>()

  readonly isCurrent = (): boolean => this.#isOpen && elapsedMs() - this.#judgedAt < judgedForMs

  readonly current = Effect.suspend(() =>
    this.#isOpen ? Effect.void : Deferred.await(this.#opening)
  )

  readonly revision = (): number => this.reached()

  /** Waits until the first reading is complete. */
  get complete(): Effect.Effect<void> {
    return Deferred.await(this.#complete)
  }

  /**
   * A reading begins. `open` declares it complete, unless the connection was lost since;
   * `interrupted` waits until it is.
   */
  begin(): { readonly open: () => void; readonly interrupted: Effect.Effect<void> } {
    this.close()
    this.#interrupted = Deferred.makeUnsafe()
    const connection = this.#connection
    return {
      open: () => {
        if (this.#isOpen || connection !== this.#connection) return
        this.#isOpen = true
        Deferred.doneUnsafe(this.#opening, Effect.void)
        Deferred.doneUnsafe(this.#complete, Effect.void)
      },
      interrupted: Deferred.await(this.#interrupted)
    }
  }

  close(): void {
    if (this.#isOpen) this.#opening = Deferred.makeUnsafe()
    this.#isOpen = false
  }

  /** The watch was judged, at a time of the monotonic clock (ms). */
  judged(at: number): void {
    this.#judgedAt = at
  }

  onReconnect(): void {
    this.#connection++
    this.close()
    Deferred.doneUnsafe(this.#interrupted, Effect.void)
  }
}
