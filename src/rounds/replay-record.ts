import { Clock, Effect, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { isConflict, readEntry, writeValue } from "../broker/values.ts"
import { invalid, notNow } from "../domain/problem.ts"

/**
 * The record of a replay, in the workers bucket under `replay.<tenant>.<endpoint>.<name>`. The same
 * request continues with the same events: `1 hour` ago keeps its first meaning. The record expires
 * when the history drops the facts of the replay. Times in ms since the epoch.
 */
export const ReplayRecord = Schema.Struct({
  v: Schema.Literal(1),
  /** Identifies its rounds. */
  id: Schema.String,
  /** Digest of what was requested. */
  asked: Schema.String,
  since: Schema.Number,
  until: Schema.Number,
  startedAt: Schema.Number,
  finishedAt: Schema.optionalKey(Schema.Number),
  by: Schema.String
})
export type ReplayRecord = typeof ReplayRecord.Type

/** The request for a replay. */
export interface ReplayWish extends Pick<ReplayRecord, "asked" | "by" | "since" | "until"> {
  readonly tenant: string
  readonly endpoint: string
  /** The key under which the replay is found again. */
  readonly name: string
  /** Whether another replay may follow under the same name, because it sends nothing twice. */
  readonly mayFollow: boolean
  /**
   * When the job was made that asks for it, ms since the epoch: a replay that has finished since is
   * its own, and the one that took the job over goes on behind its last step.
   */
  readonly askedAt?: number | undefined
}

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(ReplayRecord))

const keyOf = ({ endpoint, name, tenant }: Pick<ReplayWish, "tenant" | "endpoint" | "name">) =>
  `replay.${tenant}.${endpoint}.${name}`

const read = Effect.fnUntraced(function* (key: string) {
  const { names } = yield* Broker
  const { revision, text } = yield* readEntry(names.buckets.workers, key)
  return { revision, record: text === undefined ? undefined : yield* decode(text) }
})

const write = Effect.fnUntraced(function* (key: string, record: ReplayRecord, expected: number) {
  const { names, streamInfo } = yield* Broker
  const { config } = yield* streamInfo("look at the history", names.history)
  const ttl = config.max_age / 1e6
  const ack = yield* writeValue(names.buckets.workers, key, JSON.stringify(record), {
    expected,
    // 0: the history keeps its facts forever.
    ...(ttl === 0 ? {} : { ttl })
  })
  return ack.seq
})

/** Returns the replay to continue, or a new one that is not stored yet. */
export const findReplay = Effect.fnUntraced(function* (wish: ReplayWish) {
  const { asked, askedAt = Number.POSITIVE_INFINITY, by, endpoint, name, since } = wish
  const { tenant, until } = wish
  const startedAt = yield* Clock.currentTimeMillis
  const { record, revision } = yield* read(keyOf(wish))
  const again = record?.finishedAt !== undefined
  const made: ReplayRecord = {
    v: 1,
    id: again ? `${name}-${startedAt.toString(36)}` : name,
    asked,
    by,
    since,
    until,
    startedAt
  }
  if (record === undefined) return { record: made, revision, isNew: true }
  if (record.asked !== asked)
    return yield* invalid(
      "",
      `the replay ${name} to ${tenant}/${endpoint} is of other events: give the arguments that it had, or another \`id\``
    )
  if (record.finishedAt === undefined || record.finishedAt >= askedAt)
    return { record, revision, isNew: false }
  if (wish.mayFollow) return { record: made, revision, isNew: true }
  return yield* notNow(
    `this was replayed already: replay ${name} to ${tenant}/${endpoint} finished at ${new Date(record.finishedAt).toISOString()}; to send it all once more give it a name with \`id\``
  )
})

/**
 * Stores a replay before its next round begins. Storing a known one again extends its lifetime to
 * that of the facts to come. If another process has just stored it, that record counts.
 */
export const beginReplay = Effect.fnUntraced(function* (
  wish: ReplayWish,
  found: Effect.Success<ReturnType<typeof findReplay>>
) {
  const stored = yield* write(keyOf(wish), found.record, found.revision).pipe(
    Effect.catchIf(isConflict, () => Effect.succeed(undefined))
  )
  return stored === undefined
    ? yield* findReplay(wish)
    : { record: found.record, revision: stored, isNew: false }
})

/** Records that a replay is complete, unless another process has continued it meanwhile. */
export const finishReplay = Effect.fnUntraced(function* (wish: ReplayWish, { id }: ReplayRecord) {
  const finishedAt = yield* Clock.currentTimeMillis
  const { record, revision } = yield* read(keyOf(wish))
  if (record === undefined || record.id !== id || record.finishedAt !== undefined) return
  yield* write(keyOf(wish), { ...record, finishedAt }, revision).pipe(
    Effect.catchIf(isConflict, () => Effect.succeed(revision))
  )
})
