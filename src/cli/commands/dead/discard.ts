import { Effect } from "effect"
import { Command, Prompt } from "effect/cli"
import { selectionProblem } from "../../../operations/dead-letters/dead-letter-selection.ts"
import type {
  DiscardPlan,
  DiscardProgress
} from "../../../operations/dead-letters/discard-dead-letters.ts"
import { planDiscard } from "../../../operations/dead-letters/discard-dead-letters.ts"
import { countText } from "../../../text/quantities.ts"
import { byFlag, isSet } from "../../flags/shared.ts"
import { Refused } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { makeProgress, showing } from "../../terminal/progress.ts"
import { canAsk, remark } from "../../terminal/stdout.ts"
import { goneText, lettersText, reasonLines, selectionFlags } from "./selection.ts"

const agreed = ({ discard, reasons }: DiscardPlan) => {
  const parts = Object.entries(reasons).map(([reason, count]) => `${countText(count)} ${reason}`)
  return Prompt.run(
    Prompt.Confirm({
      message: `Discard ${lettersText(discard)} for good (${parts.join(", ")})?`
    })
  )
}

const leftLines = ({
  gone,
  waiting
}: Pick<DiscardPlan, "gone" | "waiting">): ReadonlyArray<string> => [
  ...(waiting === 0 ? [] : [`${countText(waiting)} left alone: sent again, and still on the way`]),
  ...(gone === 0 ? [] : [`${countText(gone)} not there: ${goneText}`])
]

/** Runs a discard and shows its progress, and how to go on if it is broken off. */
const withProgress = Effect.fnUntraced(function* <A, E, R>(
  run: (by: string, progress: DiscardProgress) => Effect.Effect<A, E, R>,
  by: string
) {
  const { json } = yield* petrel
  const bar = yield* makeProgress(json)
  let [done, total] = [0, 0]
  const work = run(by, (now, all) => {
    if (now === 0) bar.total(all)
    else bar.advance()
    done = now
    total = all
  })
  return yield* showing(
    bar,
    work,
    () =>
      `stopped after ${countText(done)} of ${countText(total)}: run the same command to discard the rest`
  )
})

export const discard = Command.make(
  "discard",
  {
    ...selectionFlags,
    by: byFlag,
    yes: isSet("yes", "Do not ask"),
    dryRun: isSet("dry-run", "Say how many there are for each reason, and discard none")
  },
  Effect.fnUntraced(function* ({ all, by, dryRun, yes, ...filter }) {
    const problem = selectionProblem({ ...filter, all }, "discard")
    if (problem !== undefined) return yield* problem
    const { json } = yield* petrel
    if (!yes && !dryRun && (json || !(yield* canAsk)))
      return yield* new Refused({
        message:
          "discarded dead letters cannot be sent again: add --yes to discard them without a question"
      })
    yield* Effect.gen(function* () {
      const { plan, run } = yield* planDiscard({ ...filter, all })
      if (dryRun)
        return yield* report(
          { event: "planned", ...plan },
          [
            `would discard ${lettersText(plan.discard)}`,
            ...reasonLines(plan.reasons),
            ...leftLines(plan)
          ].join("\n")
        )
      if (!yes && plan.discard > 0 && !(yield* agreed(plan)))
        return yield* remark("nothing was discarded")
      const done = yield* withProgress(run, by)
      yield* report(
        { event: "done", ...done },
        [
          done.discarded === 0
            ? "nothing was discarded"
            : `${lettersText(done.discarded)} discarded`,
          ...leftLines(done)
        ].join("\n")
      )
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription("Remove dead letters for good; the history records who did it"),
  Command.withShortDescription("Remove dead letters for good"),
  Command.withExamples([{ command: "petrel dead discard --endpoint acme/old --until 7d --yes" }])
)
