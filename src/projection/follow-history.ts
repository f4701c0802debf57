import { Clock, Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { BrokerError } from "../broker/broker-error.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { readInstallation } from "../broker/installation.ts"
import { millisOf } from "../broker/stream-message.ts"
import { compareHistory, hasOtherEnd } from "../history/reading-position.ts"
import { timers } from "../time/timers.ts"
import type { ProjectionStatus } from "./delivery-log.ts"
import { DirectoryLock } from "./directory-lock.ts"
import {
  BrokenFiles,
  isUseless,
  OtherHistory,
  OtherInstallation,
  problemOf,
  RemovedFiles
} from "./file-problems.ts"
import { collectGarbage } from "./lasting-thread.ts"
import { ProjectionStore, type StoreOptions } from "./projection-store.ts"
import { removeFiles } from "./segment.ts"

/** Facts of a batch at most, and how long one takes at most, ms. */
const factsPerBatch = 10_000
const batchMs = 500
/** Facts that are read without looking whether something has gone wrong meanwhile. */
const factsPerReading = 200_000
/** After so many facts without a rest the memory that they needed is given back. */
const manyFacts = 100_000
/**
 * Pause before it is looked for new facts, ms, also while some come all the time: each look costs the
 * broker and this thread the same for one fact as for a thousand.
 */
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
  /** When that was. */
  readonly lookedAt: number
  /** When the newest fact that was seen was stored; if none was, when the writer began. */
  readonly storedAt: number
}

export interface FollowOptions extends StoreOptions {
  /** Replaces files of another installation, instead of leaving them as they are. */
  readonly replacesOther: boolean
}

interface Follower {
  /** Takes what is said of the writer's state. */
  readonly report: (report: WriterReport) => void
  /** Logs a sentence for the operator. */
  readonly warn: (sentence: string) => void
  /** Returns once what was asked for: to read the history again, or to make damaged files again. */
  readonly wanted: () => "rebuild" | "remake" | undefined
}

/** What is told of files that have nothing. */
export const emptyFiles = {
  position: 0,
  rows: 0,
  waiting: 0,
  repeatedAttempts: 0,
  bytes: 0,
  sums: { rows: 0, maxRows: 0, together: 0 },
  oldest: null
} satisfies Partial<WriterReport>

const noReport: WriterReport = {
  state: "rebuilding",
  problem: null,
  ...emptyFiles,
  last: 0,
  lookedAt: 0,
  storedAt: 0
}

/**
 * Keeps the files in step with the history, without end. After a problem with a file it says so and
 * tries again; what cannot be read is made again from the history.
 */
export const followHistory = Effect.fnUntraced(function* (
  options: FollowOptions,
  follower: Follower
) {
  const { directory } = options
  let report: WriterReport = { ...noReport, storedAt: yield* Clock.currentTimeMillis }
  const tell = (change: Partial<WriterReport>) => {
    if (report.problem !== null && change.problem === null)
      follower.warn("the delivery log continues")
    report = { ...report, ...change }
    follower.report(report)
  }
  const stopped = (sentence: string, change: Partial<WriterReport> = {}) => {
    if (report.problem !== sentence) follower.warn(sentence)
    tell({ ...change, state: "stopped", problem: sentence })
  }
  const opened = Effect.gen(function* () {
    const store = yield* open(() => new ProjectionStore(options))
    const check = checkOrigin(store, options, follower)
    const following = Effect.andThen(check, follow(store, check, follower, tell))
    return yield* Effect.mapError(following, (error) =>
      error instanceof BrokerError || store.isInPlace ? error : new RemovedFiles(directory)
    )
  }).pipe(Effect.scoped)
  const madeAgain = Effect.catch(opened, (error) =>
    Effect.suspend(() => {
      if (!isUseless(error)) return Effect.fail(error)
      stopped(problemOf(error, directory), emptyFiles)
      follower.warn(
        `the delivery log in ${directory} is made again from the history; what is older than the history is lost`
      )
      return attempt(() => removeFiles(directory))
    })
  )
  const locked = Effect.andThen(
    open(() => new DirectoryLock(directory)),
    madeAgain
  ).pipe(Effect.scoped)
  return yield* Effect.forever(
    Effect.catch(locked, (error) => {
      if (error instanceof BrokerError) {
        stopped(
          `the history cannot be read now (${error.message}): the delivery log continues when it can`
        )
        return Effect.sleep(problemPauseMs)
      }
      stopped(problemOf(error, directory))
      const looked = Effect.map(lookAtEnd, ({ last, lookedAt }) => tell({ last, lookedAt }))
      return Effect.andThen(Effect.ignore(looked), Effect.sleep(problemPauseMs))
    })
  )
})

