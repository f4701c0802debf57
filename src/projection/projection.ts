import { Clock, type Context, Effect } from "effect"
import type { BrokerOptions } from "../broker/connection.ts"
import { present } from "../domain/record.ts"
import { timers } from "../time/timers.ts"
import type {
  AttemptPage,
  DeliveryPage,
  EventPage,
  Lag,
  LoggedDeliveries,
  LogSums,
  ProjectionStatus
} from "./delivery-log.ts"
import { type DeliveryLog, LogUnavailable } from "./delivery-log.ts"
import { emptyFiles, type WriterReport } from "./follow-history.ts"
import { lastingThread, pauseText, secondsUntil, siblingScript } from "./lasting-thread.ts"
import { startQueries } from "./log-queries.ts"
import type { FromWriter, ToWriter, WriterData } from "./thread-messages.ts"
import { logFromThread } from "./thread-messages.ts"

export interface ProjectionOptions {
  readonly broker: BrokerOptions
  /** Directory of its files. It is made if it is missing. */
  readonly data: string
  /** Replaces files of another installation. (Default: they are left, and nothing is kept) */
  readonly replacesOther?: boolean
  /** How long ended rounds are kept, ms. */
  readonly keepMs: number
  /** How much disk they may take, bytes. */
  readonly maxBytes: number
  /** How long the writer may take to finish what it is doing, ms. (Default: 5 s) */
  readonly stopWithinMs?: number | undefined
}

const defaultStopWithinMs = 5_000

/** A projection of this process. */
export interface Projection {
  readonly log: Context.Service.Shape<typeof DeliveryLog>
  /** Reads the history again. Rows of facts that it has no longer are kept. */
  readonly rebuild: Effect.Effect<void, LogUnavailable>
}

/** An end of the history that was looked at longer ago, ms, does not tell whether it is level. */
const freshMs = 5_000

/** Returns how far the log is behind the history. One that has stopped is never level: nobody looks. */
const lagOf = ({ last, lookedAt, position, state, storedAt }: WriterReport, now: number): Lag => {
  const unseenMs = now - (last > position ? storedAt : lookedAt)
  const isLevel = state !== "stopped" && last <= position && unseenMs <= freshMs
  return { facts: Math.max(0, last - position), ms: isLevel ? 0 : Math.max(0, unseenMs) }
}

const notBegun = new LogUnavailable({ reason: "it has not begun to read the history" })

/** The thread that keeps the files in step with the history. */
const startWriter = Effect.fnUntraced(function* (options: ProjectionOptions) {
  const { broker, data, stopWithinMs = defaultStopWithinMs } = options
  const { keepMs, maxBytes, replacesOther = false } = options
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let report: WriterReport | undefined
  /** How often it has stopped. */
  let stops = 0
  /** When it was started again last, or is after it has ended, by the monotonic clock. */
  let startsAt = 0
  const note = (next: WriterReport) => {
    if (next.state === "stopped" && report?.state !== "stopped") stops++
    report = next
  }
  const tell = yield* lastingThread<FromWriter>({
    script: siblingScript(import.meta.url, "writer-thread"),
    data: {
      broker,
      store: { directory: data, keepMs, maxBytes, replacesOther }
    } satisfies WriterData,
    stop: { message: { do: "stop" } satisfies ToWriter, withinMs: stopWithinMs },
    told: (message) => {
      if (message.tells === "report") note(message.report)
      else if (message.tells === "line") run(logFromThread(message))
    },
    ended: (why, pauseMs) => {
      startsAt = timers.monotonicMs() + pauseMs
      const problem = `its writer has ended (${why}); ${pauseText(pauseMs)}`
      run(Effect.logError(`the delivery log does not continue: ${problem}`))
      if (report !== undefined) note({ ...report, state: "stopped", problem })
    }
  })
  return {
    tell: (message: ToWriter) => tell(message),
    /** Says, before the thread finds it out by itself, that its files have nothing. */
    noFiles: (problem: string) => {
      if (report !== undefined && report.state !== "stopped")
        note({ ...report, ...emptyFiles, state: "stopped", problem })
    },
    stops: () => stops,
    /** Why it is not asked while it is stopped. */
    stopped: ({ problem }: WriterReport) =>
      new LogUnavailable({
        reason: problem ?? "it has stopped",
        ...present({ retryAfter: secondsUntil(startsAt) })
      }),
    report: Effect.suspend(() => (report === undefined ? notBegun : Effect.succeed(report)))
  }
})

