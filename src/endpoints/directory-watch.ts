import type { KvWatchEntry } from "@nats-io/kv"
import { Deferred, Effect, Result, Schedule } from "effect"
import { Broker, BrokerError } from "../broker/connection.ts"
import { nothingTold } from "../history/configuration.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { makeChangeTeller } from "./change-teller.ts"
import type { DirectoryTable } from "./directory-table.ts"
import type { Stored } from "./endpoint-changes.ts"
import { storedUnder } from "./endpoint-changes.ts"
import { decodeEndpoint } from "./endpoint-value.ts"
import type { Shown } from "./watch-lag.ts"
import { maxSilenceMs, WatchLag, weigh } from "./watch-lag.ts"

/** Interval at which the leader is asked for its last sequence, ms. */
const checkEveryMs = 2_000
/** Pause between judgements of the watch by the leader's last answer, ms. */
const judgeEveryMs = 250
/** A judgement expires after this time, ms: the machine may have been suspended since. */
const judgedForMs = 2_000
/** Concurrent reads of keys from the leader. */
const keysAtOnce = 16
/** Maximum number of watch entries that wait for the history, or for entries before them. */
const maxUntoldEntries = 1_000

/** Whether plans may be based on the endpoints in memory. */
export interface Currentness {
  /** True while the endpoints are less than 10 s behind the bucket. */
  readonly isCurrent: () => boolean
  /** Waits until the endpoints are current; returns at once if they are. */
  readonly current: Effect.Effect<void>
  /**
   * While the endpoints are current: the revision of the bucket up to which all changes are in
   * memory. No later change is.
   */
  readonly revision: () => number
}

/**
 * Watches the bucket until the scope closes: the broker sends each change once, and nothing is read
 * to get it. After a reconnect everything is read again, because a watch can miss changes. Returns
 * when the first reading is complete.
 *
 * A reading is complete when it has reached the state that the leader had after the watch was
 * started. The table is not current from a reconnect until then, nor while the watch is behind the
 * leader or the leader does not answer (`WatchLag`).
 *
 * No change is applied before the history has it: readers of the history can then tell what a plan
 * was made from.
 *
 * @param unavailable called with the keys of endpoints that are disabled, removed or replaced.
 */
