import type { KvWatchEntry } from "@nats-io/kv"
import type { Context } from "effect"
import { Effect, Result, Schedule } from "effect"
import { Broker } from "../broker/broker.ts"
import { ask, BrokerError } from "../broker/broker-error.ts"
import { isSettingsKey } from "../domain/settings/tenant-table.ts"
import type { LastChanges } from "../history/configuration.ts"
import { noKnownChanges } from "../history/configuration.ts"
import { elapsedMs } from "../time/elapsed.ts"
import type { CurrentnessSwitch } from "./currentness.ts"
import type { DirectoryTable } from "./directory-table.ts"
import type { ChangeRecorder, Stored } from "./endpoint-changes.ts"
import { storedUnder } from "./endpoint-changes.ts"
import { untilNoneIsLost } from "./lost-endpoints.ts"
import { decodeEndpoint, decodeSettings } from "./stored-values.ts"
import type { ShownValue } from "./watch-lag.ts"
import { maxSilenceMs, WatchLag, weigh } from "./watch-lag.ts"

/** Interval at which the leader is asked for its last sequence, ms. */
const checkEveryMs = 2_000
/** Pause between judgements of the watch by the leader's last answer, ms. */
const judgeEveryMs = 250
/** Concurrent reads of keys from the leader. */
const keysAtOnce = 16
/** Maximum number of watch entries that wait for the history, or for entries before them. */
const maxWaitingEntries = 1_000

interface DirectoryReadingOptions {
  readonly table: DirectoryTable
  readonly recorder: ChangeRecorder
  readonly currentness: CurrentnessSwitch
  /** Called with the keys of endpoints that are disabled, suspended, removed or replaced. */
  readonly unavailable: (key: string) => void
}

/**
 * Reads the bucket once and follows it until the connection is lost or the watch has to begin anew;
 * fails in the latter case.
 */
export const readDirectory = Effect.fnUntraced(function* (options: DirectoryReadingOptions) {
  const { currentness, recorder } = options
  const broker = yield* Broker
  const services = yield* Effect.context<never>()
  const { interrupted, open } = currentness.begin()
  // Read for each reading: a truncated history has lost changes too.
  const known = yield* recorder.known
  const name = broker.names.buckets.endpoints
  const watch = yield* broker.watch(name)
  const reading = new DirectoryReading(options, broker, services, known, open)
  currentness.reached = () => reading.reached
  const aborting = yield* Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (aborting) => Effect.sync(() => aborting.abort())
  )
  const follow = ask(`watch ${name}`, () => reading.follow(watch, aborting.signal))
  yield* Effect.raceAllFirst([follow, reading.supervise, interrupted])
}, Effect.scoped)

/** One reading of the bucket, from the start of its watch. */
class DirectoryReading {
  readonly #options: DirectoryReadingOptions
  readonly #broker: Broker["Service"]
  readonly #services: Context.Context<never>
  /** Declares the table current, unless the connection was lost since the reading began. */
  readonly #open: () => void
  readonly #bucket: string
  readonly #stream: string
  readonly #prefix: string
  readonly #lag = new WatchLag(elapsedMs())
  /** The changes that the history has; none once the reading is complete. */
  #known: LastChanges
  /** The highest revision applied in this reading. */
  #highest = 0
  /** Keys that the watch has shown; undefined once the reading is complete. */
  #seen: Set<string> | undefined = new Set<string>()
  /**
   * Keys whose state only the leader can tell. The number tells a newer doubt from the one that is
   * being settled.
   */
  readonly #doubtful = new Map<string, number>()
  #doubts = 0
  /** Number of entries that the watch has shown and that wait for the history. */
  #waiting = 0
  /** Called when the watch has caught up. */
  #caughtUp = () => {}

  constructor(
    options: DirectoryReadingOptions,
    broker: Broker["Service"],
    services: Context.Context<never>,
    known: LastChanges,
    open: () => void
  ) {
    this.#options = options
    this.#broker = broker
    this.#services = services
    this.#known = known
    this.#open = open
    this.#bucket = broker.names.buckets.endpoints
    this.#stream = `KV_${this.#bucket}`
    this.#prefix = `$KV.${this.#bucket}.`
  }

  /** The revision up to which the watch is complete. */
  get reached(): number {
    return this.#lag.reached
  }