/** Opens what has to be closed with the scope. */
const open = <A extends { readonly close: () => void }>(make: () => A) =>
  Effect.acquireRelease(attempt(make), (opened) => Effect.sync(() => opened.close()))

const attempt = <A>(run: () => A): Effect.Effect<A, unknown> =>
  Effect.try({ try: run, catch: (error) => error })

/** Asks for the ends of the history. */
const lookAtEnd = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  const { first_seq: first, last_seq: last } = state
  return { state, first, last, lookedAt: yield* Clock.currentTimeMillis }
})
type End = Effect.Success<typeof lookAtEnd>

/**
 * Fails with OtherHistory if the files are of another history of this installation, and with
 * OtherInstallation if they may be of another installation, unless those are to be replaced.
 */
const checkOrigin = Effect.fnUntraced(function* (
  store: ProjectionStore,
  { replacesOther }: FollowOptions,
  { warn }: Follower
) {
  const { installation, position, rows } = store
  const current = yield* readInstallation
  const history = position.seq === 0 ? "same" : yield* compareHistory(position)
  const isKnown = installation !== undefined && current !== undefined
  if (history === "same" || (history === "unknown" && (!isKnown || installation === current))) {
    if (current !== undefined) yield* attempt(() => store.noteInstallation(current))
    return
  }
  const isOwn = isKnown && installation === current
  const all = rows.ended + rows.waiting
  if (!isOwn && !replacesOther)
    return yield* Effect.fail(new OtherInstallation(store.directory, all))
  warn(`all ${all} rows of the delivery log are of another ${isOwn ? "history" : "installation"}`)
  return yield* Effect.fail(new OtherHistory(store.directory))
})

/** Passes the facts that the history has removed before they were read, if there are any. */
const passRemoved = (store: ProjectionStore, { first }: End, { warn }: Follower) => {
  const { seq } = store.position
  if (first <= seq + 1) return
  if (seq > 0) {
    warn(
      `the history has removed facts ${seq + 1} to ${first - 1} before the delivery log read them: what they told is missing in it, and deliveries that had not ended by then are no longer shown`
    )
    store.forgetWaiting()
  }
  store.skipTo(first - 1)
  store.commit()
}

const follow = Effect.fnUntraced(function* (
  store: ProjectionStore,
  check: Effect.Effect<void, unknown, Broker>,
  follower: Follower,
  tell: (change: Partial<WriterReport>) => void
) {
  let retained = Number.NEGATIVE_INFINITY
  /** Facts that were read since it was level. */
  let sinceRest = 0
  const describe = ({ last, lookedAt }: End, state: WriterReport["state"]) => {
    if (!store.isInPlace) throw new RemovedFiles(store.directory)
    const { bytes, oldest, position, repeatedAttempts, rows, sums } = store
    const { nanoseconds, seq } = position
    tell({
      ...{ state, problem: null, position: seq, last, lookedAt },
      ...{ bytes, oldest, repeatedAttempts, sums },
      ...{ rows: rows.ended, waiting: rows.waiting },
      ...(nanoseconds === "" ? {} : { storedAt: millisOf(nanoseconds) })
    })
  }
  while (true) {
    const end = yield* lookAtEnd
    const { first, last } = end
    const wanted = follower.wanted()
    if (wanted === "remake") return yield* Effect.fail(new BrokenFiles(store.directory))
    if (wanted === "rebuild") yield* attempt(() => rebuildFrom(store, end, follower))
    if (hasOtherEnd(store.position, end.state)) yield* check
    yield* attempt(() => passRemoved(store, end, follower))
    const from = Math.max(first, store.position.seq + 1)
    const isFar = last - from > factsPerBatch
    if (from <= last) {
      const to = Math.min(last, from + factsPerReading - 1)
      yield* takeRange(store, from, to, () => describe(end, isFar ? "rebuilding" : "following"))
      sinceRest += to - from + 1
    } else {
      if (sinceRest > manyFacts) {
        yield* attempt(() => store.releaseMemory())
        collectGarbage()
      }
      sinceRest = 0
    }
    const now = yield* Clock.currentTimeMillis
    yield* attempt(() => {
      if (timers.monotonicMs() - retained > retainEveryMs) {
        store.retain(now)
        retained = timers.monotonicMs()
      }
      describe(end, last - store.position.seq > factsPerBatch ? "rebuilding" : "following")
    })
    if (!isFar) yield* Effect.sleep(pauseMs)
  }
})

const rebuildFrom = (store: ProjectionStore, { first, state }: End, { warn }: Follower) => {
  const kept = store.rowsBefore(first)
  warn(`the delivery log is made again from fact ${first} on; ${kept} rows of older facts are kept`)
  store.rewind(first, state.messages === 0 ? Number.POSITIVE_INFINITY : Date.parse(state.first_ts))
}

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
