import { isUtf8 } from "node:buffer"
import { readFileSync } from "node:fs"
import { Effect, Result } from "effect"
import { Argument, Command } from "effect/cli"
import { readLayout } from "../../broker/installed.ts"
import { checkEvent } from "../../operations/events/new-event.ts"
import { publishEvent } from "../../operations/events/publish-events.ts"
import { EventNotStored } from "../../operations/refusals.ts"
import { flagProblems } from "../flags/flag-problems.ts"
import { repeated, textFlag } from "../flags/shared.ts"
import { refusal } from "../refused.ts"
import { connected, report } from "../root-command.ts"
import { readStdin } from "../terminal/stdout.ts"

/** No broker accepts larger messages, whatever its configuration. */
const maxBodyBytes = 64 * 1024 * 1024

/** Parses `name: value` lines. Returns the headers, and the problems of those that are none. */
const readHeaders = (lines: ReadonlyArray<string>) => {
  const headers = new Map<string, string>()
  const problems: Array<string> = []
  for (const line of lines) {
    const colon = line.indexOf(":")
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (name === "" || /\p{Cc}/u.test(line))
      problems.push(`--header ${JSON.stringify(line)} must be 'name: value'`)
    else if (headers.has(name)) problems.push(`--header ${JSON.stringify(name)} was given twice`)
    else headers.set(name, value)
  }
  return { headers: Object.fromEntries(headers), problems }
}

/**
 * Returns true if an argument has lost bytes that are no UTF-8: Node puts U+FFFD in their place. Only
 * Linux still has the bytes.
 */
const hasLostBytes = (argument: string): boolean => {
  if (!argument.includes("\uFFFD")) return false
  try {
    return !isUtf8(readFileSync("/proc/self/cmdline"))
  } catch {
    return false
  }
}

/** Publishes one event in the way that any NATS client can. */
export const publish = Command.make(
  "publish",
  {
    tenant: Argument.String("TENANT").pipe(Argument.withDescription("Whose event it is")),
    type: Argument.String("TYPE").pipe(Argument.withDescription("Such as invoice.paid")),
    body: Argument.String("BODY").pipe(
      Argument.withDescription("What is sent, byte for byte; - reads standard input")
    ),
    id: textFlag(
      "id",
      "ID",
      "The same id within 10 minutes is the same event. The tenant is put in front unless the id begins with it (default: a new one)"
    ),
    contentType: textFlag(
      "content-type",
      "TYPE",
      "Its content type for receivers (default: application/json)"
    ),
    header: repeated("header", "'NAME: VALUE'", "Such as a traceparent; may be repeated")
  },
  Effect.fnUntraced(function* ({ body, header, ...flags }) {
    const { headers, problems } = readHeaders(header)
    const event = { ...flags, headers }
    const checked = checkEvent(event, "")
    if (problems.length > 0 || Result.isFailure(checked))
      return yield* refusal([
        ...(Result.isFailure(checked)
          ? flagProblems(checked.failure, { tenant: "TENANT", type: "TYPE" })
          : []),
        ...problems
      ])
    if (hasLostBytes(body))
      return yield* refusal([
        "BODY is no valid UTF-8, and its bytes would be changed: give it on standard input, with -"
      ])
    const bytes = body === "-" ? yield* readStdin(maxBodyBytes) : Buffer.from(body, "utf8")
    const { unsent, ...published } = yield* publishEvent(event, bytes).pipe(
      // Where there is an installation, that says why it takes nothing.
      Effect.tapError((error) =>
        error instanceof EventNotStored && error.reason === "no-stream" ? readLayout : Effect.void
      ),
      Effect.provide(connected)
    )
    if (unsent.length > 0)
      yield* Effect.logWarning(
        `${unsent.join(", ")}: kept with the event; a receiver gets it only where its endpoint or its tenant names it (--forward-header)`
      )
    const { duplicate, id, seq } = published
    if (duplicate)
      yield* Effect.logWarning(
        `the broker has an event of this id already${seq === undefined ? "" : `, stored as ${seq}`}: nothing new was published`,
        { id }
      )
    yield* report(published, id)
  })
).pipe(
  Command.withDescription("Publish an event"),
  Command.withExamples([
    { command: `petrel publish acme invoice.paid '{"total":42}' --id invoice-42-paid` },
    { command: "petrel publish acme report.ready - --content-type text/csv < report.csv" }
  ])
)
