import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isConflict, readEntry, writeValue } from "../../broker/values.ts"

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
 * Returns which owner a partition had when a message of its backlogs was stored; undefined where
 * that is not remembered.
 *
 * @param owners the oldest first.
 */
export const ownerAt = (owners: ReadonlyArray<BacklogOwner>, seq: number): number | undefined =>
  owners.findLast(({ after }) => after < seq)?.owner

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
    const owners = [
      // A truncated stream reuses sequences.
      ...before.filter(({ after, owner }) => after <= own.after && owner !== own.owner),
      own
    ].slice(-maxRemembered)
    yield* writeValue(workers, key, encode(owners), { expected: revision })
    return owners
  })
  // A former owner may have noted itself late.
  return yield* Effect.retry(note, { times: 3, while: isConflict })
})
