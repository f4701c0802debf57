import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { present } from "../../domain/record.ts"
import { jsonOf } from "../../domain/timestamp.ts"
import { isToken } from "../../domain/token.ts"
import { type PeriodStats, readStats, Stats } from "../../operations/history/logged-totals.ts"
import { countText, percentText, spanText } from "../../text/quantities.ts"
import { maybe, nameFlag, timeFlag } from "../flags/shared.ts"
import { makeTable, sparkline } from "../format/screen.ts"
import { connected, petrel, report } from "../root-command.ts"
import { remark } from "../terminal/stdout.ts"

const encode = jsonOf(Stats)

const readOf = (text: string) => {
  const [tenant = "", endpoint, ...rest] = text.split("/")
  return rest.length === 0 && isToken(tenant) && (endpoint === undefined || isToken(endpoint))
    ? Option.some({ tenant, ...(endpoint === undefined ? {} : { endpoint }) })
    : Option.none()
}

const headings = ["attempts", "success", "2xx", "3xx", "4xx", "5xx", "none", "p50", "p95", "p99"]

const cells = ({ answers, attempts, latencyMs, succeeded }: Stats["whole"]) => [
  countText(attempts),
  attempts === 0 ? "-" : percentText(succeeded, attempts),
  ...["2xx", "3xx", "4xx", "5xx", "none"].map((name) => countText(answers[name] ?? 0)),
  ...(["p50", "p95", "p99"] as const).map((name) =>
    latencyMs === null ? "-" : spanText(latencyMs[name])
  )
]

const beginning = (begins: number, by: Stats["by"]): string =>
  new Date(begins)
    .toISOString()
    .slice(0, by === "day" ? 10 : 16)
    .replace("T", " ")

const rowOf =
  (by: Stats["by"]) =>
  (period: PeriodStats): ReadonlyArray<string> => [beginning(period.begins, by), ...cells(period)]

/** Returns a table of the periods with attempts, below it their sum and how attempts went on. */
export const statsLines = ({ by, lag, periods, whole }: Stats): ReadonlyArray<string> => {
  const table = makeTable([`${by} (UTC)`, ...headings], 1)
  const busy = periods.filter(({ attempts }) => attempts > 0)
  const [first, last] = [periods[0], periods.at(-1)]
  return [
    ...table.lines([...busy.map(rowOf(by)), ["all", ...cells(whole)]]),
    "",
    `attempts  ${sparkline(periods.map(({ attempts }) => attempts))}`,
    `failed    ${sparkline(periods.map(({ failed }) => failed))}`,
    ...(first === undefined || last === undefined
      ? []
      : [`          ${beginning(first.begins, by)} to ${beginning(last.begins, by)}`]),
    ...(lag.facts > 0 ? [`The log is ${spanText(lag.ms)} behind what happens.`] : [])
  ]
}

/** Shows what attempts came to, by hour or day. */
export const stats = Command.make(
  "stats",
  {
    of: Argument.String("TENANT[/ENDPOINT]").pipe(
      Argument.filterMap(readOf, () => "must be a tenant, or TENANT/ENDPOINT such as acme/billing")
    ),
    since: timeFlag("since", "From its hour on: 2026-03-04T10:30:00Z, or ago: 6h, '7 days'"),
    until: timeFlag("until", "Up to the end of its hour, in the same form"),
    by: nameFlag("by", ["hour", "day"]).pipe(
      Flag.withMetavar("PERIOD"),
      Flag.withDescription("By hour, or day of UTC (default: hour)"),
      maybe
    )
  },
  Effect.fnUntraced(function* ({ by, of, since, until }) {
    const found = yield* readStats({
      ...of,
      ...present({ by, since, until })
    }).pipe(Effect.provide(connected))
    yield* report(encode(found), statsLines(found).join("\n"))
    const { json } = yield* petrel
    if (json || found.whole.attempts > 0) return
    const { endpoint, tenant } = of
    yield* remark(
      `The log has no attempt ${endpoint === undefined ? `of ${tenant}` : `at ${tenant}/${endpoint}`} in this time: \`petrel endpoint list ${tenant}\` shows the endpoints that there are.`
    )
  })
).pipe(
  Command.withDescription(
    "Show attempts of a tenant or at an endpoint, by hour or day: how many succeed, how they are answered, and how fast. Reads a console's log of deliveries. Without --since: the last day"
  ),
  Command.withShortDescription("Show success and latency of attempts, by hour or day"),
  Command.withExamples([
    { command: "petrel stats acme" },
    { command: "petrel stats acme/billing --since 7d --by day" }
  ])
)