  /**
   * Applies the entries of the watch in their order, each once the history has it. Entries take no
   * fiber steps: for 100,000 of them these would take longer than all the rest.
   */
  async follow(watch: AsyncIterable<KvWatchEntry>, signal: AbortSignal): Promise<void> {
    const { table, recorder } = this.#options
    const runPromise = Effect.runPromiseWith(this.#services)
    let lastApplied: Promise<unknown> = Promise.resolve()
    for await (const entry of watch) {
      const { key } = entry
      const stored = storedIn(entry)
      const wasNewer = weigh(table.shown(key), stored) === "take"
      const appending = this.#needsNoAppend(key, stored)
        ? undefined
        : runPromise(recorder.record(key, stored), { signal })
      if (appending === undefined && this.#waiting === 0) {
        this.#apply(key, stored, wasNewer)
        continue
      }
      this.#waiting++
      lastApplied = Promise.all([lastApplied, appending]).then(() => {
        this.#waiting--
        this.#apply(key, stored, wasNewer)
      })
      // It fails only when this reading ends.
      lastApplied.catch(() => undefined)
      if (this.#waiting >= maxWaitingEntries) await lastApplied
    }
  }

  /** Completes the reading, then judges the watch by the leader's answers. */
  readonly supervise = Effect.suspend(() =>
    Effect.andThen(this.#readAll, Effect.raceFirst(this.#judge, this.#checks))
  )

  /**
   * True if the entry needs no append to the history now. A key that is read from the leader is
   * appended then.
   */
  #needsNoAppend(key: string, stored: Stored): boolean {
    const weighed = weigh(this.#options.table.shown(key), stored)
    if (this.#seen === undefined || weighed === "ask-leader") return weighed !== "take"
    return this.#known.has(key, stored.revision, stored.at)
  }

  /** @param wasNewer whether the entry was newer than the table's when the watch showed it. */
  #apply(key: string, stored: Stored, wasNewer: boolean): void {
    const { currentness, table } = this.#options
    const weighed = weigh(table.shown(key), stored)
    // The entry was not newer when it arrived but is now, and the history does not have it.
    const isUnrecorded = weighed === "take" && !wasNewer
    if (isUnrecorded) currentness.close()
    if (isUnrecorded || weighed === "ask-leader") this.#doubt(key)
    else this.#doubtful.delete(key)
    if (weighed === "take" && wasNewer) this.#take(key, stored)
    this.#seen?.add(key)
    if (this.#lag.shown(stored.revision, elapsedMs())) this.#caughtUp()
  }

  #doubt(key: string): void {
    this.#doubtful.set(key, this.#doubts++)
  }

  #take(key: string, { revision, text }: ShownValue): void {
    const { table, unavailable } = this.#options
    this.#highest = Math.max(this.#highest, revision)
    if (text === undefined) {
      // A reading shows all removals of any age. What waited for these endpoints has ended, or ends
      // when its partition is taken over.
      const isNews = this.#seen === undefined || table.isPresent(key)
      table.remove(key, revision)
      if (isNews && !isSettingsKey(key)) unavailable(key)
      return
    }
    if (isSettingsKey(key)) {
      this.#takeSettings(key, text, revision)
      return
    }
    const decoded = decodeEndpoint(key, text)
    if (Result.isFailure(decoded)) {
      Effect.runForkWith(this.#services)(Effect.logError(decoded.failure.message))
      table.cannotRead(key)
      return
    }
    const config = decoded.success
    const before = table.outline(key)?.generation
    table.put(key, config, text, revision)
    const isReplaced = before !== undefined && before !== config.generation
    const isGivenUp = config.disabled !== undefined || config.suspended !== undefined
    if (isReplaced || isGivenUp) unavailable(key)
  }

  /** Settings that do not parse leave the former ones in force. */
  #takeSettings(key: string, text: string, revision: number): void {
    const decoded = decodeSettings(key, text)
    if (Result.isSuccess(decoded))
      this.#options.table.putSettings(key, decoded.success, text, revision)
    else Effect.runForkWith(this.#services)(Effect.logError(decoded.failure.message))
  }

  readonly #readAll = Effect.gen({ self: this }, function* () {
    yield* untilNoneIsLost
    let lastSeq = yield* this.#check
    while (!this.#lag.isCaughtUp(elapsedMs())) {
      yield* this.#failIfStuck()
      yield* Effect.callback<void>((resume) => {
        this.#caughtUp = () => resume(Effect.void)
      }).pipe(Effect.raceFirst(Effect.sleep(judgeEveryMs)))
      if (!this.#lag.isCaughtUp(elapsedMs())) lastSeq = yield* this.#check
    }
    // Only the leader proves that a key is absent: a replica may lag.
    const shown = this.#seen ?? new Set()
    for (const key of this.#options.table.absent(shown)) this.#doubt(key)
    for (const key of this.#known.keys()) if (!shown.has(key)) this.#doubt(key)
    this.#seen = undefined
    yield* this.#settleDoubts(lastSeq)
    this.#known = noKnownChanges
  })

  /** Asks the leader what the watch should have shown. */
  readonly #check = Effect.gen({ self: this }, function* () {
    const { readMessage, streamInfo } = this.#broker
    const question = this.#lag.asked(elapsedMs())
    const { state } = yield* streamInfo(`look at ${this.#bucket}`, this.#stream)
    const lastSeq = state.last_seq
    const query = { seq: this.#lag.reached + 1, next_by_subj: `${this.#prefix}>` }
    const next =
      this.#lag.reached >= lastSeq
        ? null
        : yield* readMessage(`look at ${this.#bucket}`, this.#stream, query)
    yield* this.#settleDoubts(lastSeq)
    // A message up to `lastSeq` may have been replaced by a later one; the watch never shows it
    // then.
    this.#lag.answered(question, { lastSeq, hasMore: next !== null })
    return lastSeq
  })

  /**
   * Checks do not wait for each other: with a slow broker several are in flight. While a check is
   * unanswered, the watch is judged by the time since the last answered one.
   */
  readonly #checks = Effect.suspend(() =>
    this.#check.pipe(
      Effect.timeoutOption(maxSilenceMs),
      Effect.ignore,
      Effect.forkChild,
      Effect.repeat(Schedule.fixed(checkEveryMs))
    )
  )

  readonly #judge = Effect.suspend(() => {
    const { currentness } = this.#options
    const now = elapsedMs()
    currentness.judged(now)
    if (this.#lag.at(now) !== "current") currentness.close()
    else if (this.#isComplete(now)) this.#open()
    return this.#failIfStuck()
  }).pipe(Effect.andThen(Effect.sleep(judgeEveryMs)), Effect.forever)

  #isComplete(now: number): boolean {
    return (
      this.#lag.isCaughtUp(now) && this.#doubtful.size === 0 && this.#highest <= this.#lag.reached
    )
  }

  #settleDoubts(lastSeq: number) {
    return Effect.whileLoop({
      while: () => this.#doubtful.size > 0,
      body: () =>
        Effect.forEach(
          [...this.#doubtful],
          ([key, since]) => this.#askLeader(key, since, lastSeq),
          { concurrency: keysAtOnce, discard: true }
        ),
      step: () => undefined
    })
  }

  /**
   * @param since the doubt that is to be settled.
   * @param lastSeq last sequence of the stream, as the leader reported it before the key is read.
   */
  readonly #askLeader = Effect.fnUntraced(
    { self: this },
    function* (key: string, since: number, lastSeq: number) {
      const { readMessage } = this.#broker
      const { currentness, table, recorder } = this.#options
      const message = yield* readMessage(`read ${key}`, this.#stream, {
        last_by_subj: `${this.#prefix}${key}`
      })
      const stored: Stored =
        message === null ? { revision: lastSeq, at: 0, text: undefined } : storedUnder(message)
      const before = table.shown(key)
      const isAbsent = stored.text === undefined && before.text === undefined
      const isKnown =
        message === null
          ? before.text === undefined && !this.#known.isPresent(key)
          : this.#known.has(key, stored.revision, stored.at)
      const isSame = (isAbsent && !table.isUnreadable(key)) || weigh(before, stored) === "same"
      if (!isKnown) yield* recorder.record(key, stored)
      // If the doubt is newer, the watch has since shown an entry that the leader may not have had
      // yet.
      if (this.#doubtful.get(key) !== since) return
      this.#doubtful.delete(key)
      if (isSame) return
      this.#take(key, stored)
      if (this.#highest > this.#lag.reached) currentness.close()
    }
  )

  /** Fails if the watch will not catch up by itself: another may be served by another replica. */
  #failIfStuck(): Effect.Effect<void, BrokerError> {
    const standing = this.#lag.at(elapsedMs())
    const why =
      standing === "stuck" && this.#waiting === 0
        ? "the watch does not show what the leader has: all is read again"
        : standing === "truncated"
          ? "the bucket has lost what was stored in it last: all is read again"
          : undefined
    return why === undefined
      ? Effect.void
      : Effect.fail(new BrokerError({ operation: "watch the endpoints", cause: new Error(why) }))
  }
}

const storedIn = (entry: KvWatchEntry): Stored => ({
  revision: entry.revision,
  at: entry.created.getTime(),
  text: entry.operation === "PUT" ? entry.string() : undefined
})
