import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isConflict, readEntry, readValue, writeValue } from "../../broker/values.ts"
import { labelIn } from "../../domain/backlog-message.ts"

/** An owner of a partition. */
const BacklogOwner = Schema.Struct({
  /** When it took over, ms since the epoch: it names the owner in labels (`BacklogLabel`). */
  owner: Schema.Int,
  /** The last sequence of the partition's backlogs when it began. */
  after: Schema.Int
})
export type BacklogOwner = typeof BacklogOwner.Type

const Stored = Schema.fromJsonString(Schema.Array(BacklogOwner))
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeSync(Stored)

/** How many owners are remembered: what was stored before the first of them is not judged. */
const maxRemembered = 16

/** Key of what is remembered of a partition's owners, in the bucket of workers. */
export const backlogOwnersKey = (partition: number) => `backlog-owners.${partition}`

/**
 * True for a message of a partition's backlogs that its writer stored after the next owner had begun;
 * false where no owner of its time is remembered.
 *
 * A writer that began after the owner of that time is not late: the stream was truncated since, and
 * has given the sequence again.
 *
 * @param owners the oldest first.
 * @param writer who stored it, as its label says.
 */
export const isLate = (
  owners: ReadonlyArray<BacklogOwner>,
  seq: number,
  writer: number
): boolean => {
  const then = owners.findLastIndex(({ after }) => after < seq)
  const owner = owners[then]?.owner
  if (owner === undefined) return false
  const known = owners.findIndex((each) => each.owner === writer)
  // Of an unknown one only its clock tells: its note is forgotten, or was lost in a power cut.
  return known === -1 ? writer < owner : known < then
}

/**
 * Returns the messages that a message of a backlog has replaced, so that they hold nothing of their
 * own. One that was stored late has replaced none: what it was to replace is still delivered from
 * there, and proves that the late one need not be.
 *
 * @param owners of the partition, the oldest first.
 */
export const replacedBy = (
  { header, seq }: Pick<StoredMsg, "header" | "seq">,
  owners: ReadonlyArray<BacklogOwner>
): ReadonlyArray<number> => {
  const { owner, replaces = [] } = labelIn((name) => header.get(name) || undefined) ?? {}
  return owner !== undefined && isLate(owners, seq, owner) ? [] : replaces
}

/** Reads the owners of a partition that are remembered, the oldest first. */
export const readOwners = Effect.fnUntraced(function* (partition: number) {
  const { workers } = (yield* Broker).names.buckets
  const entry = yield* readValue(workers, backlogOwnersKey(partition))
  return Option.getOrElse(decode(entry?.string()), (): ReadonlyArray<BacklogOwner> => [])
})

/**
 * Notes a partition's new owner, before it stores anything. Returns the owners that are remembered,
 * itself included, the oldest first. Fails where the broker does not answer.
 */
export const noteOwner = Effect.fnUntraced(function* (partition: number, own: BacklogOwner) {
  const { workers } = (yield* Broker).names.buckets
  const key = backlogOwnersKey(partition)
  const note = Effect.gen(function* () {
    const { revision, text } = yield* readEntry(workers, key)
    const before = Option.getOrElse(decode(text), () => [])
    const former = before
      .filter(({ owner }) => owner !== own.owner)
      // A truncated stream reuses sequences.
      .map(({ after, owner }) => ({ owner, after: Math.min(after, own.after) }))
    const owners = [...former, own].slice(-maxRemembered)
    yield* writeValue(workers, key, encode(owners), { expected: revision })
    return owners
  })
  // A former owner may have noted itself late.
  return yield* Effect.retry(note, { times: 3, while: isConflict })
})
