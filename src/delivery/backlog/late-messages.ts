import { Effect, Option } from "effect"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import type { Addressee, Delivery } from "../../domain/delivery.ts"
import { type BacklogOwner, isLate } from "../recovery/backlog-owners.ts"
import { isUndecided, type LateEntry } from "../recovery/late-entries.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { LastMessage } from "./backlog-end.ts"
import type { BacklogPosition } from "./backlog-page.ts"
import { placeIn } from "./backlog-page.ts"
import type { ReadDelivery } from "./backlog-reader.ts"
import type { BacklogWriter } from "./backlog-writer.ts"

/** What is known of a delivery that was read: `handled` if it has ended or is under way. */
export type ReadStanding = "waiting" | "handled" | "unknown"

export interface LateMessagesOptions {
  /** Of the backlogs. */
  readonly memory: Pick<StreamMemory, "recordedAttempts" | "stream">
  /** Notes that this owner begins after a sequence. Returns the partition's owners, the oldest first. */
  readonly noteOwner: (
    after: number
  ) => Effect.Effect<ReadonlyArray<BacklogOwner>, BrokerError | PublishError>
  readonly writer: Pick<BacklogWriter, "standing">
  /** True where a delivery has ended, waits, or is attempted now, as far as this owner knows. */
  readonly isKnown: (delivery: Delivery) => boolean
  /** Returns which late entries of an endpoint's backlog need not be delivered from there. */
  readonly findHandled: (
    owners: ReadonlyArray<BacklogOwner>,
    to: Addressee,
    entries: ReadonlyArray<LateEntry>
  ) => Effect.Effect<ReadonlySet<LateEntry>, BrokerError>
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
    return label?.owner !== undefined && isLate(this.#known, seq, label.owner)
  }

  /** From here on a delivery is sent from where it was read, also by the next owner. */
  adopt(position: BacklogPosition): void {
    if (this.#isUndecided(position)) this.#options.memory.recordedAttempts.add(placeIn(position), 0)
  }

  get #known(): ReadonlyArray<BacklogOwner> {
    return this.#owners ?? []
  }

  #isUndecided(position: BacklogPosition): boolean {
    const { owner } = position.page.label ?? {}
    return isUndecided(this.#known, this.#options.memory, placeIn(position), owner)
  }

  /**
   * Tells what became of deliveries that were read. Those in late messages are looked up: this owner
   * may have forgotten what has ended or where it goes on, as it looks for late messages once a
   * minute, and their endpoint may be paused for longer.
   */
  readonly standing = Effect.fnUntraced(
    { self: this },
    function* (to: Addressee, read: ReadonlyArray<ReadDelivery>) {
      const { findHandled, isKnown, memory, writer } = this.#options
      const entries = new Map<number, LateEntry>()
      for (const { delivery, position } of read)
        if (this.#isUndecided(position)) {
          const place = { stream: memory.stream, ...placeIn(position) }
          entries.set(position.slot, { place, delivery })
        }
      const taken =
        entries.size === 0
          ? Option.some<ReadonlySet<LateEntry>>(new Set())
          : yield* Effect.option(findHandled(this.#known, to, [...entries.values()]))
      return ({ delivery, position }: ReadDelivery): ReadStanding => {
        const entry = entries.get(position.slot)
        if (entry === undefined || !this.#isUndecided(position)) return "waiting"
        const own = writer.standing(delivery)
        if (own === "storing" || Option.isNone(taken)) return "unknown"
        const isTaken = isKnown(delivery) || taken.value.has(entry)
        return isTaken || own === "stored" ? "handled" : "waiting"
      }
    }
  )
}
