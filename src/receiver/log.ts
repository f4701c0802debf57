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
