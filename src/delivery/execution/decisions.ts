import type { Context } from "effect"
import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { Gate } from "../../broker/gate.ts"
import type { PublishError } from "../../broker/publication.ts"
import { isConflict } from "../../broker/values.ts"
import type { OwnerFence } from "../../cluster/ownership.ts"
import type { PlacedDelivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { slotOf } from "../../domain/fact.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"
import type { StreamMemory, WaitingDelivery } from "../recovery/partition-memory.ts"
import {
  eraseRecord,
  isErased,
  readRevised,
  readRevision,
  writeRecord
} from "../retry/retry-records.ts"

/** A decision, and what led to it. */
export type Decided = Pick<RetryRecord, "decision" | "progress" | "decidedAt" | "outcome">

/** A stored decision; `released` where it was erased because its message has ended. */
export type Recalled = WaitingDelivery | "released" | undefined

/** The decisions about the messages of one stream, in memory and in the retries bucket. */
export class Decisions {
  readonly #memory: StreamMemory
  readonly #records: Gate
  readonly #fence: Pick<OwnerFence, "asOwner">
  /** For effects that run without their caller's services. */
  readonly #services: Context.Context<Broker>

  constructor(
    memory: StreamMemory,
    records: Gate,
    fence: Pick<OwnerFence, "asOwner">,
    services: Context.Context<Broker>
  ) {
    this.#memory = memory
    this.#records = records
    this.#fence = fence
    this.#services = services
  }

  /** Number of messages that have a decision, or may have one. */
  get count(): number {
    return this.#memory.waiting.size + this.#memory.unreadRecords.size
  }

  /** True where a message has a decision, or may have one. */
  has(place: Place): boolean {
    const slot = slotOf(place)
    return this.#memory.waiting.has(slot) || this.#memory.unreadRecords.has(slot)
  }

  /** Returns the decision about a message, as far as it is in memory. */
  inMemory({ place }: Pick<PlacedDelivery, "place">) {
    const waiting = this.#memory.waiting.get(slotOf(place))
    return waiting?.storedAt === place.at ? waiting : undefined
  }

  /**
   * Returns the decision about a message: from memory, or from the leader where a former owner made
   * it.
   */
  recall({ place }: Pick<PlacedDelivery, "place">) {
    const { unreadRecords, waiting } = this.#memory
    const inMemory = this.inMemory({ place })
    if (inMemory !== undefined) return Effect.succeed<Recalled>(inMemory)
    // A truncated stream reuses the sequence for another message.
    waiting.delete(slotOf(place))
    return unreadRecords.has(slotOf(place))
      ? this.#read(place)
      : Effect.succeed<Recalled>(undefined)
  }

  /**
   * Stores a decision however long it takes, so that it outlives this worker. Each try is the
   * owner's: a break of the connection may have outlasted the lease.
   */
  store({ delivery, place }: Pick<PlacedDelivery, "delivery" | "place">, decided: Decided) {
    const record: RetryRecord = { v: 1, ...decided }
    let over = this.inMemory({ place })?.revision ?? 0
    const write = Effect.suspend(() => writeRecord(place, record, delivery.deadline, over))
    // It is this decision, of a try without an answer, or that of a former owner who stood still.
    const lookAgain = (conflict: PublishError) =>
      Effect.matchEffect(readRevision(place), {
        onFailure: () => Effect.fail(conflict),
        onSuccess: (revision) => {
          over = revision
          return storeAsOwner
        }
      })
    const storeAsOwner: Effect.Effect<number, PublishError, Broker> = Effect.andThen(
      this.#fence.asOwner,
      Effect.catchIf(write, isConflict, lookAgain)
    )
    const stored = this.#records.untilStored(Effect.provideContext(storeAsOwner, this.#services))
    return Effect.map(stored, (revision) => {
      const waiting = { record, revision, storedAt: place.at, isOutcomeRecorded: false }
      this.#memory.waiting.set(slotOf(place), waiting)
      return waiting
    })
  }

  /** Drops the outcome's fact from memory: it is in the history, and may be large. */
  outcomeRecorded(place: Place, { outcome: _, ...record }: RetryRecord): void {
    const waiting = this.inMemory({ place })
    if (waiting !== undefined)
      this.#memory.waiting.set(slotOf(place), { ...waiting, record, isOutcomeRecorded: true })
  }

  /**
   * Forgets the decision about a message that was released. Returns what erases its record, once the
   * message is gone.
   */
  forget({ place }: Pick<PlacedDelivery, "place">): Effect.Effect<void> {
    const slot = slotOf(place)
    const hasRecord = this.#memory.waiting.delete(slot)
    const mayHaveRecord = this.#memory.unreadRecords.delete(slot)
    return hasRecord || mayHaveRecord
      ? Effect.provideContext(eraseRecord(place), this.#services)
      : Effect.void
  }

  readonly #read = Effect.fnUntraced({ self: this }, function* (place: Place) {
    const { recordedAttempts, unreadRecords, waiting } = this.#memory
    const { at } = place
    const slot = slotOf(place)
    const stored = yield* readRevised(place)
    const isReleased = stored === undefined && (yield* isErased(place))
    unreadRecords.delete(slot)
    if (isReleased) return "released"
    if (stored === undefined) return undefined
    const isOutcomeRecorded = recordedAttempts.has(place, stored.record.progress.attempts)
    const found: WaitingDelivery = { ...stored, storedAt: at, isOutcomeRecorded }
    waiting.set(slot, found)
    return found
  })
}
