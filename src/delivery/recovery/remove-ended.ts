import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Option } from "effect"
import { Broker } from "../../broker/broker.ts"
import { removeIf } from "../../broker/removal.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { eraseRecord, readRecord } from "../retry/retry-records.ts"
import type { StreamMemory } from "./partition-memory.ts"

/*
 * Removes messages whose deliveries have ended, but that a former owner did not release after their
 * fact. Nothing keeps the watermark below these facts: the owner after this one would not know that
 * the deliveries have ended, and would send them again.
 */

/** Endpoints whose messages are removed at the same time. */
const maxConcurrentEndpoints = 32

/** Sequences of messages whose deliveries have ended, by endpoint. */
export class EndedMessages {
  readonly #byEndpoint = new Map<string, { readonly to: Addressee; readonly seqs: Set<number> }>()

  add({ endpoint, tenant }: Addressee, seq: number): void {
    const key = endpointKey(tenant, endpoint)
    const known = this.#byEndpoint.get(key)
    if (known === undefined)
      this.#byEndpoint.set(key, { to: { tenant, endpoint }, seqs: new Set([seq]) })
    else known.seqs.add(seq)
  }

  /** Returns the sequences of each endpoint, in ascending order. */
  get all(): ReadonlyArray<readonly [to: Addressee, seqs: ReadonlyArray<number>]> {
    return [...this.#byEndpoint.values()].map(({ seqs, to }) => [
      to,
      [...seqs].toSorted((a, b) => a - b)
    ])
  }
}

/**
 * Removes what has ended and has a retry record, and the record. In a queue it may be waiting out
 * the delay of a NAK, and would be redelivered when its end is forgotten. The consumer redelivers
 * the queue's other messages at once.
 */
export const removeRecorded = Effect.fnUntraced(function* ({
  completed,
  stream,
  unreadRecords
}: StreamMemory) {
  const remove = Effect.fnUntraced(function* (place: Place) {
    // The list also contains records that were erased recently.
    const found = yield* Effect.option(readRecord(place))
    if (Option.isNone(found)) return
    const { at, seq } = place
    unreadRecords.delete(seq)
    if (found.value === undefined) return
    const isIt = ({ time }: StoredMsg) => time.getTime() === at
    yield* removeIf("remove a delivery that has ended", stream, seq, isIt)
    yield* eraseRecord(place)
  })
  const ended = Array.from(unreadRecords, ([seq, at]) => ({ stream, seq, at })).filter(
    ({ at, seq }) => completed.has(seq, at)
  )
  yield* Effect.forEach(ended, remove, { concurrency: 64, discard: true })
})

/**
 * Removes from a backlog what has ended and was not purged, because an earlier message was in
 * flight. No consumer redelivers it, and its endpoint may take nothing for days.
 *
 * @param ended what has ended, removed or not.
 */
export const removeFromBacklog = Effect.fnUntraced(function* (
  { completed, index, stream }: StreamMemory,
  ended: EndedMessages
) {
  const { deleteMessage, names, readMessage } = yield* Broker
  const operation = "remove a delivery that has ended"
  const remove = Effect.fnUntraced(function* (message: StoredMsg) {
    const { seq, time } = message
    if (completed.has(seq, time.getTime())) yield* deleteMessage(operation, stream, seq)
  })
  const removeOf = Effect.fnUntraced(function* (to: Addressee, seqs: ReadonlyArray<number>) {
    const next_by_subj = names.subjects.backlog(index, to.tenant, to.endpoint)
    let isNext = 0
    for (const seq of seqs) {
      // Most are gone: what was read last lies behind them.
      if (seq < isNext) continue
      const message = yield* readMessage(operation, stream, { seq, next_by_subj })
      if (message === null) return
      isNext = message.seq + 1
      yield* remove(message)
    }
  })
  yield* Effect.forEach(ended.all, ([to, seqs]) => removeOf(to, seqs), {
    concurrency: maxConcurrentEndpoints,
    discard: true
  })
})
