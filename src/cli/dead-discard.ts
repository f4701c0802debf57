import { Effect, Stdio } from "effect"
import { Command, Prompt } from "effect/cli"
import { readFates } from "../history/dead-fates.ts"
import { discardDeadLetters } from "../history/discard.ts"
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

const canAsk = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  return (yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal)
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
    yield* checkSelection({ ...filter, all }, "discard")
    const { json } = yield* petrel
    if (!yes && !dryRun && (json || !(yield* canAsk)))
      return yield* new Refused({
        message: "what is discarded cannot be sent again: say --yes where nobody can be asked"
      })
    yield* Effect.gen(function* () {
      const all = yield* lettersOf(filter)
      const fates = yield* readFates(filter)
      // A redelivery may have crashed before its deliveries were stored, and needs these letters to
      // continue.
      const letters = all.filter(({ id }) => fates.get(id)?.outcome !== "waiting")
      const waiting = all.length - letters.length
      const left =
        waiting === 0 ? [] : [`${countText(waiting)} left alone: sent again, and on the way still`]
      const reasons = countReasons(letters)
      const lines = reasons.map(
        ([reason, count]) => `  ${reason.padEnd(18)}  ${countText(count).padStart(9)}`
      )
      if (dryRun)
        return yield* report(
          {
            event: "planned",
            selected: all.length,
            discard: letters.length,
            reasons: Object.fromEntries(reasons),
            waiting
          },
          [`would discard ${lettersText(letters.length)}`, ...lines, ...left].join("\n")
        )
      const question = `Discard ${lettersText(letters.length)} for good (${reasons.map(([reason, count]) => `${countText(count)} ${reason}`).join(", ")})?`
      if (!yes && letters.length > 0 && !(yield* Prompt.run(Prompt.Confirm({ message: question }))))
        return yield* remark("nothing was discarded")
      // The letters may have been redelivered while the command waited for confirmation.
      const now = yield* readFates(filter)
      const free = letters.filter(({ id }) => now.get(id)?.outcome !== "waiting")
      let done = 0
      const progress = makeProgress(json)
      progress.total(free.length)
      const brokenOff = Effect.suspend(() =>
        remark(
          `stopped after ${countText(done)} of ${countText(free.length)}: run the same command to discard the rest`
        )
      )
      yield* discardDeadLetters(free, by, () => {
        done++
        progress.advance()
      }).pipe(
        Effect.ensuring(Effect.sync(progress.clear)),
        Effect.onInterrupt(() => brokenOff),
        Effect.tapError(() => brokenOff)
      )
      yield* report(
        { event: "done", selected: all.length, discarded: done, waiting },
        [done === 0 ? "nothing was discarded" : `${lettersText(done)} discarded`, ...left].join(
          "\n"
        )
      )
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription("Remove dead letters for good; the history tells who did it"),
  Command.withShortDescription("Remove dead letters for good"),
  Command.withExamples([{ command: "petrel dead discard --endpoint acme/old --until 7d --yes" }])
)
