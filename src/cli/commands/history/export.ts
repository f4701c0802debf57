import { Effect, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { StoredFact } from "../../../history/read.ts"
import { readFacts } from "../../../history/read.ts"
import { plural } from "../../../operations/text/number-format.ts"
import { endpointFlag, nameFlag, tenantFlag, timeFlag } from "../../flags/shared.ts"
import { connected } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"

/** Lines per write. */
const factsPerPage = 500

const columns = [
  "seq",
  "at",
  "kind",
  "tenant",
  "endpoint",
  "event",
  "eventSeq",
  "eventAt",
  "type",
  "delivery",
  "round",
  "attempt",
  "probe",
  "probes",
  "status",
  "errorClass",
  "errorMessage",
  "durationMs",
  "nextAttemptAt",
  "deadline",
  "reason",
  "dead",
  "worker",
  "by",
  "user"
] as const

/**
 * Returns a field as defined by RFC 4180. A field that a spreadsheet would read as a formula is
 * marked as text.
 */
const cell = (value: unknown): string => {
  if (value === undefined) return ""
  const text = typeof value === "string" ? value.replace(/^(?=[=+\-@\t\r])/, "'") : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const moment = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString()

const rowOf = ({ fact, seq }: StoredFact): string => {
  const { at, deadline, error, eventAt, nextAttemptAt, ...rest } = fact
  const row: Readonly<Record<string, unknown>> = {
    ...rest,
    seq,
    at: moment(at),
    eventAt: moment(eventAt),
    deadline: moment(deadline),
    nextAttemptAt: moment(nextAttemptAt),
    errorClass: error?.class,
    errorMessage: error?.message
  }
  return columns.map((column) => cell(row[column])).join(",")
}

const jsonOf = ({ record, seq }: StoredFact): string => JSON.stringify({ seq, ...record })

/** Writes the facts to stdout for other programs. */
export const historyExport = Command.make(
  "export",
  {
    tenant: tenantFlag,
    endpoint: endpointFlag,
    since: timeFlag("since", "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
    until: timeFlag("until", "Up to then, in the same form"),
    format: nameFlag("format", ["ndjson", "csv"]).pipe(
      Flag.withMetavar("FORMAT"),
      Flag.withDescription(
        "ndjson: each fact as it was stored; csv: its main fields, without answers and plans"
      ),
      Flag.withDefault("ndjson" as const)
    )
  },
  Effect.fnUntraced(function* ({ format, ...query }) {
    let count = 0
    if (format === "csv") yield* print(columns.join(","))
    yield* readFacts(query).pipe(
      Stream.map(format === "csv" ? rowOf : jsonOf),
      Stream.grouped(factsPerPage),
      Stream.runForEach((lines) => {
        count += lines.length
        return print(lines.join("\n"))
      }),
      Effect.provide(connected)
    )
    yield* remark(`${plural(count, "fact")} exported`)
  })
).pipe(Command.withDescription("Write the facts to stdout, as ndjson or csv"))
