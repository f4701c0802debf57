import { Clock, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { compareRevisions } from "../../../operations/endpoints/endpoint-story.ts"
import { endpointArgument } from "../../flags/shared.ts"
import { labelled, screenWidth } from "../../format/screen.ts"
import { connected, report } from "../../root-command.ts"
import { differenceTexts } from "./difference.ts"

const revisionArgument = (name: string, description: string) =>
  Argument.Int(name).pipe(
    Argument.withDescription(description),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

export const diff = Command.make(
  "diff",
  {
    name: endpointArgument,
    from: revisionArgument("A", "The revision before (default: the last but one)"),
    to: revisionArgument("B", "The revision after (default: the last)")
  },
  Effect.fnUntraced(function* ({ from, name, to }) {
    const comparison = yield* compareRevisions(name, { from, to }).pipe(Effect.provide(connected))
    const { differences, problem } = comparison
    const now = yield* Clock.currentTimeMillis
    const label = endpointLabel(name)
    yield* report(
      comparison,
      problem === undefined
        ? [
            `${label} from revision ${comparison.from} to ${comparison.to}`,
            ...differenceTexts(differences, now).flatMap((text) =>
              labelled("  ", text, screenWidth())
            )
          ].join("\n")
        : `nothing to compare of ${label}: ${problem}`
    )
  })
).pipe(
  Command.withDescription("Show which settings differ between two revisions of an endpoint"),
  Command.withExamples([
    { command: "petrel endpoint diff acme/billing", description: "What the last change did" },
    { command: "petrel endpoint diff acme/billing 12 31" }
  ])
)
