import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import type { Period } from "../history/fold/totals.ts"
import type { PeriodTotals } from "../history/totals.ts"
import { readTotals } from "../history/totals.ts"
import { countText, percentText, shareOf } from "../operations/text/number-format.ts"
import type { ReadSoFar } from "./reading-progress.ts"
import { clearProgress, showingProgress } from "./reading-progress.ts"
import { connected, petrel } from "./root-command.ts"
import { nameFlag, tenantFlag, timeFlag } from "./selection.ts"
import { print } from "./stdout.ts"
import { makeTable } from "./table.ts"
import { remark } from "./terminal.ts"

/** Number of text columns, before the columns of numbers. */
const texts = 2

const headings = (by: Period) => [
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

const endedIn = ({ totals: { deadLettered, delivered } }: PeriodTotals): number =>
  deadLettered + delivered

/**
 * Returns the average attempts of the ended deliveries, to two decimals; undefined if none ended.
 */
const meanAttempts = (one: PeriodTotals): number | undefined =>
  endedIn(one) === 0
    ? undefined
    : Math.round((100 * one.totals.attemptsOfEnded) / endedIn(one)) / 100

const jsonOf = (by: Period) => (one: PeriodTotals) => {
  const { attemptsFailed, attemptsOfEnded: _, begun, delivered, events, ...rest } = one.totals
  return {
    begins: one.begins,
    by,
    tenant: one.tenant,
    events,
    begun,
    delivered,
    ...rest,
    attempts: delivered + attemptsFailed,
    successRate: shareOf(delivered, endedIn(one)),
    meanAttempts: meanAttempts(one) ?? null
  }
}

const beginningText = (begins: number, by: Period): string =>
  new Date(begins).toISOString().slice(0, by === "day" ? 10 : 16)

const rowOf = (by: Period) => (one: PeriodTotals) => {
  const { attemptsFailed, deadLettered, delivered, events, retries } = one.totals
  const ended = endedIn(one)
  return [
    beginningText(one.begins, by).replace("T", " "),
    one.tenant,
    countText(events),
    countText(delivered),
    countText(deadLettered),
    countText(delivered + attemptsFailed),
    countText(retries),
    ended === 0 ? "-" : percentText(delivered, ended),
    meanAttempts(one)?.toFixed(2) ?? "-"
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
    let read: ReadSoFar | undefined
    const give = Effect.fnUntraced(function* (complete: ReadonlyArray<PeriodTotals>) {
      isEmpty = false
      const lines = json
        ? complete.map((one) => JSON.stringify(jsonOf(by)(one)))
        : table.lines(complete.map(rowOf(by)))
      yield* clearProgress
      yield* print(lines.join("\n"))
    })
    const work = readTotals(query, give, (now) => {
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