/**
 * Starts a projection: a thread that keeps its files in step with the history, and one that answers
 * queries. Both end with the scope. While the writer is stopped nothing is found: what the files have
 * is not what became of deliveries since.
 */
export const startProjection = Effect.fnUntraced(function* (options: ProjectionOptions) {
  const { data } = options
  const writer = yield* startWriter(options)
  const queries = yield* startQueries({ directory: data }, (files, why) => {
    if (files === "damaged") writer.tell({ do: "remake" })
    writer.noFiles(why)
  })
  const lag = Effect.gen(function* () {
    const report = yield* writer.report
    if (report.state === "stopped") return yield* writer.stopped(report)
    return lagOf(report, yield* Clock.currentTimeMillis)
  })
  /** Asks the files, and says how far behind they were before. */
  const ask = Effect.fnUntraced(function* (question: Parameters<typeof queries>[0]) {
    const known = yield* lag
    const stops = writer.stops()
    const result = yield* queries(question)
    // The files may have been made again meanwhile, and be empty still.
    if (writer.stops() !== stops)
      return yield* new LogUnavailable({ reason: "it stopped while it was searched" })
    return { known, result }
  })
  const log: Projection["log"] = {
    find: (query) =>
      Effect.gen(function* () {
        const { known, result } = yield* ask({ ask: "find", query })
        if (!("page" in result)) return yield* new LogUnavailable({ reason: "no page" })
        return { ...result.page, lag: known } satisfies DeliveryPage
      }),
    findAttempts: (query) =>
      Effect.gen(function* () {
        const { known, result } = yield* ask({ ask: "attempts", query })
        if (!("attempts" in result)) return yield* new LogUnavailable({ reason: "no page" })
        return { ...result.attempts, lag: known } satisfies AttemptPage
      }),
    findEvents: (query) =>
      Effect.gen(function* () {
        const { known, result } = yield* ask({ ask: "events", query })
        if (!("events" in result)) return yield* new LogUnavailable({ reason: "no page" })
        return { ...result.events, lag: known } satisfies EventPage
      }),
    get: (lookup) =>
      Effect.gen(function* () {
        const asked = ask({ ask: "get", lookup })
        const { known, result } = yield* Effect.catchTag(asked, "Invalid", Effect.die)
        if (!("rounds" in result)) return yield* new LogUnavailable({ reason: "no rounds" })
        return { ...result.rounds, lag: known } satisfies LoggedDeliveries
      }),
    sums: (query) =>
      Effect.gen(function* () {
        const { known, result } = yield* ask({ ask: "sums", query })
        if (!("sums" in result)) return yield* new LogUnavailable({ reason: "no sums" })
        return { ...result.sums, lag: known } satisfies LogSums
      }),
    status: Effect.gen(function* () {
      const report = yield* writer.report
      const { last: _, lookedAt: __, storedAt: ___, ...known } = report
      const behind = lagOf(report, yield* Clock.currentTimeMillis)
      return { ...known, lag: behind, data } satisfies ProjectionStatus
    })
  }
  const rebuild = Effect.suspend(() =>
    writer.tell({ do: "rebuild" })
      ? Effect.void
      : new LogUnavailable({ reason: "its writer has ended, and is started again" })
  )
  return { log, rebuild } satisfies Projection
})
