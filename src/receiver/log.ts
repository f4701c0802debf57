import { monotonicMs } from "./machine.ts"

/** One line of the receiver's log. No field has a secret, a signature or a body. */
export interface LogLine {
  readonly level: "info" | "warn" | "error"
  /** A sentence for people. */
  readonly text: string
  readonly source?: string | undefined
  readonly type?: string | undefined
  readonly key?: string | undefined
  /** What became of it. */
  readonly outcome?: string | undefined
  /** The HTTP status of the answer. */
  readonly status?: number | undefined
  /** How often the event was received, or the number of the attempt at its work. */
  readonly attempt?: number | undefined
  /** The trace id of `traceparent`, else the sender's request id, else the event's key. */
  readonly correlationId?: string | undefined
  /** From the request's beginning to its answer, or of the work. */
  readonly latencyMs?: number | undefined
  readonly error?: string | undefined
}

/** Says nothing of what goes well: a library has no log of its own. */
export const consoleLog = ({ level, text, error }: LogLine): void => {
  if (level === "info") return
  const line = `petrel/receiver: ${text}${error === undefined ? "" : ` (${error})`}`
  if (level === "warn") console.warn(line)
  else console.error(line)
}

/** Lines a minute that a source gets for requests that are not from its sender. */
const maxRefusals = 10

/**
 * Bounds the lines that anybody can make the receiver write, by requests that are refused: to some a minute for each
 * source. The last one says so; the figures count all of them.
 */
export const boundRefusals = (log: (line: LogLine) => void): ((line: LogLine) => void) => {
  const minutes = new Map<string, { readonly minute: number; readonly lines: number }>()
  return (line) => {
    const { outcome, source = "" } = line
    if (outcome === undefined || !ofStrangers.has(outcome)) {
      log(line)
      return
    }
    const minute = Math.floor(monotonicMs() / 60_000)
    const counted = minutes.get(source)
    const lines = (counted?.minute === minute ? counted.lines : 0) + 1
    minutes.set(source, { minute, lines })
    if (lines < maxRefusals) log(line)
    else if (lines === maxRefusals)
      log({ ...line, text: `${line.text}; what more is refused within this minute gets no line` })
  }
}

/** Outcomes of requests that anybody can send. */
const ofStrangers: ReadonlySet<string> = new Set([
  ...[
    "refused",
    "unverifiable",
    "too-large",
    "too-slow",
    "not-post",
    "handshake",
    "overloaded",
    "parsed-before"
  ]
])

const requestIds = ["x-request-id", "x-correlation-id", "request-id", "x-github-delivery"]

/** Returns what leads from a line to those of other programs. */
export const correlationOf = (
  headers: Readonly<Record<string, string | undefined>>,
  key: string | undefined
): string | undefined => {
  const [, trace] = /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(headers.traceparent ?? "") ?? []
  const named = requestIds.map((name) => headers[name]).find((value) => value !== undefined)
  return trace ?? named?.slice(0, 100) ?? key
}