export const keepReading = Effect.fnUntraced(function* (
  table: DirectoryTable,
  unavailable: (key: string) => void
) {
  const { ask, bucket, jsm, names, onReconnect } = yield* Broker
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const runPromise = Effect.runPromiseWith(yield* Effect.context<never>())
  const teller = yield* makeChangeTeller
  const complete = yield* Deferred.make<void>()
  const name = names.buckets.endpoints
  const stream = `KV_${name}`
  const prefix = `$KV.${name}.`

  let isCurrent = false
  let judgedAt = 0
  /** Revision up to which the watch is complete. */
  let reached = () => 0
  /** The highest revision applied in this reading. */
  let highest = 0
  let opening = Deferred.makeUnsafe<void>()
  const close = () => {
    if (isCurrent) opening = Deferred.makeUnsafe()
    isCurrent = false
  }
  /** Changes at each reconnect: earlier answers prove nothing any more. */
  let connection = 0
  let again = Deferred.makeUnsafe<void>()
  const forget = onReconnect(() => {
    connection++
    close()
    Deferred.doneUnsafe(again, Effect.void)
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))

  const take = (key: string, { revision, text }: Shown): void => {
    highest = Math.max(highest, revision)
    if (text === undefined) {
      table.remove(key, revision)
      unavailable(key)
      return
    }
    const decoded = decodeEndpoint(key, text)
    if (Result.isFailure(decoded)) {
      run(Effect.logError(decoded.failure.message))
      table.cannotRead(key)
      return
    }
    const config = decoded.success
    const before = table.generationOf(key)
    table.put(key, config, text, revision)
    const isReplaced = before !== undefined && before !== config.generation
    if (isReplaced || config.disabled !== undefined) unavailable(key)
  }

  const readOnce = Effect.scoped(
    Effect.gen(function* () {
      close()
      again = Deferred.makeUnsafe()
      const begunIn = connection
      // Read for each reading: a truncated history has lost changes too.
      let told = yield* teller.known
      const kv = yield* bucket(name)
      const watch = yield* Effect.acquireRelease(
        ask(`watch ${name}`, () => kv.watch()),
        (iterator) => Effect.sync(() => iterator.stop())
      )
      const lag = new WatchLag(elapsedMs())
      highest = 0
      reached = () => lag.reached
      /** Keys that the watch has shown; undefined once the reading is complete. */
      let seen: Set<string> | undefined = new Set<string>()
      /**
       * Keys whose state only the leader can tell. The number tells a newer doubt from the one that
       * is being settled.
       */
      const doubtful = new Map<string, number>()
      let doubts = 0
      let moved = () => {}

      /**
       * True if the entry needs no append to the history now. A key that is read from the leader is
       * appended then.
       */
      const isTold = (key: string, stored: Stored): boolean => {
        const weighed = weigh(table.shown(key), stored)
        if (seen === undefined || weighed === "ask-leader") return weighed !== "take"
        return told.has(key, stored.revision, stored.at)
      }

      const apply = (key: string, stored: Stored, mayBeTaken: boolean): void => {
        const weighed = weigh(table.shown(key), stored)
        // The entry was not newer when it arrived but is now, and the history does not have it.
        const isUntold = weighed === "take" && !mayBeTaken
        if (isUntold) close()
        if (isUntold || weighed === "ask-leader") doubtful.set(key, doubts++)
        else doubtful.delete(key)
        if (weighed === "take" && mayBeTaken) take(key, stored)
        seen?.add(key)
        if (lag.shown(stored.revision, elapsedMs())) moved()
      }
      /** Number of entries that are not applied yet. */
      let untold = 0
      let lastApplied = Promise.resolve()
      const aborting = yield* Effect.acquireRelease(
        Effect.sync(() => new AbortController()),
        (aborting) => Effect.sync(() => aborting.abort())
      )
      // Entries take no fiber steps: for 100,000 of them these would take longer than all the rest.
      const follow = ask(`watch ${name}`, async () => {
        for await (const entry of watch) {
          const { key } = entry
          const stored = storedIn(entry)
          const wasTaken = weigh(table.shown(key), stored) === "take"
          const telling = isTold(key, stored)
            ? undefined
            : runPromise(teller.tell(key, stored), { signal: aborting.signal })
          if (telling === undefined && untold === 0) {
            apply(key, stored, wasTaken)
            continue
          }
          untold++
          lastApplied = Promise.all([lastApplied, telling]).then(() => {
            untold--
            apply(key, stored, wasTaken)
          })
          // It fails only when this reading ends.
          lastApplied.catch(() => undefined)
          if (untold >= maxUntoldEntries) await lastApplied
        }
      })

      /**
       * @param lastSeq last sequence of the stream, as the leader reported it before the key is
       * read.
       */
      const askLeader = Effect.fnUntraced(function* (key: string, since: number, lastSeq: number) {
        const message = yield* ask(`read ${key}`, () =>
          jsm.streams.getMessage(stream, { last_by_subj: `${prefix}${key}` })
        )
        const said: Stored =
          message === null ? { revision: lastSeq, at: 0, text: undefined } : storedUnder(message)
        const before = table.shown(key)
        const isAbsent = said.text === undefined && before.text === undefined
        const isKnown =
          message === null
            ? before.text === undefined && !told.isPresent(key)
            : told.has(key, said.revision, said.at)
        const isSame = (isAbsent && !table.isUnreadable(key)) || weigh(before, said) === "same"
        if (!isKnown) yield* teller.tell(key, said)
        // If the doubt is newer, the watch has since shown an entry that the leader may not have
        // had yet.
        if (doubtful.get(key) !== since) return
        doubtful.delete(key)
        if (isSame) return
        take(key, said)
        if (highest > lag.reached) close()
      })

      const settleDoubts = (lastSeq: number) =>
        Effect.whileLoop({
          while: () => doubtful.size > 0,
          body: () =>
            Effect.forEach([...doubtful], ([key, since]) => askLeader(key, since, lastSeq), {
              concurrency: keysAtOnce,
              discard: true
            }),
          step: () => undefined
        })

      /** Asks the leader what the watch should have shown. */
      const check = Effect.gen(function* () {
        const question = lag.asked(elapsedMs())
        const { state } = yield* ask(`look at ${name}`, () => jsm.streams.info(stream))
        const lastSeq = state.last_seq
        const query = { seq: lag.reached + 1, next_by_subj: `${prefix}>` }
        const next =
          lag.reached >= lastSeq
            ? null
            : yield* ask(`look at ${name}`, () => jsm.streams.getMessage(stream, query))
        yield* settleDoubts(lastSeq)
        // A message up to `lastSeq` may have been replaced by a later one; the watch never shows it
        // then.
        lag.answered(question, { lastSeq, hasMore: next !== null })
        return lastSeq
      })

      const readAll = Effect.gen(function* () {
        let lastSeq = yield* check
        while (!lag.isCaughtUp(elapsedMs())) {
          yield* failIfStuck(lag, untold)
          yield* Effect.callback<void>((resume) => {
            moved = () => resume(Effect.void)
          }).pipe(Effect.raceFirst(Effect.sleep(judgeEveryMs)))
          if (!lag.isCaughtUp(elapsedMs())) lastSeq = yield* check
        }
        // Only the leader proves that a key is absent: a replica may lag.
        const shown = seen ?? new Set()
        for (const key of table.absent(shown)) doubtful.set(key, doubts++)
        for (const key of told.keys()) if (!shown.has(key)) doubtful.set(key, doubts++)
        seen = undefined
        yield* settleDoubts(lastSeq)
        told = nothingTold
      })

      const isComplete = (now: number): boolean =>
        lag.isCaughtUp(now) && doubtful.size === 0 && highest <= lag.reached

      const open = () => {
        if (connection !== begunIn) return
        isCurrent = true
        Deferred.doneUnsafe(opening, Effect.void)
        Deferred.doneUnsafe(complete, Effect.void)
      }

      /**
       * Checks do not wait for each other: with a slow broker several are in flight. While a check
       * is unanswered, the watch is judged by the time since the last answered one.
       */
      const checks = check.pipe(
        Effect.timeoutOption(maxSilenceMs),
        Effect.ignore,
        Effect.forkChild,
        Effect.repeat(Schedule.fixed(checkEveryMs))
      )
      const judge = Effect.suspend(() => {
        const now = elapsedMs()
        judgedAt = now
        if (lag.at(now) !== "current") close()
        else if (!isCurrent && isComplete(now)) open()
        return failIfStuck(lag, untold)
      }).pipe(Effect.andThen(Effect.sleep(judgeEveryMs)), Effect.forever)

      const supervise = Effect.andThen(readAll, Effect.raceFirst(judge, checks))
      yield* Effect.raceAllFirst([follow, supervise, Deferred.await(again)])
    })
  )

  yield* readOnce.pipe(
    Effect.catch((error) =>
      Effect.andThen(
        Effect.logWarning("reading the endpoints failed", { why: error.message }),
        Effect.sleep("1 second")
      )
    ),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Deferred.await(complete)
  return {
    isCurrent: () => isCurrent && elapsedMs() - judgedAt < judgedForMs,
    revision: () => reached(),
    current: Effect.suspend(() => (isCurrent ? Effect.void : Deferred.await(opening)))
  } satisfies Currentness
})

const storedIn = (entry: KvWatchEntry): Stored => ({
  revision: entry.revision,
  at: entry.created.getTime(),
  text: entry.operation === "PUT" ? entry.string() : undefined
})

/**
 * Fails if the watch will not catch up by itself: another watch may be served by another replica.
 *
 * @param untold entries that the watch has shown and that wait for the history.
 */
const failIfStuck = (lag: WatchLag, untold: number): Effect.Effect<void, BrokerError> => {
  const standing = lag.at(elapsedMs())
  const why =
    standing === "stuck" && untold === 0
      ? "the watch does not show what the leader has: all is read again"
      : standing === "truncated"
        ? "the bucket has lost what was stored in it last: all is read again"
        : undefined
  return why === undefined
    ? Effect.void
    : Effect.fail(new BrokerError({ operation: "watch the endpoints", cause: new Error(why) }))
}
