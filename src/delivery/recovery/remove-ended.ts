import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Option } from "effect"
import { Broker } from "../../broker/broker.ts"
import { removeIf } from "../../broker/removal.ts"
import type { DeliveryReference } from "../../domain/backlog-message.ts"
import { originStreams, referencesIn } from "../../domain/backlog-message.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { placeOfSlot, slotOf } from "../../domain/fact.ts"
import type { StoredEnds } from "../retry/retry-records.ts"
import { eraseRecord, readEnded, readRecord, writeEnded } from "../retry/retry-records.ts"
import { type BacklogOwner, replacedBy } from "./backlog-owners.ts"
import type { CompletedDeliveries } from "./completed-deliveries.ts"
import type { StreamMemory } from "./partition-memory.ts"

/**
 * Stores which entries of a message have ended, or have left it, so that the next owner knows it
 * although the history's watermark has passed their facts.
 *
 * @param place of the message.
 * @param before what of that this owner has read or stored. (Default: nothing)
 * @returns what is stored now.
 */
export const saveEnded = Effect.fnUntraced(function* (
  completed: Pick<CompletedDeliveries, "has">,
  place: Omit<Place, "entry">,
  { deadline, entries }: HeldEntries,
  before?: StoredEnds
) {
  const { at, seq } = place
  const ended = numbers(entries).filter((entry) => completed.has(slotOf({ seq, entry }), at))
  return ended.length > 0 ? yield* writeEnded(place, ended, deadline, before) : before
})

/** How many entries a message holds, and the last of their deadlines, ms since the epoch. */
export interface HeldEntries {
  readonly entries: number
  readonly deadline: number
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** Returns what a message of references holds. */
export const heldIn = (
  references: ReadonlyArray<Pick<DeliveryReference, "deadline">>
): HeldEntries => ({
  entries: references.length,
  deadline: references.reduce((latest, { deadline }) => Math.max(latest, deadline), 0)
})

/** Returns the slots of a message's entries. */
export const slotsOf = (seq: number, { entries }: HeldEntries): ReadonlyArray<number> =>
  numbers(entries).map((entry) => slotOf({ seq, entry }))

/*
 * Removes messages whose deliveries have ended, but that a former owner did not release after their
 * fact. Nothing keeps the watermark below these facts: the owner after this one would not know that
 * the deliveries have ended, and would send them again.
 */

/** Endpoints whose messages are removed at the same time. */
const maxConcurrentEndpoints = 32

/** Sequences of messages of which deliveries have ended, by endpoint. */
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
    const { at, entry, seq } = place
    unreadRecords.delete(slotOf(place))
    if (found.value === undefined) return
    const isIt = ({ time }: StoredMsg) => time.getTime() === at
    // Other entries of its message wait.
    if (entry === undefined) yield* removeIf("remove a delivery that has ended", stream, seq, isIt)
    yield* eraseRecord(place)
  })
  const ended = Array.from(unreadRecords)
    .filter(([slot, at]) => completed.has(slot, at))
    .map(([slot, at]): Place => ({ stream, at, ...placeOfSlot(slot) }))
  yield* Effect.forEach(ended, remove, { concurrency: 64, discard: true })
})

/**
 * Removes from a backlog what has ended and was not purged, because an earlier message was in
 * flight. No consumer redelivers it, and its endpoint may take nothing for days.
 *
 * @param ended what has ended, removed or not.
 * @param owners of the partition, the oldest first.
 */
export const removeFromBacklog = Effect.fnUntraced(function* (
  { completed, index, stream, unreadRecords }: StreamMemory,
  ended: EndedMessages,
  owners: ReadonlyArray<BacklogOwner>
) {
  const { deleteMessage, names, readMessage } = yield* Broker
  const operation = "remove a delivery that has ended"
  const streams = originStreams(names, index)
  const remove = Effect.fnUntraced(function* (message: StoredMsg) {
    const { header, seq, subject, time } = message
    const at = time.getTime()
    const references = referencesIn(subject, (name) => header.get(name) || undefined, streams)
    if (references === undefined) {
      if (completed.has(seq, at)) yield* deleteMessage(operation, stream, seq)
      return
    }
    const place = { stream, seq, at }
    const before = yield* readEnded(place)
    for (const entry of before.ended) completed.add(slotOf({ seq, entry }), at)
    const held = heldIn(references)
    if (!slotsOf(seq, held).every((slot) => completed.has(slot, at))) {
      yield* saveEnded(completed, place, held, before)
      // Whoever reads the message learns that there is a record to erase.
      unreadRecords.set(seq, at)
      return
    }
    // Only this message tells that they hold nothing of their own.
    const isOfSubject = (other: StoredMsg) => other.subject === subject
    for (const replaced of replacedBy(message, owners))
      yield* removeIf(operation, stream, replaced, isOfSubject)
    yield* deleteMessage(operation, stream, seq)
    yield* eraseRecord(place)
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
