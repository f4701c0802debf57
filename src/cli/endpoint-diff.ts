import { Clock, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import type { SettingDifference } from "../domain/configuration-difference.ts"
import { differencesOf } from "../domain/configuration-difference.ts"
import type { ConfigurationStep } from "../history/configuration-story.ts"
import { readStory } from "../history/configuration-story.ts"
import { withWords } from "./duration.ts"
import { differenceTexts } from "./endpoint-difference.ts"
import { endpointArgument } from "./endpoint-flags.ts"
import { connected, report } from "./root-command.ts"
import { labelled, screenWidth } from "./screen.ts"

type Story = ReadonlyArray<ConfigurationStep>

const revisionArgument = (name: string, description: string) =>
  Argument.Int(name).pipe(
    Argument.withDescription(description),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

/** Returns the last step with a revision: a truncated bucket assigns its revisions again. */
const stepOf = (story: Story, revision: number): ConfigurationStep | undefined =>
  story.findLast((step) => step.revision === revision)

const unknownText = (story: Story, unknown: number): string => {
  const all = story.map(({ revision }) => revision)
  const nearest = [
    Math.max(...all.filter((revision) => revision < unknown)),
    Math.min(...all.filter((revision) => revision > unknown))
  ].filter(Number.isFinite)
  const [only] = nearest
  return `it has no revision ${unknown}: the nearest ${
    nearest.length === 1 ? `is ${only}` : `are ${nearest.join(" and ")}`
  }`
}

interface Comparison {
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly differences?: ReadonlyArray<SettingDifference>
  /** Why the revisions cannot be compared. */
  readonly problem?: string
}

/** Compares two revisions. `from` defaults to the last but one, `to` to the last. */
const compare = (story: Story, asked: Pick<Comparison, "from" | "to">): Comparison => {
  const { from = story.at(-2)?.revision, to = story.at(-1)?.revision } = asked
  if (to === undefined || story.length === 0)
    return { from, to, problem: "no change of it is told" }
  if (from === undefined) return { to, problem: `it has had no change but revision ${to}` }
  if (from === to) return { from, to, problem: `both are revision ${to}` }
  const [before, after] = [stepOf(story, from), stepOf(story, to)]
  if (before === undefined) return { from, to, problem: unknownText(story, from) }
  if (after === undefined) return { from, to, problem: unknownText(story, to) }
  const bare = [before, after].find(({ configuration }) => configuration === undefined)
  if (before.configuration === undefined || after.configuration === undefined)
    return {
      from,
      to,
      problem:
        bare?.change === "removed"
          ? `revision ${bare.revision} is its removal, which has no settings`
          : `revision ${bare?.revision} cannot be read`
    }
  return { from, to, differences: differencesOf(before.configuration, after.configuration) }
}

export const diff = Command.make(
  "diff",
  {
    name: endpointArgument,
    from: revisionArgument("A", "The revision before (default: the last but one)"),
    to: revisionArgument("B", "The revision after (default: the last)")
  },
  Effect.fnUntraced(function* ({ from, name, to }) {
    const { id, tenant } = name
    const story = yield* readStory(tenant, id).pipe(Effect.provide(connected))
    const comparison = compare(story, { from, to })
    const { differences = [], problem } = comparison
    const now = yield* Clock.currentTimeMillis
    const label = `${tenant}/${id}`
    yield* report(
      { tenant, id, ...comparison, differences: withWords(differences) },
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
