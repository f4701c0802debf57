import { Duration, Effect, Result, Struct } from "effect"
import { Command, Flag } from "effect/cli"
import { endpointLabel } from "../../../domain/endpoint.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { operatorNamed } from "../../../operations/caller.ts"
import { RotatedEndpoint, rotateSecret } from "../../../operations/endpoints/endpoint-secrets.ts"
import {
  AddedEndpoint,
  addEndpoint,
  ChangedEndpointView,
  createEndpoint,
  setEndpoint
} from "../../../operations/endpoints/write-endpoint.ts"
import { spanText } from "../../../text/quantities.ts"
import { flagProblems, settingName, shown } from "../../flags/flag-problems.ts"
import type { GivenSecret } from "../../flags/secret-flags.ts"
import { readLines, readSecret } from "../../flags/secret-flags.ts"
import { allNull, contradictions, isGiven, namesRemoved } from "../../flags/setting-flags.ts"
import { byFlag, durationFlag, endpointArgument, newEndpointArgument } from "../../flags/shared.ts"
import { refusal } from "../../refused.ts"
import { connected, report } from "../../root-command.ts"
import type { EndpointFields, EntryName } from "./flags.ts"
import { changeFlags, endpointFlags, entryNames, readSettings, withoutFlags } from "./flags.ts"
import { typesText } from "./setting-texts.ts"
import { secretLines } from "./view.ts"

/** Flags whose values may be secret. */
interface SecretFlags {
  readonly secret: GivenSecret
  readonly headers: {
    /** `name: value` each. */
    readonly header: ReadonlyArray<string>
    readonly headerFile: string | undefined
  }
}

/** Returns what to use instead of secrets in arguments, as one warning. */
const caution = ({ headers: { header }, secret: { secret } }: SecretFlags) => {
  const given = [
    ...(secret === undefined || secret === "-"
      ? []
      : [["--secret", "--secret-file FILE or --secret - for standard input"]]),
    ...(header.length === 0 ? [] : [["--header", "--header-file FILE"]])
  ]
  if (given.length === 0) return Effect.void
  const flags = given.map(([flag]) => flag).join(" and ")
  const instead = given.map(([, other]) => other).join(", and ")
  return Effect.logWarning(
    `other users of this machine see what ${flags} ${given.length === 1 ? "is" : "are"} given: use ${instead}`
  )
}

/**
 * Returns the secret and the header lines of an invocation, from arguments (with a warning), files
 * or standard input. In a file of headers, empty lines and lines that begin with # are ignored.
 */
const givenSecrets = Effect.fnUntraced(function* (flags: SecretFlags) {
  const secret = yield* readSecret(flags.secret)
  const { header, headerFile } = flags.headers
  const text = headerFile === undefined ? "" : yield* readLines("--header-file", headerFile)
  yield* caution(flags)
  return {
    secret,
    headers: {
      header,
      headerLines: text.split("\n").filter((line) => !/^\s*(#|$)/.test(line))
    }
  }
})

/** Cautions go to the log. */
const encodeAdded = jsonOf(AddedEndpoint.mapFields(Struct.omit(["cautions"])))

export const add = Command.make(
  "add",
  { name: newEndpointArgument, ...endpointFlags, by: byFlag },
  Effect.fnUntraced(function* ({ by, name: { id, tenant }, ...flags }) {
    const read = readSettings({ ...flags, ...(yield* givenSecrets(flags)) })
    const problems = [
      ...(flags.url === undefined ? ["--url is missing"] : []),
      ...(Result.isFailure(read) ? read.failure : [])
    ]
    if (Result.isFailure(read) || read.success.url === undefined) return yield* refusal(problems)
    const settings = { ...read.success, url: read.success.url }
    const adding =
      id === undefined
        ? createEndpoint(tenant, settings, { by })
        : addEndpoint({ id, tenant }, settings, by)
    const { cautions, ...added } = yield* adding.pipe(Effect.provide(connected))
    for (const caution of cautions) yield* Effect.logWarning(caution)
    yield* report(
      encodeAdded(added),
      [
        `${endpointLabel(added)} is added: ${typesText(added)} to ${added.url}`,
        ...secretLines(added)
      ].join("\n")
    )
  })
).pipe(
  Command.withDescription("Add an endpoint"),
  Command.withExamples([
    { command: "petrel endpoint add acme/billing --url https://example.com/hooks" },
    {
      command: "petrel endpoint add acme --url https://example.com/hooks",
      description: "Under an id that is made for it"
    },
    {
      command:
        "petrel endpoint add acme/crm --url https://example.com/h --types 'invoice.>' --retry stripe"
    },
    {
      command:
        "petrel endpoint add acme/shop --url https://example.com/s --secret-file s.secret --header-file s.headers"
    }
  ])
)

/** Cautions go to the log. */
const encodeChanged = jsonOf(ChangedEndpointView.mapFields(Struct.omit(["cautions"])))

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
        problems.push(`--${flag} and --no-${flag} of ${shown(one)} cannot be combined`)
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
        `nothing to change: name a setting, such as --url or --retry; see \`petrel endpoint set --help\``
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
      encodeChanged(set),
      [
        set.changed.length === 0
          ? `${label} is unchanged: it has these settings already`
          : `${label} is changed: ${set.changed.map(settingName).join(", ")}`,
        ...secretLines(set)
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Change the given settings, and leave the rest"))

const encodeRotated = jsonOf(RotatedEndpoint)

const keepOldFlag = durationFlag(
  "keep-old",
  "How long the old secret signs too; 0s drops it at once (default: 24 hours)"
).pipe(Flag.withDefault(Duration.hours(24)))

const oneSignature =
  "GitHub style carries one signature only, and the new secret makes it from now on: a receiver that does not know that secret yet refuses everything"

const oldText = ({ secrets, sign, updatedAt: now }: RotatedEndpoint): string => {
  if (sign === "github") return ", which signs from now on"
  const lasting = Math.max(0, ...secrets.map(({ until = now }) => until - now))
  return lasting === 0
    ? "; the old one is gone"
    : `; the old one stays valid for ${spanText(lasting)}`
}

export const rotate = Command.make(
  "rotate",
  {
    name: endpointArgument,
    ...endpointFlags.secret,
    keepOld: keepOldFlag,
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, keepOld, name, ...flags }) {
    const { secret } = yield* givenSecrets({
      secret: flags,
      headers: { header: [], headerFile: undefined }
    })
    const rotated = yield* rotateSecret(name, { secret, keepOld }, by).pipe(
      Effect.provide(connected)
    )
    if (rotated.sign === "github") yield* Effect.logWarning(oneSignature)
    yield* report(
      encodeRotated(rotated),
      [`${endpointLabel(name)} has a new secret${oldText(rotated)}`, ...secretLines(rotated)].join(
        "\n"
      )
    )
  })
).pipe(
  Command.withDescription("Give an endpoint a new secret; the old one stays valid for a while")
)
