import { Effect, Result, Schema, Struct } from "effect"
import { Command } from "effect/cli"
import { operatorNamed } from "../../../operations/caller.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { ChangedEndpointView, setEndpoint } from "../../../operations/endpoints/write-endpoint.ts"
import { flagProblems, settingName, shown } from "../../flags/flag-problems.ts"
import { allNull, contradictions, isGiven, namesRemoved } from "../../flags/setting-flags.ts"
import { byFlag, endpointArgument } from "../../flags/shared.ts"
import { refusal } from "../../refused.ts"
import { connected, report } from "../../root-command.ts"
import type { EndpointFields, EntryName } from "./flags.ts"
import { changeFlags, entryNames, readSettings, withoutFlags } from "./flags.ts"
import { givenSecrets } from "./secrets.ts"
import { secretLines } from "./view.ts"

/** Cautions go to the log. */
const encode = Schema.encodeSync(ChangedEndpointView.mapFields(Struct.omit(["cautions"])))

/** What is removed of settings whose entries are removed by their names, and those that are given. */
const entriesOf = (
  removed: Readonly<Record<EntryName, ReadonlyArray<string>>>,
  given: Partial<EndpointFields> = {}
) => {
  const problems: Array<string> = []
  const patch = entryNames.map((name) => {
    const entries = given[name] ?? {}
    const flag = settingName(name).replace(/s$/, "")
    for (const one of removed[name])
      if (Object.hasOwn(entries, one))
        problems.push(`--${flag} and --no-${flag} of ${shown(one)} exclude each other`)
    return [name, { ...allNull(removed[name]), ...entries }] as const
  })
  return { patch: Object.fromEntries(patch), problems }
}

/** The flags that problems are about whose values are names of entries. */
const removalNames = Object.fromEntries(
  entryNames.map((name) => [name, `--no-${settingName(name).replace(/s$/, "")}`])
)

export const set = Command.make(
  "set",
  { name: endpointArgument, ...changeFlags, removed: withoutFlags, by: byFlag },
  Effect.fnUntraced(function* ({ by, name, removed, ...flags }) {
    if (!isGiven(flags) && !isGiven(removed))
      return yield* refusal([
        `nothing is to be changed: say what, such as --url or --retry; see \`petrel endpoint set --help\``
      ])
    const read = readSettings({
      ...flags,
      ...(yield* givenSecrets(flags)),
      forwardHeaders: { ...flags.forwardHeaders, noForwardHeader: removed.forwardHeaders }
    })
    const removedNames = namesRemoved(removed)
    const entries = entriesOf(removed, Result.getOrUndefined(read))
    const problems = [
      ...(Result.isFailure(read) ? read.failure : []),
      ...contradictions(removedNames, flags),
      ...entries.problems
    ]
    if (Result.isFailure(read) || problems.length > 0) return yield* refusal(problems)
    const patch = { ...read.success, ...allNull(removedNames), ...entries.patch }
    const { cautions, ...set } = yield* setEndpoint(name, patch, operatorNamed(by)).pipe(
      // What is wrong with a header or a policy that is given was found before.
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems, removalNames))),
      Effect.provide(connected)
    )
    for (const caution of cautions) yield* Effect.logWarning(caution)
    const label = endpointLabel(name)
    yield* report(
      encode(set),
      [
        set.changed.length === 0
          ? `${label} is as it was: that is how it is set already`
          : `${label} is changed: ${set.changed.map(settingName).join(", ")}`,
        ...secretLines(set)
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Change what is given, and leave the rest"))
