import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { jsonOf, timeText } from "../../../domain/timestamp.ts"
import {
  type GroupsQuery,
  GroupTotals,
  PeriodTotals,
  type SpreadTotals,
  sumUpGroups,
  sumUpHistory
} from "../../../operations/history/period-totals.ts"
import { countText, percentText, plural, spanText } from "../../../text/quantities.ts"
import { isSet, limitFlag, maybe, nameFlag, tenantFlag, timeFlag } from "../../flags/shared.ts"
import { makeTable } from "../../format/screen.ts"
import { refusal } from "../../refused.ts"
import { connected, petrel } from "../../root-command.ts"
import type { ReadingProgress } from "../../terminal/progress.ts"
import { clearProgress, showingProgress } from "../../terminal/progress.ts"
import { print, remark } from "../../terminal/stdout.ts"

const encodePeriod = jsonOf(PeriodTotals)
const encodeGroup = jsonOf(GroupTotals)

/** Endpoints or types that are listed unless --limit says otherwise. */
const usualLimit = 20

/** Number of text columns, before the columns of numbers. */
const texts = { period: 2, group: 1 }

const countHeadings = [
  "events",
  "delivered",
  "dead letters",
  "attempts",
  "retries",
  "success",
  "mean attempts"
]

const counts = (one: GroupTotals | PeriodTotals): ReadonlyArray<string> => {
  const { attempts, deadLettered, delivered, events, meanAttempts, retries } = one
  const ended = deadLettered + delivered
  return [
    countText(events),
    countText(delivered),
    countText(deadLettered),
    countText(attempts),
    countText(retries),
    ended === 0 ? "-" : percentText(delivered, ended),
    meanAttempts?.toFixed(2) ?? "-"
  ]
}

const periodRow = (one: PeriodTotals): ReadonlyArray<string> => {
  const { begins, by, tenant } = one
  const beginning = new Date(begins).toISOString().slice(0, by === "day" ? 10 : 16)
  return [beginning.replace("T", " "), tenant, ...counts(one)]
}

const groupRow = (one: GroupTotals): ReadonlyArray<string> => {
  const { by, latencyMs, name, others = 0, toSuccessMs } = one
  const span = (ms: number | undefined) => (ms === undefined ? "-" : spanText(ms))
  return [
    name ?? `and ${plural(others, `more ${by}`)}`,
    ...counts(one),
    span(toSuccessMs?.p50),
    span(toSuccessMs?.p99),
    span(latencyMs?.p50),
    span(latencyMs?.p99)
  ]
}

const groupHeadings = (by: GroupsQuery["by"]) => [
  by,
  ...countHeadings,
  "to success p50",
  "to success p99",
  "latency p50",
  "latency p99"
]

const quantilesText = (found: SpreadTotals["latencyMs"]): string =>
  found === null
    ? "-"
    : `p50 ${spanText(found.p50)}, p90 ${spanText(found.p90)}, p99 ${spanText(found.p99)}`

/** How all that was summed up is distributed, as lines below the table. */
const spreadLines = ({ attemptCounts, latencyMs, toSuccessMs }: SpreadTotals) => {
  const taken = Object.entries(attemptCounts).map(
    ([group, count]) => `${group}: ${countText(count)}`
  )
  return [
    "",
    `attempts taken   ${taken.length === 0 ? "-" : taken.join(", ")}`,
    `time to success  ${quantilesText(toSuccessMs)}`,
    `latency          ${quantilesText(latencyMs)}`
  ]
}

const flags = {
  tenant: tenantFlag,
  since: timeFlag(
    "since",
    "Facts stored from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"
  ),
  until: timeFlag("until", "Facts stored up to then, in the same form"),
  by: nameFlag("by", ["hour", "day"]).pipe(
    Flag.withMetavar("PERIOD"),
    Flag.withDescription("By tenant and hour, or day of UTC (default: hour)"),
    maybe
  ),
  byEndpoint: isSet("by-endpoint", "By endpoint, those with most failures first"),
  byType: isSet("by-type", "By event type, those with most failures first"),
  limit: limitFlag(
    `With --by-endpoint and --by-type: list N, and sum up the others (default: ${usualLimit})`
  )
}

/** Sums up the facts by tenant and period, or by endpoint or type. */
export const historyTotals = Command.make(
  "totals",
  flags,
  Effect.fnUntraced(function* ({ by, byEndpoint, byType, limit, ...query }) {
    const { json } = yield* petrel
    if ([by !== undefined, byEndpoint, byType].filter(Boolean).length > 1)
      return yield* refusal([
        "--by, --by-endpoint and --by-type cannot be combined: give one of them"
      ])
    const grouping = byEndpoint ? "endpoint" : byType ? "type" : undefined
    if (grouping === undefined && limit !== undefined)
      return yield* refusal(["--limit needs --by-endpoint or --by-type: periods are all listed"])
    let isEmpty = true
    let read: ReadingProgress | undefined
    const progress = (now: ReadingProgress) => {
      read = now
    }
    const shows = <A>(
      table: ReturnType<typeof makeTable>,
      row: (one: A) => ReadonlyArray<string>,
      encode: (one: A) => object
    ) =>
      Effect.fnUntraced(function* (rows: ReadonlyArray<A>) {
        if (rows.length === 0) return
        isEmpty = false
        const lines = json
          ? rows.map((one) => JSON.stringify(encode(one)))
          : table.lines(rows.map(row))
        yield* clearProgress
        yield* print(lines.join("\n"))
      })
    const period = by ?? "hour"
    const work =
      grouping === undefined
        ? sumUpHistory(
            { ...query, by: period },
            shows(
              makeTable([`${period} (UTC)`, "tenant", ...countHeadings], texts.period),
              periodRow,
              encodePeriod
            ),
            progress
          )
        : sumUpGroups({ ...query, by: grouping, limit: limit ?? usualLimit }, progress).pipe(
            Effect.tap(({ rows }) =>
              shows(makeTable(groupHeadings(grouping), texts.group), groupRow, encodeGroup)(rows)
            ),
            Effect.map(({ keptSince, whole }) => ({ keptSince, whole }))
          )
    const { keptSince, whole } = yield* showingProgress(work, () => read).pipe(
      Effect.provide(connected)
    )
    if (isEmpty && !json) yield* remark("Nothing in the history matches.")
    else if (!json) yield* print(spreadLines(whole).join("\n"))
    if (keptSince !== undefined)
      yield* remark(
        `Counted since ${timeText(keptSince)}: the history has dropped what was stored before.`
      )
  })
).pipe(
  Command.withDescription(
    "Sum up what happened, by tenant and by hour or day, or by endpoint or event type. A fact counts for the period in which it was stored. Below the table are the number of attempts that deliveries took, how long they took to succeed, and how long requests took. Where the history has dropped facts that are meant, a remark on stderr says since when it has them."
  ),
  Command.withShortDescription("Sum up what happened, by tenant and hour, endpoint or type"),
  Command.withExamples([
    { command: "petrel history totals --by day --since 7d" },
    { command: "petrel history totals --by-endpoint --since 1h", description: "Who fails most" }
  ])
)
