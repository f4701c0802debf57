import { Cause, Effect, Logger, type LogLevel } from "effect"

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
