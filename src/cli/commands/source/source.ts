import type { Schema } from "effect"
import { Clock, Duration, Effect, Result } from "effect"
import { Command, Flag } from "effect/cli"
import { present } from "../../../domain/record.ts"
import { sourceLabel } from "../../../domain/source.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { readInput } from "../../../operations/input.ts"
import {
  addSource,
  listSources,
  NewSource,
  removeSource,
  rotateSource,
  SourcePatch,
  SourceView,
  setSource,
  showSource,
  sourcePath
} from "../../../operations/sources/manage-sources.ts"
import { rateText } from "../../../policy/rate.ts"
import { providers } from "../../../providers/providers.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, localTime, spanText } from "../../../text/quantities.ts"
import { apiKeyFlags, readApiKey } from "../../flags/api-flags.ts"
import { flagProblems, readJson } from "../../flags/flag-problems.ts"
import { readSecret } from "../../flags/secret-flags.ts"
import { allNull, contradictions, namesRemoved, removalFlags } from "../../flags/setting-flags.ts"
import {
  byFlag,
  durationFlag,
  nameFlag,
  sourceArgument,
  tenantFlag,
  textFlag
} from "../../flags/shared.ts"
import { makeTable } from "../../format/screen.ts"
import { refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"

const encodeView = jsonOf(SourceView)

const secretFlags = {
  secretFile: textFlag("secret-file", "FILE", "The secret that the provider signs with"),
  secret: textFlag(
    "secret",
    "SECRET|-",
    "The same from standard input; a secret given here is visible to other users of the machine"
  )
}

const settingFlags = {
  tolerance: textFlag(
    "tolerance",
    "DURATION",
    "How far the signed time may be off (default: the provider's usual one)"
  ),
  publicUrl: textFlag(
    "public-url",
    "URL",
    "The URL that the provider was given, where it signs that: Twilio, Square, HubSpot"
  ),
  webhookId: textFlag(
    "webhook-id",
    "ID",
    "What the provider calls the webhook: of PayPal, and where its API is asked (`petrel reconcile`)"
  ),
  verifyToken: textFlag(
    "verify-token",
    "TEXT",
    "What the provider repeats when the webhook is set up: Meta"
  ),
  scheme: textFlag(
    "scheme",
    "JSON",
    `How a sender of the provider hmac signs: '{"header":"x-acme-signature"}'`
  ),
  rate: textFlag(
    "rate",
    "RATE",
    "Requests that each gateway takes, such as 200/s; others are refused for now, and the provider sends them again (default: no limit)"
  ),
  reconcile: textFlag(
    "reconcile",
    "DURATION",
    "How often gateways ask the provider's API for what never came in, and fetch it (default: never)"
  ),
  apiUrl: textFlag("api-url", "URL", "Where the provider's API is (default: the provider's own)"),
  reconcileTypes: textFlag(
    "reconcile-types",
    "PATTERNS",
    "Only the provider's types that match one: 'invoice.*,charge.refunded'"
  ),
  alertAbove: textFlag(
    "alert-above",
    "N",
    "How many may be missing before the history has provider-lost (default: 0)"
  )
}

const providerFlag = nameFlag("provider", [...providers.keys()]).pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription(`Who sends: ${[...providers.keys()].join(", ")}`)
)

type GivenSettings = { readonly [Name in keyof typeof settingFlags]: string | undefined }

/** Returns the settings of the flags that are given, as JSON has them. */
const settingsIn = Effect.fnUntraced(function* (given: GivenSettings) {
  const { alertAbove, reconcileTypes, scheme, ...texts } = given
  const settings: Record<string, unknown> = present(texts)
  if (alertAbove !== undefined) settings.alertAbove = Number(alertAbove)
  if (reconcileTypes !== undefined)
    settings.reconcileTypes = reconcileTypes.split(",").map((text) => text.trim())
  if (scheme === undefined) return settings
  const read = readJson("--scheme", scheme, `an object such as {"header":"x-acme-signature"}`)
  if (Result.isFailure(read)) return yield* refusal(read.failure)
  return { ...settings, scheme: read.success }
})

const readSettings = <A>(schema: Schema.ConstraintDecoder<A>, given: object) => {
  const read = readInput(schema, given)
  return Result.isFailure(read) ? refusal(flagProblems(read.failure)) : Effect.succeed(read.success)
}

