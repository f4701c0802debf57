import { Worker } from "node:worker_threads"
import { Clock, type Context, Deferred, Effect } from "effect"
import type { BrokerOptions } from "../broker/connection.ts"
import { Invalid } from "../domain/problem.ts"
import type { DeliveryPage, Lag, LoggedDeliveries, ProjectionStatus } from "./delivery-log.ts"
import { type DeliveryLog, LogUnavailable } from "./delivery-log.ts"
import type { WriterReport } from "./follow-history.ts"
import type {
  FromQuery,
  FromWriter,
  QueryData,
  ToQuery,
  ToWriter,
  WriterData
} from "./thread-messages.ts"

export interface ProjectionOptions {
  readonly broker: BrokerOptions
  /** Directory of its files. It is made if it is missing. */
  readonly data: string
  /** How long ended rounds are kept, ms. */
  readonly keepMs: number
  /** How much disk they may take, bytes. */
  readonly maxBytes: number
  /** How long the writer may take to finish what it is doing, ms. (Default: 5 s) */
  readonly stopWithinMs?: number | undefined
}

const defaultStopWithinMs = 5_000
/** How long an answer may take, ms: a page searches for 40 ms, and others may be before it. */
const answerWithinMs = 10_000

/** A projection of this process. */
export interface Projection {
  readonly log: Context.Service.Shape<typeof DeliveryLog>
  /** Reads the history again. Rows of facts that it has no longer are kept. */
  readonly rebuild: Effect.Effect<void>
}

const lagOf = ({ last, position, storedAt }: WriterReport, now: number): Lag => ({
  facts: Math.max(0, last - position),
  ms: last > position && storedAt > 0 ? Math.max(0, now - storedAt) : 0
})

/** Starts a thread, and ends it with the scope: after it had time to stop, where it is told to. */
const thread = (
  name: string,
  data: unknown,
  stop?: { readonly message: ToWriter; readonly withinMs: number }
) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      // Bundled, it is a script beside this one.
      const file = `./${name}${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`
      return new Worker(new URL(file, import.meta.url), {
        workerData: data,
        resourceLimits: { maxYoungGenerationSizeMb: 16 }
      })
    }),
    (worker) =>
      Effect.gen(function* () {
        if (stop !== undefined) {
          const ended = Effect.callback<void>((resume) => {
            worker.once("exit", () => resume(Effect.void))
            worker.on("message", ({ tells }: FromWriter) => {
              if (tells === "stopped") resume(Effect.void)
            })
            worker.postMessage(stop.message)
          })
          yield* Effect.timeoutOption(ended, stop.withinMs)
        }
        yield* Effect.promise(() => worker.terminate())
      })
  )

/** The thread that answers queries, and what waits for its answers. */
const startQueries = Effect.fnUntraced(function* (data: QueryData, broken: () => void) {
  const worker = yield* thread("query-thread", data)
  const asked = new Map<number, Deferred.Deferred<FromQuery["result"]>>()
  let ids = 0
  let ended: string | undefined
  worker.on("message", ({ id, result }: FromQuery) => {
    if ("isBroken" in result && result.isBroken) broken()
    const waiting = asked.get(id)
    asked.delete(id)
    if (waiting !== undefined) Deferred.doneUnsafe(waiting, Effect.succeed(result))
  })
  worker.on("error", (error) => {
    ended = `its thread has ended (${String(error)})`
  })
  return (question: OmitId<ToQuery>) =>
    Effect.gen(function* () {
      if (ended !== undefined) return yield* new LogUnavailable({ reason: ended })
      const id = ids++
      const answer = yield* Deferred.make<FromQuery["result"]>()
      asked.set(id, answer)
      worker.postMessage({ ...question, id } as ToQuery)
      const result = yield* Deferred.await(answer).pipe(
        Effect.timeoutOrElse({
          duration: answerWithinMs,
          orElse: () => new LogUnavailable({ reason: "it does not answer; it may be overloaded" })
        }),
        Effect.ensuring(Effect.sync(() => asked.delete(id)))
      )
      if ("unavailable" in result) return yield* new LogUnavailable({ reason: result.unavailable })
      if ("problem" in result) return yield* new Invalid({ problems: [result.problem] })
      return result
    })
})
type OmitId<A> = A extends unknown ? Omit<A, "id"> : never

/**
 * Starts a projection: a thread that keeps its files in step with the history, and one that answers
 * queries. Both end with the scope.
 */
export const startProjection = Effect.fnUntraced(function* (options: ProjectionOptions) {
  const { broker, data, keepMs, maxBytes, stopWithinMs = defaultStopWithinMs } = options
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const writerData: WriterData = { broker, store: { directory: data, keepMs, maxBytes } }
  const writer = yield* thread("writer-thread", writerData, {
    message: { do: "stop" },
    withinMs: stopWithinMs
  })
  const queries = yield* startQueries({ directory: data }, () => tell({ do: "remake" }))
  let report: WriterReport | undefined
  let ended: string | undefined
  const tell = (message: ToWriter) => writer.postMessage(message)
  writer.on("message", (message: FromWriter) => {
    if (message.tells === "report") report = message.report
    else if (message.tells === "warning") run(Effect.logWarning(message.sentence))
  })
  writer.on("error", (error) => {
    ended = `its writer has ended (${error instanceof Error ? error.message : String(error)})`
    run(Effect.logError(`the delivery log does not go on: ${ended}`))
  })
  writer.on("exit", () => {
    ended ??= "its writer has ended; the log says why"
  })
  const current = Effect.suspend(() =>
    ended !== undefined
      ? new LogUnavailable({ reason: ended })
      : report === undefined
        ? new LogUnavailable({ reason: "it has not begun to read the history" })
        : Effect.succeed(report)
  )
  const lag = Effect.map(Effect.all([current, Clock.currentTimeMillis]), ([known, now]) =>
    lagOf(known, now)
  )
  const log: Projection["log"] = {
    find: (query) =>
      Effect.gen(function* () {
        const known = yield* lag
        const result = yield* queries({ ask: "find", query })
        if (!("page" in result)) return yield* new LogUnavailable({ reason: "no page" })
        return { ...result.page, lag: known } satisfies DeliveryPage
      }),
    get: (lookup) =>
      Effect.gen(function* () {
        const known = yield* lag
        const asked = queries({ ask: "get", lookup })
        const result = yield* Effect.catchTag(asked, "Invalid", Effect.die)
        if (!("rounds" in result)) return yield* new LogUnavailable({ reason: "no rounds" })
        return { ...result.rounds, lag: known } satisfies LoggedDeliveries
      }),
    status: Effect.gen(function* () {
      const { last: _, storedAt: __, ...known } = yield* current
      return { ...known, lag: yield* lag, data } satisfies ProjectionStatus
    })
  }
  return { log, rebuild: Effect.sync(() => tell({ do: "rebuild" })) } satisfies Projection
})
