import { Clock, Config, Effect, Option, Redacted, Result } from "effect"
import { Command } from "effect/cli"
import { getSource } from "../../../intake/source-store.ts"
import { parseNetwork } from "../../../policy/address.ts"
import { commandList } from "../../../reconcile/command-list.ts"
import { openList } from "../../../reconcile/open-list.ts"
import { reconcile as reconcileSource } from "../../../reconcile/reconcile.ts"
import { readGivenSecret } from "../../flags/secret-flags.ts"
import { byFlag, isSet, repeated, textFlag, timeFlag, wholeNumber } from "../../flags/shared.ts"
import { sourceArgument } from "../../flags/source-argument.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { print } from "../../terminal/stdout.ts"
import { requireIntake } from "../ingest/require-intake.ts"
import { doneJson, doneText, missingJson, missingLine } from "./report.ts"

const dayMs = 24 * 60 * 60_000
/** What happened since then may be on its way still, ms. */
const underWayMs = 5 * 60_000

const variable = "PETREL_API_KEY"

const flags = {
  since: timeFlag(
    "since",
    "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour' (default: 24h)"
  ),
  until: timeFlag(
    "until",
    "Up to then, in the same form (default: 5m, as later ones may be on their way)"
  ),
  dryRun: isSet("dry-run", "Only say what is missing, and fetch nothing"),
  types: textFlag(
    "types",
    "PATTERNS",
    "Only the provider's types that match one: 'invoice.*,charge.refunded' (default: those that the webhook gets, if its id is given)"
  ),
  webhook: textFlag(
    "webhook",
    "ID",
    "Which webhook at the provider: we_1PX of Stripe, repos/acme/shop/hooks/42 of GitHub"
  ),
  apiUrl: textFlag("api-url", "URL", "Where the provider's API is (default: the provider's own)"),
  apiKeyFile: textFlag(
    "api-key-file",
    "FILE",
    `The credentials for the API (default: ${variable}, which other users cannot read)`
  ),
  apiKey: textFlag("api-key", "-", "The same from standard input"),
  command: textFlag(
    "command",
    "COMMAND",
    "Runs this instead of asking the API: it prints the ids, one a line, or JSON with id, at, type and body"
  ),
  allowNetwork: repeated(
    "allow-network",
    "CIDR",
    "A network that may be asked though it is not public: 10.1.0.0/16"
  ),
  alertAbove: wholeNumber(
    "alert-above",
    [0, 999_999],
    "How many may be missing before the history has provider-lost (default: 0)"
  ),
  by: byFlag
}

/** Returns the credentials of the flags or the environment. */
const givenKey = Effect.fnUntraced(function* (flag: {
  readonly apiKey: string | undefined
  readonly apiKeyFile: string | undefined
}) {
  const { apiKey, apiKeyFile } = flag
  if (apiKey !== undefined && apiKey !== "-")
    return yield* refusal([
      `--api-key takes -, for standard input: other users of this machine would see credentials there; or use --api-key-file FILE or ${variable}`
    ])
  const given = yield* readGivenSecret("api-key", { secret: apiKey, secretFile: apiKeyFile })
  if (given !== undefined) return given
  const fromEnvironment = yield* Effect.orDie(Config.option(Config.Redacted(variable)))
  return Option.getOrUndefined(Option.map(fromEnvironment, Redacted.value))?.trim() || undefined
})

const readNetworks = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
  const parsed = texts.map(parseNetwork)
  const problems = parsed.flatMap((one) => (Result.isFailure(one) ? [one.failure.message] : []))
  if (problems.length > 0) return yield* refusal(problems.map((text) => `--allow-network ${text}`))
  return parsed.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
})

export const reconcile = Command.make(
  "reconcile",
  { name: sourceArgument, ...flags },
  Effect.fnUntraced(function* ({ name, ...given }) {
    const { json } = yield* petrel
    const now = yield* Clock.currentTimeMillis
    const { since = now - dayMs, until = now - underWayMs } = given
    const { command, dryRun: isDryRun } = given
    if (since >= until)
      return yield* refusal([
        "--since must be before --until, which is 5 minutes ago if it is not given"
      ])
    const types = given.types?.split(",").map((text) => text.trim())
    if (types?.includes("") === true)
      return yield* refusal(["--types must be patterns such as 'invoice.*,charge.refunded'"])
    const networks = yield* readNetworks(given.allowNetwork)
    const key = command === undefined ? yield* givenKey(given) : undefined
    const asked = { since, until }
    const work = Effect.gen(function* () {
      yield* requireIntake
      const { source } = yield* getSource(name)
      const account = { key, url: given.apiUrl, webhook: given.webhook }
      const list =
        command === undefined
          ? yield* openList(source, { account, asked, networks })
          : commandList(command, asked)
      const reconciled = yield* reconcileSource({
        ...{ source, since, until, list, types, isDryRun, by: given.by },
        alertAbove: given.alertAbove ?? 0,
        onMissing: (missing) =>
          Effect.ignore(
            print(json ? JSON.stringify(missingJson(missing)) : missingLine(missing, now))
          )
      })
      yield* report(doneJson(name, reconciled), doneText(name, reconciled, isDryRun, now))
      const { found, problem } = reconciled
      const left = found.missing - found.fetched - found.asked
      if (problem !== undefined) return yield* new Refused({ message: problem })
      if (left > 0)
        return yield* new Refused({
          message: isDryRun ? "events are missing" : "some events could not be had"
        })
    })
    return yield* work.pipe(Effect.scoped, Effect.provide(connected), untilStopped)
  })
).pipe(
  Command.withDescription(
    "Compare what a provider says it has sent with what came in, and fetch what is missing. It is stored as if it had come in, and delivered like any event."
  ),
  Command.withShortDescription("Find and fetch what a provider sent and never came in"),
  Command.withExamples([
    { command: "petrel reconcile acme/stripe --since 24h --api-key-file stripe.key" },
    { command: "petrel reconcile acme/stripe --since 3d --webhook we_1PX --dry-run" },
    { command: "petrel reconcile acme/legacy --command './list-ids.sh' --alert-above 5" }
  ])
)
