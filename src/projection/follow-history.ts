import { Clock, Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { BrokerError } from "../broker/broker-error.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { millisOf } from "../broker/stream-message.ts"
import { hasOtherEnd, isOtherHistory } from "../history/reading-position.ts"
import { timers } from "../time/timers.ts"
import type { ProjectionStatus } from "./delivery-log.ts"
import { BrokenFiles, isUseless, OtherHistory, problemOf } from "./file-problems.ts"
import { ProjectionStore, type StoreOptions } from "./projection-store.ts"
import { removeFiles } from "./segment.ts"

/** Facts of a batch at most, and how long one takes at most, ms. */
const factsPerBatch = 10_000
const batchMs = 500
/** Facts that are read without looking whether something has gone wrong meanwhile. */
const factsPerReading = 200_000
/** Pause before it is looked for new facts, ms. */
const pauseMs = 200
/** Pause after a problem, ms. */
const problemPauseMs = 2_000
/** How often old rows are looked for, ms. */
const retainEveryMs = 10_000

/** What the writer tells of itself. Times in ms since the epoch. */
export interface WriterReport extends Omit<ProjectionStatus, "data" | "lag" | "problem" | "state"> {
  readonly state: ProjectionStatus["state"]
  readonly problem: string | null
  /** The last fact of the history, when it was last looked at. */
  readonly last: number
  /** When the fact at `position` was stored; 0 if there was none. */
  readonly storedAt: number
}

export interface Follower {
  /** Takes what is said of the writer's state. */
  readonly report: (report: WriterReport) => void
  /** Logs a sentence for the operator. */
  readonly warn: (sentence: string) => void
  /** Returns once what was asked for: to read the history again, or to make damaged files again. */
  readonly wanted: () => "rebuild" | "remake" | undefined
}

const noReport: WriterReport = {
  state: "rebuilding",
  problem: null,
  position: 0,
  rows: 0,
  waiting: 0,
  repeatedAttempts: 0,
  bytes: 0,
  oldest: null,
  last: 0,
  storedAt: 0
}

/**
 * Keeps the files in step with the history, without end. After a problem with a file it says so and
 * tries again; what cannot be read is made again from the history.
 */
export const followHistory = (options: StoreOptions, follower: Follower) => {
  let report = noReport
  const tell = (change: Partial<WriterReport>) => {
    if (report.problem !== null && change.problem === null)
      follower.warn("the delivery log goes on")
    report = { ...report, ...change }
    follower.report(report)
  }
  const stopped = (sentence: string) => {
    if (report.problem !== sentence) follower.warn(sentence)
    tell({ state: "stopped", problem: sentence })
  }
  const once = Effect.gen(function* () {
    const store = yield* Effect.acquireRelease(
      Effect.try({ try: () => new ProjectionStore(options), catch: (error) => error }),
      (opened) => Effect.sync(() => opened.close())
    )
    yield* resume(store, follower)
    return yield* follow(store, follower, tell)
  }).pipe(Effect.scoped)
  return Effect.forever(
    Effect.catch(once, (error) =>
      Effect.suspend(() => {
        stopped(
          error instanceof BrokerError
            ? `the history cannot be read now (${error.message}): the delivery log goes on when it can`
            : problemOf(error, options.directory)
        )
        if (!isUseless(error)) return Effect.sleep(problemPauseMs)
        follower.warn(
          `the delivery log in ${options.directory} is made again from the history; what is older than the history is lost`
        )
        return Effect.sync(() => removeFiles(options.directory))
      })
    )
  )
}

/** Looks whether the files are of this history, and where to go on; else reads it anew. */
const resume = Effect.fnUntraced(function* (store: ProjectionStore, { warn }: Follower) {
  if (!(yield* isOtherHistory(store.position))) return
  const { ended } = store.rows
  warn(`all ${ended} rows of the delivery log are of another history`)
  return yield* Effect.fail(new OtherHistory(store.directory))
})

const announceGap = (store: ProjectionStore, first: number, { warn }: Follower) => {
  const next = store.position.seq + 1
  if (store.position.seq === 0 || first <= next) return
  warn(
    `the history has removed facts ${next} to ${first - 1} before the delivery log read them: what they told is missing in it, and deliveries that had not ended by then are no longer shown`
  )
  store.forgetWaiting()
}

const follow = Effect.fnUntraced(function* (
  store: ProjectionStore,
  follower: Follower,
  tell: (change: Partial<WriterReport>) => void
) {
  const { names, streamInfo } = yield* Broker
  const { history } = names
  let retained = Number.NEGATIVE_INFINITY
  const describe = (last: number, state: WriterReport["state"]) => {
    const { ended, waiting } = store.rows
    const { nanoseconds, seq } = store.position
    tell({
      state,
      problem: null,
      position: seq,
      last,
      storedAt: nanoseconds === "" ? 0 : millisOf(nanoseconds),
      rows: ended,
      waiting,
      repeatedAttempts: store.repeatedAttempts,
      bytes: store.bytes,
      oldest: store.oldest
    })
  }
  while (true) {
    const { state } = yield* streamInfo("look at the history", history)
    const { first_seq: first, last_seq: last } = state
    const wanted = follower.wanted()
    if (wanted === "remake") return yield* Effect.fail(new BrokenFiles(store.directory))
    if (wanted === "rebuild") {
      const kept = store.rowsBefore(first)
      follower.warn(
        `the delivery log is made again from fact ${first} on; ${kept} rows of older facts are kept`
      )
      store.rewind(first)
    }
    if (hasOtherEnd(store.position, state)) yield* resume(store, follower)
    announceGap(store, first, follower)
    const from = Math.max(first, store.position.seq + 1)
    if (from <= last) {
      const to = Math.min(last, from + factsPerReading - 1)
      const isFar = last - from > factsPerBatch
      yield* takeRange(store, from, to, () => describe(last, isFar ? "rebuilding" : "following"))
    } else yield* Effect.sleep(pauseMs)
    const now = yield* Clock.currentTimeMillis
    if (timers.monotonicMs() - retained > retainEveryMs) {
      yield* attempt(() => store.retain(now))
      retained = timers.monotonicMs()
    }
    describe(last, last - store.position.seq > factsPerBatch ? "rebuilding" : "following")
  }
})

const attempt = <A>(run: () => A): Effect.Effect<A, unknown> =>
  Effect.try({ try: run, catch: (error) => error })

/** Stores a range of facts, in batches. */
const takeRange = Effect.fnUntraced(function* (
  store: ProjectionStore,
  from: number,
  to: number,
  committed: () => void
) {
  const { names } = yield* Broker
  let failure: { readonly error: unknown } | undefined
  let facts = 0
  let began = timers.monotonicMs()
  const after = store.position.seq === from - 1 ? store.position : undefined
  const commit = () => {
    store.commit()
    committed()
    facts = 0
    began = timers.monotonicMs()
  }
  yield* readThrough(
    { stream: names.history, subjects: [names.subjects.allFacts], from, to, after },
    ({ message, nanoseconds, seq }) => {
      if (failure !== undefined) return
      try {
        store.take(message.string(), seq, nanoseconds)
        facts++
        const isDue = facts % 256 === 0 && timers.monotonicMs() - began > batchMs
        if (facts >= factsPerBatch || isDue) commit()
      } catch (error) {
        failure = { error }
      }
    }
  )
  if (failure !== undefined) return yield* Effect.fail(failure.error)
  yield* attempt(() => {
    // The end of the range may have been removed from the stream.
    store.skipTo(to)
    commit()
  })
})
