import { Clock, Effect, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { factKinds } from "../../../domain/fact.ts"
import { answeredFact } from "../../../history/fact-record.ts"
import { readFacts, readNewestFacts, type StoredFact } from "../../../history/read.ts"
import { type EventQuery, readEventFacts } from "../../../operations/history/event-facts.ts"
import { factLine } from "../../../text/fact-line.ts"
import { plural } from "../../../text/quantities.ts"
import { endpointFlag, limitFlag, nameFlag, tenantFlag, timeFlag } from "../../flags/shared.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { coloured, print, remark } from "../../terminal/stdout.ts"
import { lagText } from "../projection.ts"
import { historyTotals } from "./totals.ts"

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

const isoText = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString()

const rowOf = ({ fact, seq }: StoredFact): string => {
  const { at, deadline, error, eventAt, nextAttemptAt, ...rest } = fact
  const row: Readonly<Record<string, unknown>> = {
    ...rest,
    seq,
    at: isoText(at),
    eventAt: isoText(eventAt),
    deadline: isoText(deadline),
    nextAttemptAt: isoText(nextAttemptAt),
    errorClass: error?.class,
    errorMessage: error?.message
  }
  return columns.map((column) => cell(row[column])).join(",")
}

const jsonLine = ({ record, seq }: StoredFact): string =>
  JSON.stringify({ seq, ...answeredFact(record) })

/** Writes the facts to stdout for other programs. */
const historyExport = Command.make(
  "export",
  {
    tenant: tenantFlag,
    endpoint: endpointFlag,
    since: timeFlag(
      "since",
      "Facts stored from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"
    ),
    until: timeFlag("until", "Facts stored up to then, in the same form"),
    format: nameFlag("format", ["ndjson", "csv"]).pipe(
      Flag.withMetavar("FORMAT"),
      Flag.withDescription(
        "ndjson: each fact with all that was stored; csv: its main fields, without answers and plans"
      ),
      Flag.withDefault("ndjson" as const)
    )
  },
  Effect.fnUntraced(function* ({ format, ...query }) {
    let count = 0
    if (format === "csv") yield* print(columns.join(","))
    yield* readFacts(query).pipe(
      Stream.map(format === "csv" ? rowOf : jsonLine),
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

/** Prints a fact: its record with its `seq`, or a line for people. */
export const reportFact = Effect.fnUntraced(function* ({ fact, record, seq }: StoredFact) {
  const now = yield* Clock.currentTimeMillis
  yield* report({ seq, ...answeredFact(record) }, factLine(fact, { now, colour: coloured() }))
})

const flags = {
  tenant: tenantFlag,
  endpoint: endpointFlag,
  event: Flag.String("event").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription("Only of this event: its id, or evt_ and its sequence"),
    Flag.optional
  ),
  kind: nameFlag("kind", factKinds).pipe(
    Flag.withMetavar("KIND"),
    Flag.withDescription(`Only of this kind, may be repeated: ${factKinds.join(", ")}`),
    Flag.atLeast(0)
  ),
  since: timeFlag(
    "since",
    "Facts stored from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"
  ),
  until: timeFlag("until", "Facts stored up to then, in the same form"),
  limit: limitFlag("Only the newest N, the newest last"),
  follow: Flag.Boolean("follow").pipe(
    Flag.withAlias("f"),
    Flag.withDescription("Then print new facts as they happen"),
    Flag.withDefault(false)
  )
}

/** The facts about one event; says so where the delivery log says where they are. */
const aboutEvent = (query: EventQuery, limit = Number.POSITIVE_INFINITY) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { facts, lag } = yield* readEventFacts(query)
      const { json } = yield* petrel
      if (lag !== undefined && !json)
        yield* remark(`Found by the delivery log, which is ${lagText(lag)} the history.`)
      return Stream.fromIterable(facts.slice(-limit))
    })
  )

/** Prints the facts as stored, or one line each. */
export const history = Command.make(
  "history",
  flags,
  Effect.fnUntraced(function* ({ endpoint, event, follow, kind, limit, since, tenant, until }) {
    let found = 0
    const query = {
      tenant,
      endpoint,
      event: event._tag === "Some" ? event.value : undefined,
      kinds: kind,
      since,
      until,
      follow
    }
    const facts =
      query.event === undefined || follow
        ? limit === undefined
          ? readFacts(query)
          : readNewestFacts(query, limit)
        : aboutEvent({ ...query, event: query.event }, limit)
    const read = facts.pipe(
      Stream.tap(() =>
        Effect.sync(() => {
          found++
        })
      ),
      Stream.runForEach(reportFact),
      Effect.provide(connected)
    )
    yield* follow ? untilStopped(read) : read
    const { json } = yield* petrel
    if (found === 0 && !json)
      yield* remark(
        query.event === undefined
          ? "Nothing in the history matches."
          : "Nothing in the history matches. An event appears there once it is routed: `petrel status` says whether some still wait."
      )
  })
).pipe(
  Command.withDescription("Show what happened, one line a fact, oldest first"),
  Command.withExamples([
    { command: "petrel history --limit 20", description: "The newest 20, the newest one last" }
  ]),
  Command.withShortDescription("Show what happened"),
  Command.withSubcommands([historyExport, historyTotals])
)
