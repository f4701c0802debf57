import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { selectionProblem } from "../../../operations/dead-letters/dead-letter-selection.ts"
import type {
  LeftAlone,
  Redelivered,
  RedeliveryPlan
} from "../../../operations/dead-letters/redeliver-dead-letters.ts"
import type { RoundCounts } from "../../../rounds/round.ts"
import { countText } from "../../../text/quantities.ts"
import { byFlag, isSet } from "../../flags/shared.ts"
import { Refused } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { makeProgress, watchRounds } from "../../terminal/progress.ts"
import { goneText, lettersText, reasonLines, selectionFlags } from "./selection.ts"

/** Maximum number of unavailable endpoints that are listed by name. */
const named = 5

const unfitTexts: Record<LeftAlone["skipped"][number]["why"], string> = {
  "endpoint-disabled": "is disabled: put it back to work with `petrel endpoint enable`",
  "endpoint-removed": "is removed",
  "endpoint-unreadable": "has a configuration that cannot be read"
}

/** Imported on demand: other commands do not need the engine. */
const operation = Effect.promise(
  () => import("../../../operations/dead-letters/redeliver-dead-letters.ts")
)

/** Returns why dead letters are skipped, one sentence each. */
const leftTexts = ({
  before,
  deliveredLate,
  skipped,
  skippedElsewhere,
  superseded
}: LeftAlone): ReadonlyArray<string> => {
  const others = skipped.slice(named)
  const rest = others.reduce((sum, { count }) => sum + count, skippedElsewhere)
  return [
    ...(before === 0 ? [] : [`${countText(before)} left alone: sent again before`]),
    ...(deliveredLate === 0
      ? []
      : [
          `${countText(deliveredLate)} left alone: delivered late, so the receiver has ${deliveredLate === 1 ? "it" : "them"}`
        ]),
    ...(superseded === 0
      ? []
      : [
          `${countText(superseded)} left alone: a newer dead letter of the same delivery is sent instead of ${superseded === 1 ? "it" : "each"}`
        ]),
    ...skipped
      .slice(0, named)
      .map(
        ({ count, endpoint, why }) =>
          `${countText(count)} left alone: ${endpoint} ${unfitTexts[why]}`
      ),
    ...(rest === 0
      ? []
      : [
          `${countText(rest)} left alone: of ${skippedElsewhere === 0 ? countText(others.length) : `more than ${countText(others.length)}`} more such endpoints`
        ])
  ]
}

const goneLines = ({ gone }: Pick<RedeliveryPlan, "gone">): ReadonlyArray<string> =>
  gone === 0 ? [] : [`${countText(gone)} left out: ${goneText}`]

/** Says of how many it is not known whether this is the first time. */
const repeatLines = ({
  mayRepeat = 0
}: Pick<RedeliveryPlan, "mayRepeat">): ReadonlyArray<string> =>
  mayRepeat === 0
    ? []
    : [
        `${countText(mayRepeat)} of them may have been sent again before: the history no longer has facts from then`
      ]

/** Says where what is sent waits. */
const waitingLines = ({ waiting = [] }: Pick<RedeliveryPlan, "waiting">): ReadonlyArray<string> => {
  const others = waiting.slice(named)
  return [
    ...waiting
      .slice(0, named)
      .map(
        ({ count, endpoint }) =>
          `${countText(count)} of them wait${count === 1 ? "s" : ""}: ${endpoint} is paused or suspended, until \`petrel endpoint resume ${endpoint}\``
      ),
    ...(others.length === 0
      ? []
      : [
          `${countText(others.reduce((sum, { count }) => sum + count, 0))} of them wait: of ${countText(others.length)} more such endpoints`
        ])
  ]
}

/** Returns what a redelivery would do. */
export const planText = (plan: RedeliveryPlan): string =>
  [
    `would send ${lettersText(plan.redeliver)} again`,
    ...reasonLines(plan.reasons),
    ...repeatLines(plan),
    ...waitingLines(plan),
    ...leftTexts(plan),
    ...goneLines(plan)
  ].join("\n")

/**
 * Returns what a redelivery did.
 *
 * @param others how many of `before` another command has sent at the same time.
 */
export const doneText = (done: Redelivered, others: number): string => {
  const { redelivered } = done
  return [
    redelivered === 0
      ? "nothing was sent"
      : `${lettersText(redelivered)} sent again: \`petrel dead list\` shows what becomes of ${redelivered === 1 ? "it" : "them"}`,
    ...repeatLines(done),
    ...waitingLines(done),
    ...leftTexts({ ...done, before: done.before - others }),
    ...(others === 0
      ? []
      : [
          `${countText(others)} ${others === 1 ? "was" : "were"} sent by another command at the same time`
        ]),
    ...goneLines(done)
  ].join("\n")
}

export const redeliver = Command.make(
  "redeliver",
  {
    ...selectionFlags,
    by: byFlag,
    dryRun: isSet("dry-run", "Say how many there are for each reason, and send none")
  },
  Effect.fnUntraced(function* ({ all, by, dryRun, ...filter }) {
    const selection = { ...filter, all }
    const problem = selectionProblem(selection, "send again")
    if (problem !== undefined) return yield* problem
    const { json } = yield* petrel
    const started = yield* Clock.currentTimeMillis
    const progress = yield* makeProgress(json)
    yield* Effect.gen(function* () {
      const { planRedelivery } = yield* operation
      const { plan, run } = yield* planRedelivery(selection, { by, held: progress.held })
      if (dryRun) return yield* report({ event: "planned", ...plan }, planText(plan))
      const nothing = plan.selected === 0 && plan.redeliver === 0
      const { counts, done } = yield* watchRounds(run, plan.redeliver, progress, (sent) =>
        brokenOff(sent, plan.redeliver, filter.id, started)
      )
      yield* report(
        { event: "done", ...done },
        nothing ? "there are no such dead letters: nothing was sent" : doneText(done, counts.before)
      )
      const [unfit, ...others] = done.skipped
      if (done.redelivered === 0 && unfit !== undefined && counts.before === 0)
        return yield* new Refused({
          message: `nothing was sent: ${others.length === 0 ? `${unfit.endpoint} takes nothing` : "none of these endpoints takes anything"}`
        })
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription(
    "Send dead letters again, each delivery once: the same event, attempts and deadline start again. Of several dead letters of one delivery, only the newest is sent"
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
  counts: RoundCounts,
  total: number,
  ids: ReadonlyArray<number>,
  started: number
): string => {
  const sent = counts.begun + counts.finished + counts.before
  const until = ids.length > 0 ? "" : ` with --until ${new Date(started).toISOString()}`
  return `stopped after ${countText(sent)} of ${countText(total)}: run the same command${until} to send the rest`
}