/** Returns the secret, with a warning if other users of the machine see it. */
const givenSecret = Effect.fnUntraced(function* (flags: {
  readonly secret: string | undefined
  readonly secretFile: string | undefined
}) {
  const secret = yield* readSecret(flags)
  if (flags.secret !== undefined && flags.secret !== "-")
    yield* Effect.logWarning(
      "other users of this machine see what --secret is given: use --secret-file FILE or --secret - for standard input"
    )
  return secret
})

const reconciledText = (
  { at, failed, fetched, listed, missing }: NonNullable<SourceView["reconciled"]>,
  now: number
): string => {
  const counts = `${countText(listed)} listed, ${countText(missing)} missing, ${countText(fetched)} fetched`
  return `${localTime(at, now)}: ${counts}${failed === undefined ? "" : `; broken off: ${failed}`}`
}

const viewText = (view: SourceView, now: number): string =>
  [
    sourceLabel(view),
    ...(
      [
        ["provider", view.provider],
        ["posts to", `${view.path} of a gateway (\`petrel ingest\`)`],
        ...view.secrets.map(({ createdAt, until, value }) => [
          "secret",
          `${value}, of ${localTime(createdAt, now)}${until === undefined ? "" : `, ${until > now ? "holds" : "held"} until ${localTime(until, now)}`}`
        ]),
        ["tolerance", view.tolerance && spanText(Duration.toMillis(view.tolerance))],
        ["public url", view.publicUrl],
        ["webhook id", view.webhookId],
        ["verify token", view.verifyToken],
        ["scheme", view.scheme && JSON.stringify(view.scheme)],
        ["rate", view.rate && rateText(view.rate)],
        ["api key", view.apiKey],
        ["api url", view.apiUrl],
        ["reconcile", view.reconcile && `every ${spanText(Duration.toMillis(view.reconcile))}`],
        ["its types", view.reconcileTypes?.join(", ")],
        ["reconciled", view.reconciled && reconciledText(view.reconciled, now)],
        ["alert above", view.alertAbove === undefined ? undefined : String(view.alertAbove)],
        ...(view.refusing ?? []).map(({ host, reason, since }) => [
          "refuses",
          `every request on ${plainText(host)}, since ${localTime(since, now)}: ${plainText(reason)}`
        ])
      ] as ReadonlyArray<readonly [string, string | undefined]>
    ).flatMap(([name, text]) => (text === undefined ? [] : [`  ${name.padEnd(13)}${text}`]))
  ].join("\n")

const add = Command.make(
  "add",
  {
    ...{ name: sourceArgument, provider: providerFlag, ...secretFlags, ...settingFlags },
    ...{ ...apiKeyFlags("none"), by: byFlag }
  },
  Effect.fnUntraced(function* ({ by, name, provider, secret: given, secretFile, ...flags }) {
    const { apiKey: keyFlag, apiKeyFile, ...texts } = flags
    const apiKey = yield* readApiKey({ apiKey: keyFlag, apiKeyFile })
    const settings = { ...(yield* settingsIn(texts)), ...present({ apiKey }) }
    const secret = yield* givenSecret({ secret: given, secretFile })
    const source = yield* readSettings(NewSource, {
      ...settings,
      provider,
      ...(secret === undefined ? {} : { secrets: [secret] })
    })
    const added = yield* addSource(name, source, by).pipe(
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems))),
      Effect.provide(connected)
    )
    yield* report(
      encodeView(added),
      `${sourceLabel(name)} is added: let ${provider} post to ${sourcePath(name)} of a gateway (\`petrel ingest\`)`
    )
  })
).pipe(
  Command.withDescription("Receive a provider's webhooks"),
  Command.withExamples([
    { command: "petrel source add acme/stripe --provider stripe --secret-file stripe.secret" },
    { command: "petrel source add acme/hub --provider github --secret - --rate 200/s" },
    {
      command:
        'petrel source add acme/legacy --provider hmac --secret-file s.secret --scheme \'{"header":"x-acme-signature"}\''
    }
  ])
)

/** What the flags say that remove a setting. */
const removals = {
  tolerance: "Back to the provider's usual one",
  publicUrl: "The URL is not known",
  webhookId: "Its name at the provider is not known",
  verifyToken: "Nothing is repeated to the provider",
  scheme: "Back to the provider's usual one",
  rate: "As many requests as come",
  apiKey: "Without credentials for the provider's API",
  apiUrl: "Back to the provider's own",
  reconcile: "No scheduled reconciliations",
  reconcileTypes: "All of the provider's types",
  alertAbove: "Back to 0"
} satisfies Record<keyof SourcePatch, string>

