import { Effect, Result, Schema, Struct } from "effect"
import { Command } from "effect/cli"
import { operatorNamed } from "../../../operations/caller.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { ChangedEndpointView, setEndpoint } from "../../../operations/endpoints/set-endpoint.ts"
import { flagProblems, settingName, shown } from "../../flags/flag-problems.ts"
import { allNull, contradictions, isGiven, namesRemoved } from "../../flags/setting-flags.ts"
import { byFlag, endpointArgument } from "../../flags/shared.ts"
import { refusal } from "../../refused.ts"
import { connected, report } from "../../root-command.ts"
import type { EndpointFields } from "./flags.ts"
import { changeFlags, readSettings, withoutFlags } from "./flags.ts"
import { givenSecrets } from "./secrets.ts"
import { secretLines } from "./view.ts"

/** Cautions go to the log. */
const encode = Schema.encodeSync(ChangedEndpointView.mapFields(Struct.omit(["cautions"])))

const givenAndRemoved = (
  removed: ReadonlyArray<string>,
  given: EndpointFields["retryFor"] = {}
): ReadonlyArray<string> =>
  removed
    .filter((filter) => Object.hasOwn(given, filter))
    .map((filter) => `--retry-for and --no-retry-for of ${shown(filter)} exclude each other`)

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
    const problems = [
      ...(Result.isFailure(read) ? read.failure : []),
      ...contradictions(removedNames, flags),
      ...givenAndRemoved(removed.retryFor, Result.getOrUndefined(read)?.retryFor)
    ]
    if (Result.isFailure(read) || problems.length > 0) return yield* refusal(problems)
    const { headers, retryFor, ...settings } = read.success
    const patch = {
      ...settings,
      ...allNull(removedNames),
      retryFor: { ...allNull(removed.retryFor), ...retryFor },
      headers: { ...allNull(removed.headers), ...headers }
    }
    const { cautions, ...set } = yield* setEndpoint(name, patch, operatorNamed(by)).pipe(
      // What is wrong with a header or a policy that is given was found before.
      Effect.catchTag("Invalid", ({ problems }) =>
        refusal(flagProblems(problems, { headers: "--no-header", retryFor: "--no-retry-for" }))
      ),
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
