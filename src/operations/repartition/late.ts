import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BacklogOwner } from "../../delivery/recovery/backlog-owners.ts"
import { findHandledEntries, isUndecided } from "../../delivery/recovery/late-entries.ts"
import type { PartitionMemory } from "../../delivery/recovery/partition-memory.ts"
import { isKnown, noteLeft } from "../../delivery/recovery/partition-memory.ts"
import {
  backlogEntriesIn,
  labelIn,
  originStreams,
  waitingIn
} from "../../domain/backlog-message.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { slotOf } from "../../domain/fact.ts"

/**
 * Returns which deliveries in some messages of an endpoint's backlog are handled, by slot: a former
 * owner stored them late, and they have ended or go on at another place, as their next owner would find. It
 * is noted that the others of those have left their former places.
 *
 * @param owners of the partition, the oldest first, with whoever makes the change as the last one.
 */
export const findHandled = Effect.fnUntraced(function* (
  partition: PartitionMemory,
  owners: ReadonlyArray<BacklogOwner>,
  to: Addressee,
  messages: ReadonlyArray<StoredMsg>
) {
  const { names } = yield* Broker
  const { backlog, index } = partition
  const streams = originStreams(names, index)
  const late = messages.flatMap(({ header, seq, subject, time }) => {
    const get = (name: string) => header.get(name) || undefined
    const writer = labelIn(get)?.owner
    const message = { stream: backlog.stream, seq, at: time.getTime() }
    return (backlogEntriesIn(subject, get, streams) ?? [])
      .map((of) => ({
        place: of.entry === undefined ? message : { ...message, entry: of.entry },
        delivery: waitingIn(of)
      }))
      .filter(({ place }) => isUndecided(owners, backlog, place, writer))
  })
  if (late.length === 0) return new Set<number>()
  const found = yield* findHandledEntries(partition, owners, to, late)
  const handled = new Set<number>()
  for (const entry of late)
    if (isKnown(partition, names.events, entry.delivery) || found.has(entry))
      handled.add(slotOf(entry.place))
    else noteLeft(partition, names.events, entry.delivery)
  return handled
})
