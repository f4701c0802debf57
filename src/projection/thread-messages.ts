import type { LogLevel } from "effect"
import { Cause, Effect, Logger } from "effect"
import type { BrokerOptions } from "../broker/connection.ts"
import type {
  AttemptQuery,
  DeliveryLookup,
  DeliveryQuery,
  EventQuery,
  LoggedDeliveries,
  Unavailable
} from "./delivery-log.ts"
import type { FollowOptions, WriterReport } from "./follow-history.ts"
import type { AttemptRows, EventRows, PageRows } from "./log-reader.ts"
import type { LoggedSums, SumsQuery } from "./log-sums.ts"

/** A line that a thread logs: the process that started it writes it, in its own format. */
export interface LoggedLine {
  readonly tells: "line"
  readonly level: Exclude<LogLevel.LogLevel, "All" | "None">
  /** Sentences and details. */
  readonly parts: ReadonlyArray<unknown>
}

/** What can be sent to another thread of a part of a line: functions and the like cannot. */
const sendable = (part: unknown): unknown => {
  if (Cause.isCause(part)) return { cause: Cause.pretty(part) }
  try {
    return structuredClone(part)
  } catch {
    return String(part)
  }
}

/** Hands what is logged in a thread to whoever started it. */
export const loggingFromThread = (tell: (line: LoggedLine) => void) =>
  Logger.layer([
    Logger.make<unknown, void>(({ cause, logLevel, message }) => {
      if (logLevel === "All" || logLevel === "None") return
      const parts = (Array.isArray(message) ? message : [message]).map(sendable)
      const why = cause.reasons.length > 0 ? [sendable(cause)] : []
      tell({ tells: "line", level: logLevel, parts: [...parts, ...why] })
    })
  ])

/** Logs what a thread has handed over. */
export const logFromThread = ({ level, parts }: LoggedLine): Effect.Effect<void> =>
  Effect.logWithLevel(level)(...parts)

/** What the writer's thread is started with. */
export interface WriterData {
  readonly broker: BrokerOptions
  readonly store: FollowOptions
}

/** `remake`: a file is damaged, so all are made again; `rebuild` keeps what is older than the history. */
export interface ToWriter {
  readonly do: "rebuild" | "remake" | "stop"
}

export type FromWriter =
  | { readonly tells: "report"; readonly report: WriterReport }
  | LoggedLine
  /** Its files are closed. */
  | { readonly tells: "stopped" }

/** What the thread that answers queries is started with. */
export interface QueryData {
  readonly directory: string
}

export type ToQuery = { readonly id: number } & (
  | { readonly ask: "find"; readonly query: DeliveryQuery }
  | { readonly ask: "attempts"; readonly query: AttemptQuery }
  | { readonly ask: "events"; readonly query: EventQuery }
  | { readonly ask: "get"; readonly lookup: DeliveryLookup }
  | { readonly ask: "sums"; readonly query: SumsQuery }
)

/** Why nothing can be read of the files: they have to be made again, or are not there. */
export type UselessFiles = "damaged" | "missing"

export interface FromQuery {
  readonly id: number
  readonly result:
    | { readonly page: PageRows }
    | { readonly attempts: AttemptRows }
    | { readonly events: EventRows }
    | { readonly rounds: Omit<LoggedDeliveries, "lag"> }
    | { readonly sums: LoggedSums }
    | { readonly problem: { readonly field: string; readonly message: string } }
    | (Unavailable & { readonly files?: UselessFiles })
}
