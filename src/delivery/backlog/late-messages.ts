import { Effect, Option } from "effect"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import type { Addressee, Delivery } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import { type BacklogOwner, isLate } from "../recovery/backlog-owners.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { LastMessage } from "./backlog-end.ts"
import type { BacklogPosition } from "./backlog-page.ts"
import { placeIn } from "./backlog-page.ts"
import type { ReadDelivery } from "./backlog-reader.ts"
import type { Drain } from "./drain.ts"

/** What is known of a delivery that was read: `handled` if it has ended or is under way. */
export type ReadStanding = "waiting" | "handled" | "unknown"

export interface LateMessagesOptions {
  /** Of the backlogs. */
  readonly memory: Pick<StreamMemory, "recordedAttempts">
  /** Notes that this owner begins after a sequence. Returns the partition's owners, the oldest first. */
  readonly noteOwner: (
    after: number
  ) => Effect.Effect<ReadonlyArray<BacklogOwner>, BrokerError | PublishError>
  /** True where a delivery has ended, waits, or is attempted now, as far as this owner knows. */
  readonly isKnown: (delivery: Delivery) => boolean
  /** Returns which of an endpoint's deliveries the history has the end of, by `roundKey`. */
  readonly ended: (
    to: Addressee,
    deliveries: ReadonlyArray<Delivery>
  ) => Effect.Effect<ReadonlySet<string>, BrokerError>
}

/**
 * The messages that an owner stored after the next one had begun: they were on their way while their
 * writer stood still. Their deliveries may have ended meanwhile, and whoever owns the partition knows
 * that only if it read the history far enough back. So they are looked up once more.
 */
export class LateMessages {
  readonly #options: LateMessagesOptions
  /** Undefined until this owner has looked. */
  #owners: ReadonlyArray<BacklogOwner> | undefined

  constructor(options: LateMessagesOptions) {
    this.#options = options
  }

  /** Notes the stream's last sequence. The first one counts. */
  begin(last: number): Effect.Effect<void, BrokerError | PublishError> {
    return this.#owners === undefined
      ? Effect.map(this.#options.noteOwner(last), (owners) => {
          this.#owners = owners
        })
      : Effect.void
  }

  /** True for a message that is late. */
  has({ label, seq }: LastMessage): boolean {
    if (label === undefined || this.#owners === undefined) return false
    return isLate(this.#owners, seq, label.owner)
  }

  /** From here on a delivery is sent from where it was read, also by the next owner. */
  adopt(position: BacklogPosition): void {
    if (this.#isUndecided(position)) this.#options.memory.recordedAttempts.add(placeIn(position), 0)
  }

  /** True for a delivery in a late message, until an owner delivers from there. */
  #isUndecided(position: BacklogPosition): boolean {
    const { recordedAttempts } = this.#options.memory
    return this.has(position.page) && !recordedAttempts.isBegun(placeIn(position))
  }

  /**
   * Tells what became of deliveries that were read. Those in late messages are looked up in the
   * history, too: this owner may have forgotten what has ended, as it looks for them once a minute.
   */
  readonly standing = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, read: ReadonlyArray<ReadDelivery>) {
      const { ended, isKnown } = this.#options
      const late = read.filter(({ position }) => this.#isUndecided(position))
      const found =
        late.length === 0
          ? undefined
          : yield* Effect.option(
              ended(
                drain.to,
                late.map(({ delivery }) => delivery)
              )
            )
      return ({ delivery, position }: ReadDelivery): ReadStanding => {
        if (found === undefined || !this.#isUndecided(position)) return "waiting"
        // What is being stored may be found there.
        if (drain.storing > 0 || Option.isNone(found)) return "unknown"
        return isKnown(delivery) || found.value.has(roundKey(delivery)) ? "handled" : "waiting"
      }
    }
  )
}
