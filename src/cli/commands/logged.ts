import { Clock, Effect, Result, type Schema } from "effect"
import { Command } from "effect/cli"
import { Invalid } from "../../domain/problem.ts"
import { jsonOf } from "../../domain/timestamp.ts"
import { readInput } from "../../operations/input.ts"
import {
  AttemptQuery,
  AttemptRow,
  EventQuery,
  EventRow,
  type Lag,
  maxPageRows
} from "../../projection/delivery-log.ts"
import { findAttemptsRemotely, findEventsRemotely } from "../../projection/remote-log.ts"
import { plainText } from "../../text/plain-text.ts"
import { localTimeMs, spanText } from "../../text/quantities.ts"
import {
  endpointFlag,
  limitFlag,
  repeated,
  tenantFlag,
  textFlag,
  timeFlag
} from "../flags/shared.ts"
import { makeTable } from "../format/screen.ts"
import { connected, petrel } from "../root-command.ts"
import { print, remark } from "../terminal/stdout.ts"
import { lagText } from "./projection.ts"

/** Rows that are shown unless --limit says otherwise. */
const usualRows = 50

const flags = {
  tenant: tenantFlag,
  type: repeated(
    "type",
    "TYPE",
    "Only of this type; with * at the end, of all types with this beginning"
  ),
  limit: limitFlag(`Show N, the newest first (default: ${usualRows})`)
}

/** @param what happened to a row at the time that counts, such as `Made`. */
const range = (what: string) => ({
  since: timeFlag("since", `${what} from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'`),
  until: timeFlag("until", `${what} up to then, in the same form`)
})

/** Leaves out what is not asked for. */
const given = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) =>
      Array.isArray(value) ? value.length > 0 : value !== undefined
    )
  )

const checked = <A>(schema: Schema.ConstraintDecoder<A>, query: unknown) =>
  Effect.fromResult(
    Result.mapError(readInput(schema, query), (problems) => new Invalid({ problems }))
  )

/** A page, whatever it lists. */
interface Page<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly cursor: string | null
  readonly lag: Lag
}

/** Shows the first rows of a list, page by page. */
const show = Effect.fnUntraced(function* <Row, E, R>(
  limit: number,
  find: (page: {
    readonly limit: number
    readonly cursor?: string
  }) => Effect.Effect<Page<Row>, E, R>,
  jsonOf: (row: Row) => unknown,
  table: {
    readonly headings: ReadonlyArray<string>
    readonly of: (row: Row, now: number) => Array<string>
  }
) {
  const { json } = yield* petrel
  const rows: Array<Row> = []
  let page: Page<Row> | undefined
  do {
    page = yield* find({
      limit: Math.min(maxPageRows, limit - rows.length),
      ...(page === undefined || page.cursor === null ? {} : { cursor: page.cursor })
    })
    rows.push(...page.rows)
  } while (page.cursor !== null && rows.length < limit)
  if (json)
    return yield* Effect.forEach(rows, (row) => print(JSON.stringify(jsonOf(row))), {
      discard: true
    })
  const now = yield* Clock.currentTimeMillis
  const lines = makeTable(table.headings).lines(rows.map((row) => table.of(row, now)))
  yield* Effect.forEach(lines, print, { discard: true })
  const rest = page.cursor === null ? "" : "; there are more (--limit)"
  yield* remark(`From the delivery log, which is ${lagText(page.lag)} the history${rest}.`)
})

const attemptJson = jsonOf(AttemptRow)
const eventJson = jsonOf(EventRow)

/** Lists requests that were made to receivers. */
export const attempts = Command.make(
  "attempts",
  {
    ...flags,
    ...range("Made"),
    endpoint: endpointFlag,
    event: textFlag(
      "event",
      "ID",
      "Only of this event; with * at the end, of all events whose ids have this beginning"
    ),
    outcome: textFlag("outcome", "OUTCOME", "Only those: success or failure"),
    status: repeated(
      "status",
      "STATUS",
      "Only with this status of the complete answer, or its class: 503, 5xx; none: without one"
    ),
    error: repeated("error", "CLASS", "Only with this class of error, such as timeout")
  },
  Effect.fnUntraced(function* ({ endpoint, limit = usualRows, tenant, ...filters }) {
    const query = yield* checked(
      AttemptQuery,
      given({
        ...filters,
        tenant: endpoint?.tenant ?? tenant,
        endpoint: endpoint === undefined ? [] : [endpoint.id]
      })
    )
    yield* show(
      limit,
      (page) =>
        Effect.map(
          Effect.provide(findAttemptsRemotely({ ...query, ...page }), connected),
          ({ attempts, ...rest }) => ({ ...rest, rows: attempts })
        ),
      attemptJson,
      {
        headings: ["at", "delivery", "attempt", "outcome", "answer", "took"],
        of: ({ at, delivery, durationMs, error, number, outcome, status }, now) => [
          localTimeMs(at, now),
          plainText(delivery),
          `#${number}`,
          outcome,
          status === null ? (error?.class ?? "-") : String(status),
          durationMs === null ? "-" : spanText(durationMs)
        ]
      }
    )
  })
).pipe(
  Command.withDescription(
    "List requests that were made to receivers, newest first, from the delivery log"
  ),
  Command.withShortDescription("List requests that were made to receivers"),
  Command.withExamples([
    { command: "petrel attempts --endpoint acme/billing --status 5xx --since 1h" }
  ])
)

/** Lists events. */
export const events = Command.make(
  "events",
  {
    ...flags,
    ...range("Stored"),
    channel: repeated(
      "channel",
      "CHANNEL",
      "Only those of this channel: http, nats-api, nats or stream:NAME; with * at the end, of all channels with this beginning"
    )
  },
  Effect.fnUntraced(function* ({ limit = usualRows, ...filters }) {
    const query = yield* checked(EventQuery, given(filters))
    yield* show(
      limit,
      (page) =>
        Effect.map(
          Effect.provide(findEventsRemotely({ ...query, ...page }), connected),
          ({ events, ...rest }) => ({ ...rest, rows: events })
        ),
      eventJson,
      {
        headings: ["stored", "event", "tenant", "type", "by", "waiting", "delivered", "dead"],
        of: ({ at, channel, id, rounds, tenant, type }, now) => [
          localTimeMs(at, now),
          plainText(id),
          tenant,
          plainText(type ?? "-"),
          plainText(channel ?? "-"),
          String(rounds.waiting),
          String(rounds.delivered),
          String(rounds.deadLettered)
        ]
      }
    )
  })
).pipe(
  Command.withDescription("List events that were routed, newest first, from the delivery log"),
  Command.withShortDescription("List events that were routed"),
  Command.withExamples([
    { command: "petrel events --tenant acme --type 'invoice.*' --channel http" }
  ])
)
