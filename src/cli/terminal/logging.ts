import { Cause, Context, Effect, Layer, Logger, type LogLevel, References, Tracer } from "effect"
import type { DestinationStream, Level, Logger as Pino } from "pino"
import { destination, pino, stdTimeFunctions } from "pino"
import { withoutTokens } from "../../text/plain-text.ts"
import { visible } from "../format/visible.ts"

const levels: Record<LogLevel.LogLevel, Level | undefined> = {
  All: "trace",
  Trace: "trace",
  Debug: "debug",
  Info: "info",
  Warn: "warn",
  Error: "error",
  Fatal: "fatal",
  None: undefined
}

const stderr = 2

/**
 * Makes a log line safe for terminals, including the texts within it. A JSON escape in it remains
 * an escape when the JSON is parsed, except for newlines and tabs.
 */
export const forTerminal = (line: string): string =>
  visible(line).replaceAll(/\\(?:u[0-9a-f]{4}|.)/gi, (written) =>
    /^\\[ubfr]/.test(written) ? `\\${written}` : written
  )

/** Bytes of lines that wait to be written. Where they cannot be, further ones are lost. */
const maxWaiting = 1024 * 1024
/** How long the last lines are waited for before the process exits, ms. */
const lastLinesMs = 1_000

/**
 * Buffers lines for up to 200 ms, since a worker may log much. Flushes them on exit. Where stderr takes
 * none, as on a full disk, the process goes on, and the lines are tried again.
 */
export const makeLines = (fd: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const stream = destination({
        ...{ fd, sync: false, minLength: 4096, periodicFlush: 200 },
        maxLength: maxWaiting
      })
      stream.on("error", () => {
        // On exit, it would try without end.
        stream.flushSync = () => undefined
      })
      let lost = 0
      stream.on("drop", () => lost++)
      stream.on("drain", () => {
        if (lost === 0) return
        const msg = `${lost} lines of this log are lost: stderr took none for too long`
        const line = { level: 40, time: new Date().toISOString(), pid: process.pid, msg }
        lost = 0
        stream.write(`${JSON.stringify(line)}\n`)
      })
      return { stream, isOpen: true }
    }),
    (lines) =>
      Effect.callback<void>((resume) => lines.stream.flush(() => resume(Effect.void))).pipe(
        Effect.timeoutOption(lastLinesMs),
        // What is left would be written on exit, for as long as its reader takes.
        Effect.andThen(
          Effect.sync(() => {
            lines.isOpen = false
            lines.stream.destroy()
          })
        )
      )
  ).pipe(
    Effect.map(
      (lines): DestinationStream => ({
        write: (line) => {
          if (lines.isOpen) lines.stream.write(visible(line))
        }
      })
    )
  )

const forPeople = async (): Promise<DestinationStream> => {
  const { default: pretty } = await import("pino-pretty")
  const stream = pretty({
    destination: stderr,
    sync: true,
    colorize: !process.env.NO_COLOR,
    ignore: "pid,hostname",
    translateTime: "SYS:HH:MM:ss.l"
  })
  return { write: (line) => stream.write(forTerminal(line)) }
}

/**
 * A second line of defence: no logged object should have such a field. pino's own redaction
 * searches every line for them, at many times the cost.
 */
const secretFields: ReadonlySet<string> = new Set([
  "secret",
  "secrets",
  "authorization",
  "password",
  "token"
])

/**
 * Returns why something failed. A failure that the code expects has a message that says it; only a
 * defect has a stack that helps.
 */
const reasonText = (cause: Cause.Cause<unknown>): string => {
  const failures = cause.reasons
    .filter(Cause.isFailReason)
    .flatMap(({ error }) => (error instanceof Error ? `${error.name}: ${error.message}` : []))
  const isExpected =
    failures.length > 0 &&
    cause.reasons.every(
      (reason) =>
        Cause.isInterruptReason(reason) ||
        (Cause.isFailReason(reason) && reason.error instanceof Error)
    )
  return isExpected ? failures.join("\n") : Cause.pretty(cause)
}

const toPino = (log: Pino) =>
  Logger.make<unknown, void>(({ cause, fiber, logLevel, message }) => {
    const level = levels[logLevel]
    if (level === undefined) return
    const fields: Record<string, unknown> = {
      ...fiber.getRef(References.CurrentLogAnnotations)
    }
    let words = ""
    for (const part of Array.isArray(message) ? message : [message]) {
      if (Cause.isCause(part)) fields.cause = reasonText(part)
      else if (part instanceof Error) fields.err = part
      else if (typeof part === "object" && part !== null) {
        for (const name in part) fields[name] = secretFields.has(name) ? "[Redacted]" : part[name]
      } else words += words === "" ? String(part) : ` ${part}`
    }
    if (cause.reasons.length > 0) fields.cause = reasonText(cause)
    const span = Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
    if (span !== undefined) {
      fields.traceId = span.traceId
      fields.spanId = span.spanId
    }
    log[level](fields, words)
  })

/** Writes Effect's log through pino, one JSON object per line, without tokens of the API. */
export const loggingTo = (stream: DestinationStream) => {
  const redacting = { write: (line: string) => stream.write(withoutTokens(line)) }
  const log = pino({ level: "trace", timestamp: stdTimeFunctions.isoTime }, redacting)
  return Logger.layer([toPino(log)])
}

/**
 * Writes Effect's log to stderr through pino: formatted on a terminal, otherwise one JSON object
 * per line. Effect's minimum level (--log-level) applies.
 */
export const logging = Layer.unwrap(
  Effect.map(process.stderr.isTTY ? Effect.promise(forPeople) : makeLines(stderr), (stream) =>
    loggingTo(stream)
  )
)
