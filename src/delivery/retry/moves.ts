import { Clock, Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { Gate } from "../../broker/gate.ts"
import type { Layout } from "../../broker/installed.ts"
import { PublishError } from "../../broker/publication.ts"
import { publishOnce } from "../../broker/publish-once.ts"
import type { OwnerFence } from "../../cluster/ownership.ts"
import type { PlacedDelivery } from "../../domain/delivery.ts"
import { deliveryHeaders, scheduleHeaders } from "../../domain/delivery.ts"
import { placeName } from "../../domain/fact.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"
import { mayBeApplied } from "../../policy/decide.ts"
import { findMoved, isDeadLetter, makeFindDeadLetter, scheduleId } from "./applied-steps.ts"
import type { DeadLetterGate } from "./dead-letter-gate.ts"

export interface MovesOptions {
  readonly layout: Layout
  /** Of the partition. */
  readonly memory: { readonly index: number }
  /** Stores dead letters. Shared by all partitions. */
  readonly deadLetters: Pick<DeadLetterGate, "store">
  /** Guards the writing of retry records. Shared by all partitions. */
  readonly records: Gate
  /** Stops a former owner: only the current owner decides. */
  readonly fence: OwnerFence
}

/**
 * Moves a message to a broker schedule or to DEAD, once however often it is repeated. The caller
 * releases the message from its old place.
 */
export const makeMoves = Effect.fnUntraced(function* ({
  deadLetters,
  fence,
  layout,
  memory,
  records
}: MovesOptions) {
  const context = yield* Effect.context<Broker>()
  const { names, publish } = yield* Broker
  const findDeadLetter = yield* makeFindDeadLetter

  /**
   * True where the move may have been made before, or the decision is older than what the broker
   * remembers.
   */
  const mayBeDone = Effect.fnUntraced(function* (record: RetryRecord, begun: boolean) {
    const now = yield* Clock.currentTimeMillis
    return begun || mayBeApplied(record.decidedAt, now, layout.moveDedupe / 2)
  })

  const movedFrom = (handle: PlacedDelivery, record: RetryRecord) => ({
    ...handle.delivery,
    progress: record.progress,
    origin: placeName(handle.place)
  })

  return {
    /** @param begun whether an earlier try may have stored it. */
    toSchedule: Effect.fnUntraced(function* (
      handle: PlacedDelivery,
      record: RetryRecord,
      at: number,
      begun: boolean
    ) {
      const { endpoint, tenant } = handle.delivery
      const scheduled = publish(
        names.subjects.schedule(
          memory.index,
          scheduleId(handle.place, memory.index, names, record)
        ),
        handle.body,
        [
          ...deliveryHeaders(movedFrom(handle, record), `${placeName(handle.place)}.later`),
          ...scheduleHeaders(at, names.subjects.delivery(memory.index, tenant, endpoint))
        ]
      )
      const find = Effect.provideContext(findMoved(handle, memory.index, record), context)
      const store = publishOnce(Effect.andThen(fence.asOwner, scheduled), find, {
        tried: yield* mayBeDone(record, begun)
      })
      yield* records.unlessRefused(layout.moveDedupe / 2, store)
    }),

    /**
     * @param begun whether an earlier try may have stored it.
     * @returns the sequence of the dead letter in DEAD.
     */
    toDead: Effect.fnUntraced(function* (
      handle: PlacedDelivery,
      record: RetryRecord,
      reason: DeadReason,
      begun: boolean
    ) {
      const before = (yield* mayBeDone(record, begun))
        ? yield* findDeadLetter(handle, record.decidedAt)
        : undefined
      if (before !== undefined) return before
      const { endpoint, tenant } = handle.delivery
      const subject = names.subjects.dead(tenant, endpoint)
      const dead = publish(subject, handle.body, [
        ...deliveryHeaders(movedFrom(handle, record), `${placeName(handle.place)}.dead`),
        ["petrel-reason", reason],
        ["petrel-dead-at", String(record.decidedAt)]
      ])
      const stored = yield* deadLetters.store(
        tenant,
        handle.body.length,
        Effect.andThen(fence.asOwner, dead)
      )
      if (!stored.duplicate || (yield* isDeadLetter(stored.seq, handle))) return stored.seq
      const found = yield* findDeadLetter(handle, record.decidedAt)
      if (found !== undefined) return found
      const detail = "the broker calls the dead letter a duplicate of what is not there"
      return yield* new PublishError({ subject, reason: "rejected", code: 0, detail })
    })
  }
})
