import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import type { PeriodTotals } from "../operations/history/period-totals.ts"
import { sumUpHistory } from "../operations/history/period-totals.ts"
import { countText, percentText } from "../operations/text/number-format.ts"
import type { ReadingProgress } from "./reading-progress.ts"
import { clearProgress, showingProgress } from "./reading-progress.ts"
import { connected, petrel } from "./root-command.ts"
import { nameFlag, tenantFlag, timeFlag } from "./selection.ts"
import { print } from "./stdout.ts"
import { makeTable } from "./table.ts"
import { remark } from "./terminal.ts"

/** Number of text columns, before the columns of numbers. */
const texts = 2

const headings = (by: PeriodTotals["by"]) => [
  `${by} (UTC)`,
  "tenant",
  "events",
  "delivered",
  "dead letters",
  "attempts",
  "retries",
  "success",
  "mean attempts"
]

const beginningText = (begins: number, by: PeriodTotals["by"]): string =>
  new Date(begins).toISOString().slice(0, by === "day" ? 10 : 16)

const rowOf = (one: PeriodTotals): ReadonlyArray<string> => {
  const { attempts, begins, by, deadLettered, delivered, events, meanAttempts, retries } = one
  const ended = deadLettered + delivered
  return [
    beginningText(begins, by).replace("T", " "),
    one.tenant,
    countText(events),
    countText(delivered),
    countText(deadLettered),
    countText(attempts),
    countText(retries),
    ended === 0 ? "-" : percentText(delivered, ended),
    meanAttempts?.toFixed(2) ?? "-"
  ]
}

/** Sums up the facts by tenant and by hour or day. */
export const historyTotals = Command.make(
  "totals",
  {
    tenant: tenantFlag,
    since: timeFlag("since", "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
    until: timeFlag("until", "Up to then, in the same form"),
    by: nameFlag("by", ["hour", "day"]).pipe(
      Flag.withMetavar("PERIOD"),
      Flag.withDescription("hour, or day of UTC"),
      Flag.withDefault("hour" as const)
    )
  },
  Effect.fnUntraced(function* (query) {
    const { json } = yield* petrel
    const { by } = query
    const table = makeTable(headings(by), texts)
    let isEmpty = true
    let read: ReadingProgress | undefined
    const give = Effect.fnUntraced(function* (complete: ReadonlyArray<PeriodTotals>) {
      isEmpty = false
      const lines = json
        ? complete.map((one) => JSON.stringify(one))
        : table.lines(complete.map(rowOf))
      yield* clearProgress
      yield* print(lines.join("\n"))
    })
    const work = sumUpHistory(query, give, (now) => {
      read = now
    })
    yield* showingProgress(work, () => read).pipe(Effect.provide(connected))
    if (isEmpty && !json) yield* remark("Nothing in the history is like that.")
  })
).pipe(
  Command.withDescription(
    "Sum up what happened, by tenant and by hour or day. What a period counts is what was stored within it."
  ),
  Command.withShortDescription("Sum up what happened, by tenant and hour")
)
