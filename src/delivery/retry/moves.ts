import { Clock, Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { Gate } from "../../broker/gate.ts"
import type { Layout } from "../../broker/installed.ts"
import { publishOnce } from "../../broker/publish-once.ts"
import { PublishError } from "../../broker/publisher.ts"
import { deliveryHeaders } from "../../domain/delivery.ts"
import { placeName } from "../../domain/fact.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import { findMoved, isDeadLetter, makeFindDeadLetter, scheduleId } from "../recovery/search.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import type { DeadLetterGate } from "./dead-letter-gate.ts"
import type { RetryRecord } from "./retry-record.ts"

export interface MovesOptions {
  readonly layout: Layout
  readonly memory: StreamMemory
  /** Stores dead letters, for all partitions. */
  readonly deadLetters: Pick<DeadLetterGate, "store">
  /** Writes retry records, for all partitions. */
  readonly records: Gate
}

/**
 * Stores what a message becomes in its new place, once however often it is begun: a schedule of
 * the broker or a dead letter. To let go of the old place is left to the caller.
 */
export const makeMoves = Effect.fnUntraced(function* ({
  deadLetters,
  layout,
  memory,
  records
}: MovesOptions) {
  const context = yield* Effect.context<Broker>()
  const { names, publisher } = yield* Broker
  const findDeadLetter = yield* makeFindDeadLetter

  /** True where it may have been done before, or was decided so long ago that the broker forgot. */
  const mayBeDone = Effect.fnUntraced(function* (record: RetryRecord, begun: boolean) {
    const now = yield* Clock.currentTimeMillis
    return begun || now - record.decidedAt > layout.moveDedupe / 2
  })

  const movedFrom = (held: AckHandle, record: RetryRecord) => ({
    ...held.delivery,
    progress: record.progress,
    origin: placeName(held.place)
  })

  return {
    /** @param begun whether somebody may have tried before. */
    toSchedule: Effect.fnUntraced(function* (
      held: AckHandle,
      record: RetryRecord,
      at: number,
      begun: boolean
    ) {
      const { endpoint, tenant } = held.delivery
      const publish = publisher.publish(
        names.subjects.schedule(memory.index, scheduleId(held.place, memory.index, names, record)),
        held.body,
        [
          ...deliveryHeaders(movedFrom(held, record), `${placeName(held.place)}.later`),
          ["Nats-Schedule", `@at ${new Date(at).toISOString()}`],
          ["Nats-Schedule-Target", names.subjects.delivery(memory.index, tenant, endpoint)]
        ]
      )
      const find = Effect.provideContext(findMoved(held, memory.index, record), context)
      const store = publishOnce(publish, find, { tried: yield* mayBeDone(record, begun) })
      yield* records.within(layout.moveDedupe / 2, store)
    }),

    /**
     * @param begun whether somebody may have tried before.
     * @returns the sequence of the dead letter in DEAD.
     */
    toDead: Effect.fnUntraced(function* (
      held: AckHandle,
      record: RetryRecord,
      reason: DeadReason,
      begun: boolean
    ) {
      const before = (yield* mayBeDone(record, begun))
        ? yield* findDeadLetter(held, record.decidedAt)
        : undefined
      if (before !== undefined) return before
      const { endpoint, tenant } = held.delivery
      const subject = names.subjects.dead(tenant, endpoint)
      const publish = publisher.publish(subject, held.body, [
        ...deliveryHeaders(movedFrom(held, record), `${placeName(held.place)}.dead`),
        ["petrel-reason", reason],
        ["petrel-dead-at", String(record.decidedAt)]
      ])
      const stored = yield* deadLetters.store(tenant, held.body.length, publish)
      if (!stored.duplicate || (yield* isDeadLetter(stored.seq, held))) return stored.seq
      const found = yield* findDeadLetter(held, record.decidedAt)
      if (found !== undefined) return found
      const detail = "the broker calls the dead letter a duplicate of what is not there"
      return yield* new PublishError({ subject, reason: "rejected", code: 0, detail })
    })
  }
})
