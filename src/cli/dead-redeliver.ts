import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { readUnended } from "../history/dead-fates.ts"
import type { EndpointRedelivery } from "../operations/rounds/redeliver.ts"
import type { StartedRound } from "../operations/rounds/round.ts"
import type { Unfit } from "../operations/rounds/target.ts"
import { countText } from "../operations/text/number-format.ts"
import { byFlag } from "./asked-by.ts"
import {
  checkSelection,
  countReasons,
  lettersOf,
  lettersText,
  selectionFlags
} from "./dead-selection.ts"
import { isSet } from "./endpoint-flags.ts"
import { Refused } from "./refused.ts"
import { makeProgress } from "./replay-progress.ts"
import { connected, petrel, report } from "./root-command.ts"
import { remark } from "./terminal.ts"

/** Maximum number of unavailable endpoints that are listed by name. */
const named = 5

const unfitTexts: Record<Unfit, string> = {
  "endpoint-disabled": "is disabled: put it back to work with `petrel endpoint enable`",
  "endpoint-removed": "is removed",
  "endpoint-unreadable": "has a configuration that cannot be read"
}

/** Imported on demand: other commands do not need the engine. */
const engine = Effect.promise(() => import("../operations/rounds/redeliver.ts"))

const unfitOf = (plan: ReadonlyArray<EndpointRedelivery>) =>
  plan.flatMap(({ endpoint, fresh, tenant, unfit }) =>
    unfit === undefined || fresh.length === 0
      ? []
      : [{ endpoint: `${tenant}/${endpoint}`, why: unfit, count: fresh.length }]
  )

/** Returns why dead letters are skipped, one sentence each. */
const leftTexts = (plan: ReadonlyArray<EndpointRedelivery>): ReadonlyArray<string> => {
  const before = plan.reduce((sum, one) => sum + one.before, 0)
  const late = plan.reduce((sum, one) => sum + one.late, 0)
  const unfit = unfitOf(plan)
  const others = unfit.slice(named)
  const rest = others.reduce((sum, { count }) => sum + count, 0)
  return [
    ...(before === 0 ? [] : [`${countText(before)} left alone: sent again before`]),
    ...(late === 0
      ? []
      : [
          `${countText(late)} left alone: delivered late, so the receiver has ${late === 1 ? "it" : "them"}`
        ]),
    ...unfit
      .slice(0, named)
      .map(
        ({ count, endpoint, why }) =>
          `${countText(count)} left alone: ${endpoint} ${unfitTexts[why]}`
      ),
    ...(rest === 0
      ? []
      : [`${countText(rest)} left alone: of ${countText(others.length)} more such endpoints`])
  ]
}

const leftJson = (plan: ReadonlyArray<EndpointRedelivery>) => ({
  before: plan.reduce((sum, one) => sum + one.before, 0),
  deliveredLate: plan.reduce((sum, one) => sum + one.late, 0),
  skipped: unfitOf(plan)
})

export const redeliver = Command.make(
  "redeliver",
  {
    ...selectionFlags,
    by: byFlag,
    dryRun: isSet("dry-run", "Say how many there are for each reason, and send none")
  },
  Effect.fnUntraced(function* ({ all, by, dryRun, ...filter }) {
    yield* checkSelection({ ...filter, all }, "send again")
    const { json } = yield* petrel
    const started = yield* Clock.currentTimeMillis
    const progress = makeProgress(json)
    yield* Effect.gen(function* () {
      const unended = yield* readUnended(filter)
      const letters = yield* lettersOf(filter, (id) => unended.some((one) => one.id === id))
      const { planRedelivery, redeliver } = yield* engine
      const plan = yield* planRedelivery({ letters, unended, by, held: progress.held })
      const sending = new Set(
        plan
          .filter(({ unfit }) => unfit === undefined)
          .flatMap(({ fresh }) => fresh.map(({ dead }) => dead))
          .concat(plan.flatMap(({ finishing }) => finishing.map(({ dead }) => dead)))
      )
      const reasons = countReasons(letters.filter(({ id }) => sending.has(id)))
      const total = sending.size
      if (dryRun) {
        const lines = reasons.map(
          ([reason, count]) => `  ${reason.padEnd(18)}  ${countText(count).padStart(9)}`
        )
        return yield* report(
          {
            event: "planned",
            selected: letters.length,
            redeliver: total,
            reasons: Object.fromEntries(reasons),
            ...leftJson(plan)
          },
          [`would send ${lettersText(total)} again`, ...lines, ...leftTexts(plan)].join("\n")
        )
      }
      if (letters.length === 0 && total === 0)
        return yield* report(
          { event: "done", selected: 0, redelivered: 0, gone: 0, ...leftJson(plan) },
          "there are no such dead letters: nothing was sent"
        )
      const counts: Record<StartedRound, number> = { begun: 0, finished: 0, before: 0, gone: 0 }
      progress.total(total)
      yield* redeliver(plan, (_, begun) => {
        counts[begun]++
        progress.advance()
      }).pipe(
        Effect.ensuring(Effect.sync(progress.clear)),
        Effect.onInterrupt(() => remark(brokenOff(counts, total, filter.id, started))),
        Effect.tapError(() => remark(brokenOff(counts, total, filter.id, started)))
      )
      const sent = counts.begun + counts.finished
      const left = leftTexts(plan)
      const gone =
        counts.gone === 0
          ? []
          : [`${countText(counts.gone)} left out: discarded, or too old and not kept any more`]
      const others =
        counts.before === 0
          ? []
          : [`${countText(counts.before)} were sent by somebody else at the same time`]
      yield* report(
        {
          event: "done",
          selected: letters.length,
          redelivered: sent,
          gone: counts.gone,
          ...leftJson(plan)
        },
        [
          sent === 0
            ? "nothing was sent"
            : `${lettersText(sent)} sent again: \`petrel dead list\` shows what comes of ${sent === 1 ? "it" : "them"}`,
          ...left,
          ...others,
          ...gone
        ].join("\n")
      )
      const unfit = unfitOf(plan)
      if (sent === 0 && unfit.length > 0 && counts.before === 0)
        return yield* new Refused({
          message: `nothing was sent: ${unfit.length === 1 ? `${unfit[0]?.endpoint} takes nothing` : "none of these endpoints takes anything"}`
        })
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription(
    "Send dead letters again, each once: the same event, attempts and deadline begin anew"
  ),
  Command.withShortDescription("Send dead letters again"),
  Command.withExamples([
    { command: "petrel dead redeliver --endpoint acme/billing --status 5xx" },
    { command: "petrel dead redeliver --all --dry-run", description: "How many, for each reason" }
  ])
)

/**
 * Returns how to continue. Without ids, `--until` excludes letters created since, which may be dead
 * letters of the same deliveries.
 */
const brokenOff = (
  counts: Readonly<Record<StartedRound, number>>,
  total: number,
  ids: ReadonlyArray<number>,
  started: number
): string => {
  const sent = counts.begun + counts.finished + counts.before
  const until = ids.length > 0 ? "" : ` with --until ${new Date(started).toISOString()}`
  return `stopped after ${countText(sent)} of ${countText(total)}: run the same command${until} to send the rest`
}
