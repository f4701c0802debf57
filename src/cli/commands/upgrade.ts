import { Effect } from "effect"
import { Command, Prompt } from "effect/cli"
import { featureLevels } from "../../domain/feature-level.ts"
import type { UpgradePlan } from "../../operations/upgrade/upgrade.ts"
import {
  planUpgrade,
  upgrade as raise,
  refuseOldWorkers
} from "../../operations/upgrade/upgrade.ts"
import { isSet } from "../flags/shared.ts"
import { Refused } from "../refused.ts"
import { connected, petrel, report } from "../root-command.ts"
import { canAsk, print, remark } from "../terminal/stdout.ts"

const nothing = (level: number): string =>
  `The installation is at feature level ${level}, the newest that this version knows: nothing to do.`

export const planLines = ({ from, old, to }: UpgradePlan): ReadonlyArray<string> => [
  `From feature level ${from} to ${to}, which this version adds:`,
  ...featureLevels
    .slice(from, to)
    .map(({ adds, since }, index) => `  ${from + index + 1}  since ${since}: ${adds}`),
  "Then no process of the version before can work with this installation, and only a backup brings the former level back.",
  ...old.map(
    ({ host, pid, worker }) =>
      `The worker ${worker} (on ${host}, process ${pid}) is older: replace it first.`
  )
]

/** Raises the feature level of the installation, once all processes are of this version. */
export const upgrade = Command.make(
  "upgrade",
  {
    yes: isSet("yes", "Do not ask"),
    dryRun: isSet("dry-run", "Say what would be raised and what is in the way; change nothing")
  },
  Effect.fnUntraced(function* ({ dryRun, yes }) {
    const { json } = yield* petrel
    yield* Effect.gen(function* () {
      const plan = yield* planUpgrade
      if (plan.from === plan.to)
        return yield* report({ event: "done", from: plan.from, to: plan.to }, nothing(plan.from))
      if (dryRun) return yield* report({ event: "planned", ...plan }, planLines(plan).join("\n"))
      yield* refuseOldWorkers(plan.to)
      if (!yes && (json || !(yield* canAsk)))
        return yield* new Refused({
          message:
            "a raised level cannot be lowered again: add --yes to raise it without a question"
        })
      if (!json) yield* Effect.forEach(planLines(plan), print, { discard: true })
      const agreed = yes || (yield* Prompt.run(Prompt.Confirm({ message: "Raise it?" })))
      if (!agreed) return yield* remark("nothing was changed")
      const { from, to } = yield* raise
      yield* report(
        { event: "done", from, to },
        `The installation is at feature level ${to} now; it was ${from}.`
      )
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription(
    "Raise the feature level, once all workers and consoles are of this version: it may then store data that the previous version cannot read"
  ),
  Command.withShortDescription("Raise the feature level once all processes are replaced"),
  Command.withExamples([
    {
      command: "petrel upgrade --dry-run",
      description: "What would be raised, and what is in the way"
    }
  ])
)
