import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, isConflict, readValues, writeValue } from "../broker/values.ts"
import { isEnqueuing } from "../cluster/enqueuer-presence.ts"

/**
 * Rounds that a process begins, under `rounds.<instance>` in the workers bucket. It is written
 * before the first of them is claimed, and erased when each claimed one has its message or its end.
 * What a process leaves that dies in between is finished from it.
 */
const RoundsUnderWay = Schema.Struct({
  v: Schema.Literal(1),
  kind: Schema.Literals(["redelivered", "replayed"]),
  tenant: Schema.String,
  endpoint: Schema.String,
  /** The claims of these rounds come behind it: a sequence of HISTORY. */
  behind: Schema.Int,
  by: Schema.String,
  /** ms since the epoch */
  at: Schema.Number
})
export type RoundsUnderWay = typeof RoundsUnderWay.Type

const encode = Schema.encodeSync(Schema.fromJsonString(RoundsUnderWay))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(RoundsUnderWay))

const prefix = "rounds."

/** Stores that rounds are being begun. */
export const storeUnderWay = Effect.fnUntraced(function* (
  instance: string,
  rounds: Omit<RoundsUnderWay, "v" | "at">
) {
  const { names } = yield* Broker
  const at = yield* Clock.currentTimeMillis
  const record = encode({ v: 1, ...rounds, at })
  yield* writeValue(names.buckets.workers, `${prefix}${instance}`, record)
})

/** Removes the record of rounds of which none is left in the middle. */
export const eraseUnderWay = Effect.fnUntraced(function* (instance: string, revision?: number) {
  const { names } = yield* Broker
  yield* eraseValue(names.buckets.workers, `${prefix}${instance}`, revision).pipe(
    // Its process has written it again.
    Effect.catchIf(isConflict, () => Effect.void)
  )
})

/** Rounds whose process has died, or is taken for dead. */
export interface AbandonedRounds {
  readonly instance: string
  readonly revision: number
  readonly rounds: RoundsUnderWay
}

/** Reads the rounds that processes have left in the middle. */
export const readAbandoned = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const bucket = names.buckets.workers
  const { state } = yield* streamInfo("look for rounds under way", `KV_${bucket}`, {
    subjects_filter: `$KV.${bucket}.${prefix}*`
  })
  const none: ReadonlyArray<AbandonedRounds> = []
  // Usually there are none: no consumer is made for them.
  if (Object.keys(state.subjects ?? {}).length === 0) return none
  const stored = yield* Stream.runCollect(readValues(bucket, `${prefix}*`))
  const found = stored.flatMap(({ key, revision, text }): ReadonlyArray<AbandonedRounds> => {
    const rounds = Option.getOrUndefined(decode(text))
    return rounds === undefined ? [] : [{ instance: key.slice(prefix.length), revision, rounds }]
  })
  return yield* Effect.filter(found, ({ instance }) =>
    Effect.map(isEnqueuing(instance), (lives) => !lives)
  )
})
