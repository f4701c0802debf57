import type { StoredMsg } from "@nats-io/jetstream"
import type { KvWatchEntry } from "@nats-io/kv"
import { Deferred, Effect, Result, Schedule } from "effect"
import { Broker, BrokerError } from "../../broker/connection.ts"
import type { DirectoryTable } from "./directory-table.ts"
import { decodeEndpoint } from "./endpoint-store.ts"
import type { Shown } from "./watch-lag.ts"
import { maxSilenceMs, WatchLag, weigh } from "./watch-lag.ts"

/** How often the leader is asked what it has, ms. */
const checkEveryMs = 2_000
/** How often the watch is judged by what the leader said last, ms. */
const judgeEveryMs = 250
/** Keys that the leader is asked for at the same time. */
const keysAtOnce = 16

/** Whether the endpoints in memory may be planned by. */
export interface Currentness {
  /** True while they are less than 10 s behind the bucket. */
  readonly isCurrent: () => boolean
  /** Waits until they are; at once while they are. */
  readonly current: Effect.Effect<void>
}

/**
 * Watches the bucket for as long as the scope lives: the broker sends each change once, and nothing
 * is read for it. After a reconnect everything is read again: a watch can miss what happened
 * meanwhile. Returns when the first reading is complete.
 *
 * A reading is complete when it has reached what the leader had after the watch was begun. The table
 * is not current from a reconnect until then, nor while the watch is behind the leader or the leader
 * does not answer (`WatchLag`).
 *
 * @param unavailable told of the keys of endpoints that are disabled, removed or replaced.
 */
export const keepReading = Effect.fnUntraced(function* (
  table: DirectoryTable,
  unavailable: (key: string) => void
) {
  const { ask, bucket, jsm, names, onReconnect } = yield* Broker
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const complete = yield* Deferred.make<void>()
  const name = names.buckets.endpoints
  const stream = `KV_${name}`
  const prefix = `$KV.${name}.`

  let isCurrent = false
  let opening = Deferred.makeUnsafe<void>()
  const close = () => {
    if (isCurrent) opening = Deferred.makeUnsafe()
    isCurrent = false
  }
  /** Another one after each reconnect: what was asked before proves nothing any more. */
  let connection = 0
  let again = Deferred.makeUnsafe<void>()
  const forget = onReconnect(() => {
    connection++
    close()
    Deferred.doneUnsafe(again, Effect.void)
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))

  const take = (key: string, { revision, text }: Shown): void => {
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
      const kv = yield* bucket(name)
      const watch = yield* Effect.acquireRelease(
        ask(`watch ${name}`, () => kv.watch()),
        (iterator) => Effect.sync(() => iterator.stop())
      )
      const lag = new WatchLag(performance.now())
      /** Keys that the watch has shown, as long as the reading is not complete. */
      let seen: Set<string> | undefined = new Set<string>()
      /** Keys of which only the leader can say what counts, and since which of all doubts. */
      const doubtful = new Map<string, number>()
      let doubts = 0
      let moved = () => {}

      const apply = (entry: KvWatchEntry): void => {
        const { key, revision } = entry
        const shown = { revision, text: entry.operation === "PUT" ? entry.string() : undefined }
        const weighed = weigh(table.shown(key), shown)
        if (weighed === "ask-leader") doubtful.set(key, doubts++)
        else doubtful.delete(key)
        if (weighed === "take") take(key, shown)
        seen?.add(key)
        if (lag.shown(revision, performance.now())) moved()
      }
      // No fiber steps for each entry: of 100,000 they would take longer than all the rest.
      const follow = ask(`watch ${name}`, async () => {
        for await (const entry of watch) apply(entry)
      })

      /** @param lastSeq of the stream, as the leader knew it before it is asked for the key. */
      const askLeader = (key: string, since: number, lastSeq: number) =>
        Effect.map(
          ask(`read ${key}`, () =>
            jsm.streams.getMessage(stream, { last_by_subj: `${prefix}${key}` })
          ),
          (message) => {
            // Else the watch has meanwhile shown something that the leader may not have had yet.
            if (doubtful.get(key) !== since) return
            doubtful.delete(key)
            const said =
              message === null ? { revision: lastSeq, text: undefined } : storedUnder(message)
            const known = table.shown(key)
            const isAbsent = said.text === undefined && known.text === undefined
            if (isAbsent && !table.isUnreadable(key)) return
            if (weigh(known, said) !== "same") take(key, said)
          }
        )

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
        const question = lag.asked(performance.now())
        const { state } = yield* ask(`look at ${name}`, () => jsm.streams.info(stream))
        const lastSeq = state.last_seq
        const query = { seq: lag.reached + 1, next_by_subj: `${prefix}>` }
        const next =
          lag.reached >= lastSeq
            ? null
            : yield* ask(`look at ${name}`, () => jsm.streams.getMessage(stream, query))
        yield* settleDoubts(lastSeq)
        lag.answered(question, { lastSeq, hasMore: next !== null && next.seq <= lastSeq })
        return lastSeq
      })

      const readAll = Effect.gen(function* () {
        let lastSeq = yield* check
        while (!lag.isCaughtUp(performance.now())) {
          yield* failIfStuck(lag)
          yield* Effect.callback<void>((resume) => {
            moved = () => resume(Effect.void)
          }).pipe(Effect.raceFirst(Effect.sleep(judgeEveryMs)))
          if (!lag.isCaughtUp(performance.now())) lastSeq = yield* check
        }
        // Absence is believed from the leader only: a copy may not have had them yet.
        for (const key of table.absent(seen ?? new Set())) doubtful.set(key, doubts++)
        seen = undefined
        yield* settleDoubts(lastSeq)
      })

      const open = () => {
        if (connection !== begunIn) return
        isCurrent = true
        Deferred.doneUnsafe(opening, Effect.void)
        Deferred.doneUnsafe(complete, Effect.void)
      }

      /**
       * None waits for the one before: to a slow broker they are under way at the same time. One that
       * has no answer yet is judged by the time that has passed since the last that has.
       */
      const checks = check.pipe(
        Effect.timeoutOption(maxSilenceMs),
        Effect.ignore,
        Effect.forkChild,
        Effect.repeat(Schedule.fixed(checkEveryMs))
      )
      const judge = Effect.suspend(() => {
        const now = performance.now()
        if (lag.at(now) !== "current") close()
        else if (!isCurrent && lag.isCaughtUp(now)) open()
        return failIfStuck(lag)
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
    isCurrent: () => isCurrent,
    current: Effect.suspend(() => (isCurrent ? Effect.void : Deferred.await(opening)))
  } satisfies Currentness
})

/** Headers that only the mark of a removal has. */
const marks = ["KV-Operation", "Nats-Marker-Reason"]

/** What the bucket's stream holds under a key: nothing, where it is the mark of a removal. */
const storedUnder = (message: StoredMsg): Shown => ({
  revision: message.seq,
  text: marks.some((name) => message.header.has(name)) ? undefined : message.string()
})

/** A watch that will not catch up by itself: another one may be served by another copy. */
const failIfStuck = (lag: WatchLag): Effect.Effect<void, BrokerError> => {
  const standing = lag.at(performance.now())
  const why =
    standing === "stuck"
      ? "the watch does not show what the leader has: all is read again"
      : standing === "truncated"
        ? "the bucket has lost what was stored in it last: all is read again"
        : undefined
  return why === undefined
    ? Effect.void
    : Effect.fail(new BrokerError({ operation: "watch the endpoints", cause: new Error(why) }))
}