const set = Command.make(
  "set",
  {
    ...{ name: sourceArgument, ...settingFlags, ...apiKeyFlags("as before"), by: byFlag },
    none: removalFlags(removals)
  },
  Effect.fnUntraced(function* ({ by, name, none, ...flags }) {
    const { apiKey: keyFlag, apiKeyFile, ...texts } = flags
    const removed = namesRemoved(none)
    const problems = contradictions(removed, { ...texts, apiKey: keyFlag ?? apiKeyFile })
    if (problems.length > 0) return yield* refusal(problems)
    const apiKey = yield* readApiKey({ apiKey: keyFlag, apiKeyFile })
    const patch = yield* readSettings(SourcePatch, {
      ...(yield* settingsIn(texts)),
      ...present({ apiKey }),
      ...allNull(removed)
    })
    if (Object.keys(patch).length === 0)
      return yield* refusal([
        "nothing to change: name a setting, such as --rate 200/s; see `petrel source set --help`"
      ])
    const changed = yield* setSource(name, patch, by).pipe(
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems))),
      Effect.provide(connected)
    )
    yield* report(encodeView(changed), `${sourceLabel(name)} is changed`)
  })
).pipe(
  Command.withDescription("Change the given settings, and leave the rest"),
  Command.withExamples([
    { command: "petrel source set acme/stripe --rate 200/s" },
    { command: "petrel source set acme/stripe --reconcile 1h --api-key-file stripe.key" },
    { command: "petrel source set acme/stripe --no-reconcile --no-api-key" }
  ])
)

const headings = ["source", "provider", "secrets", "rate", "made"]

const list = Command.make(
  "list",
  { tenant: tenantFlag },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json } = yield* petrel
    const sources = yield* Effect.provide(listSources(tenant), connected)
    if (json) {
      for (const source of sources) yield* print(JSON.stringify(encodeView(source)))
      return
    }
    if (sources.length === 0)
      return yield* remark("There are no sources: `petrel source add` makes one.")
    const now = yield* Clock.currentTimeMillis
    const rows = sources.map((source) => [
      sourceLabel(source),
      source.provider,
      String(source.secrets.filter(({ until }) => until === undefined || until > now).length),
      source.rate === undefined ? "-" : rateText(source.rate),
      localTime(source.createdAt, now)
    ])
    yield* Effect.forEach(makeTable(headings).lines(rows), print)
  })
).pipe(Command.withDescription("List the sources, without their secrets"))

const show = Command.make(
  "show",
  { name: sourceArgument },
  Effect.fnUntraced(function* ({ name }) {
    const view = yield* Effect.provide(showSource(name), connected)
    yield* report(encodeView(view), viewText(view, yield* Clock.currentTimeMillis))
  })
).pipe(Command.withDescription("Show a source, without its secrets"))

const keepOldFlag = durationFlag(
  "keep-old",
  "How long the old secret verifies too; 0s drops it at once (default: 24 hours)"
).pipe(Flag.withDefault(Duration.hours(24)))

const rotate = Command.make(
  "rotate",
  { name: sourceArgument, ...secretFlags, keepOld: keepOldFlag, by: byFlag },
  Effect.fnUntraced(function* ({ by, keepOld, name, ...flags }) {
    const secret = yield* givenSecret(flags)
    if (secret === undefined)
      return yield* refusal(["give the new secret, which the provider makes: --secret-file FILE"])
    const rotated = yield* rotateSource(name, { secret, keepOld }, by).pipe(
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems))),
      Effect.provide(connected)
    )
    const kept = Duration.toMillis(keepOld)
    yield* report(
      encodeView(rotated),
      `${sourceLabel(name)} has a new secret${kept === 0 ? "; the old one is gone" : `; the old one verifies for ${spanText(kept)} more`}`
    )
  })
).pipe(Command.withDescription("Give a source a new secret; the old one verifies for a while"))

const remove = Command.make(
  "remove",
  { name: sourceArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, name }) {
    const removed = yield* Effect.provide(removeSource(name, by), connected)
    yield* report(removed, `${sourceLabel(name)} is removed: further requests are refused`)
  })
).pipe(
  Command.withDescription("Remove a source: requests of its provider are refused from then on")
)

export const source = Command.make("source").pipe(
  Command.withDescription("Providers whose webhooks come in"),
  Command.withSubcommands([add, set, list, show, rotate, remove])
)
