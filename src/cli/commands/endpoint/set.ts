import { Effect, Result, Schema, Struct } from "effect"
import { Command } from "effect/cli"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { ChangedEndpointView, setEndpoint } from "../../../operations/endpoints/set-endpoint.ts"
import { flagProblems, settingName } from "../../flags/flag-problems.ts"
import { noForwardHeader } from "../../flags/forward-flags.ts"
import { shown } from "../../flags/json-text.ts"
import { byFlag, endpointArgument, isSet, repeated } from "../../flags/shared.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, report } from "../../root-command.ts"
import { type EndpointFields, readFields } from "./fields.ts"
import { changeFlags } from "./flags.ts"
import { givenSecrets } from "./secrets.ts"
import { secretLines } from "./view.ts"

/** Cautions go to the log. */
const encode = Schema.encodeSync(ChangedEndpointView.mapFields(Struct.omit(["cautions"])))

/** Settings with a flag that removes them. */
const removable = ["timeout", "connectTimeout", "contact", "format", "rate"] as const
type Removable = (typeof removable)[number]

/** Returns the settings that are given and removed at the same time. */
const contradictions = (
  removed: Readonly<Record<Removable, boolean>>,
  given: Readonly<Record<Removable, string | undefined>>
): ReadonlyArray<string> =>
  removable
    .filter((name) => removed[name] && given[name] !== undefined)
    .map(settingName)
    .map((name) => `--${name} and --no-${name} exclude each other`)

const givenAndRemoved = (
  removed: ReadonlyArray<string>,
  given: EndpointFields["retryFor"] = {}
): ReadonlyArray<string> =>
  removed
    .filter((filter) => Object.hasOwn(given, filter))
    .map((filter) => `--retry-for and --no-retry-for of ${shown(filter)} exclude each other`)

const allNull = (names: ReadonlyArray<string>): Readonly<Record<string, null>> =>
  Object.fromEntries(names.map((name) => [name, null]))

export const set = Command.make(
  "set",
  {
    name: endpointArgument,
    ...changeFlags,
    noHeader: repeated("no-header", "NAME", "Sends this header no more; may be repeated"),
    noForwardHeader,
    noRetryFor: repeated(
      "no-retry-for",
      "FILTER",
      "These event types have no policy of their own any more; may be repeated"
    ),
    noContact: isSet("no-contact", "Its alerts name nobody"),
    noFormat: isSet("no-format", "Bodies are the events' bytes"),
    noRate: isSet("no-rate", "As many requests as it takes"),
    noTimeout: isSet("no-timeout", "Back to the retry policy's time-out"),
    noConnectTimeout: isSet("no-connect-timeout", "Back to the retry policy's"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({
    by,
    name,
    noConnectTimeout,
    noContact,
    noFormat,
    noHeader,
    noRate,
    noRetryFor,
    noTimeout,
    ...flags
  }) {
    const given = Object.values(flags).some((value) =>
      Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false
    )
    const removed = {
      timeout: noTimeout,
      connectTimeout: noConnectTimeout,
      contact: noContact,
      format: noFormat,
      rate: noRate
    }
    const isAnyRemoved =
      removable.some((name) => removed[name]) || [...noHeader, ...noRetryFor].length > 0
    if (!given && !isAnyRemoved)
      return yield* new Refused({
        message: `nothing is to be changed: say what, such as --url or --retry; see \`petrel endpoint set --help\``
      })
    const read = readFields({ ...flags, ...(yield* givenSecrets(flags)) })
    const problems = [
      ...(Result.isFailure(read) ? read.failure : []),
      ...contradictions(removed, flags),
      ...givenAndRemoved(noRetryFor, Result.getOrUndefined(read)?.retryFor)
    ]
    if (Result.isFailure(read) || problems.length > 0) return yield* refusal(problems)
    const { headers, retryFor, ...settings } = read.success
    const patch = {
      ...settings,
      ...allNull(removable.filter((name) => removed[name])),
      retryFor: { ...allNull(noRetryFor), ...retryFor },
      headers: { ...allNull(noHeader), ...headers }
    }
    const { cautions, ...set } = yield* setEndpoint(name, patch, by).pipe(
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
