import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { writeValue } from "../../broker/values.ts"
import { readEntry } from "../../cluster/kv-entry.ts"
import type { ReadingPosition } from "../../history/reading-position.ts"

/** Up to where spans of the history were exported, under this key of the bucket of jobs. */
const key = "traces.position"

const TracePosition = Schema.Struct({
  v: Schema.Literal(1),
  /** Sequence in HISTORY. */
  seq: Schema.Int,
  /** When the fact there was stored, ns since the epoch; empty if that is not known. */
  nanoseconds: Schema.String
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(TracePosition))
const encode = Schema.encodeSync(Schema.fromJsonString(TracePosition))

/** A position with its revision in the bucket. */
export interface StoredPosition extends ReadingPosition {
  readonly revision: number
}

/** Reads the position, undefined if there is none yet, and the revision to store another one over. */
export const readTracePosition = Effect.gen(function* () {
  const { names } = yield* Broker
  const { revision, text } = yield* readEntry(names.buckets.jobs, key)
  const position = text === undefined ? undefined : Option.getOrUndefined(decode(text))
  return { revision, position }
})

/**
 * Stores a position over another one. Fails with a conflict if another console has stored one.
 *
 * @param revision of the one before; 0 for none.
 */
export const storeTracePosition = Effect.fnUntraced(function* (
  { nanoseconds, seq }: ReadingPosition,
  revision: number
) {
  const { names } = yield* Broker
  const value = encode({ v: 1, seq, nanoseconds })
  const stored = yield* writeValue(names.buckets.jobs, key, value, { expected: revision })
  return { seq, nanoseconds, revision: stored.seq } satisfies StoredPosition
})
