import { Clock, Effect, Result } from "effect"
import { Command } from "effect/cli"
import { requireEventsOfIntake } from "../../../broker/survey-intake.ts"
import { present } from "../../../domain/record.ts"
import { type ApiAccount, checkAccount } from "../../../intake/source-account.ts"
import { getSource } from "../../../intake/source-store.ts"
import { listings } from "../../../providers/listings/listings.ts"
import { commandList } from "../../../reconcile/command-list.ts"
import { reconcile as reconcileSource } from "../../../reconcile/reconcile.ts"
import { underWayMs } from "../../../reconcile/schedule.ts"
import { openList } from "../../../reconcile/walk.ts"
import { spanText } from "../../../text/quantities.ts"
import {
  apiKeyFlags,
  apiKeyVariable,
  apiNetworkFlag,
  readApiKey,
  readApiNetworks
} from "../../flags/api-flags.ts"
import { flagProblems } from "../../flags/flag-problems.ts"
import {
  byFlag,
  isSet,
  sourceArgument,
  textFlag,
  timeFlag,
  wholeNumber
} from "../../flags/shared.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { doneJson, doneText, missingJson, missingLine } from "./report.ts"

const dayMs = 24 * 60 * 60_000

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
    "Only the provider's types that match one: 'invoice.*,charge.refunded' (default: the source's, or those that the webhook gets, if its id is known)"
  ),
  webhookId: textFlag(
    "webhook-id",
    "ID",
    "Which webhook at the provider: we_1PX of Stripe, repos/acme/shop/hooks/42 of GitHub (default: the source's)"
  ),
  apiUrl: textFlag(
    "api-url",
    "URL",
    "Where the provider's API is (default: the source's, or the provider's own)"
  ),
  ...apiKeyFlags(`${apiKeyVariable}, which other users cannot read, or the source's`),
  command: textFlag(
    "command",
    "COMMAND",
    "Runs this instead of asking the API: it prints the ids, one a line, or JSON with id, at, type and body"
  ),
  allowNetwork: apiNetworkFlag,
  alertAbove: wholeNumber(
    "alert-above",
    [0, 999_999],
    "How many may be missing before the history has provider-lost (default: the source's, or 0)"
  ),
  by: byFlag
}

/** Returns the account at the provider's API, or what is wrong with it. */
const accountOf = (account: ApiAccount, mayBeLocal: boolean) => {
  const checked = checkAccount(account, mayBeLocal)
  if (Result.isSuccess(checked)) return Effect.succeed(checked.success)
  const hint = checked.failure.some(({ field }) => field === "apiKey")
    ? [
        `give them with --api-key-file FILE, on standard input (--api-key -), or in ${apiKeyVariable}`
      ]
    : []
  return Effect.fail(refusal([...flagProblems(checked.failure), ...hint]))
}

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
    const networks = yield* readApiNetworks(given.allowNetwork)
    const key =
      command === undefined ? yield* readApiKey(given, process.env[apiKeyVariable]) : undefined
    const asked = { since, until }
    const work = Effect.gen(function* () {
      yield* requireEventsOfIntake
      const { source } = yield* getSource(name)
      const { apiUrl, webhookId } = given
      const keepsMs = listings.get(source.provider)?.keepsMs
      if (command === undefined && keepsMs !== undefined && since < now - keepsMs)
        yield* Effect.logWarning(
          `${source.provider} lists what has happened within ${spanText(keepsMs)}: what is older is not compared`
        )
      const list =
        command === undefined
          ? yield* openList(
              yield* accountOf(
                { ...source, ...present({ apiKey: key, apiUrl, webhookId }) },
                networks.length > 0
              ),
              { asked, networks, onWait: remark }
            )
          : commandList(command, asked)
      const reconciled = yield* reconcileSource({
        ...{ source, since, until, list, types: types ?? source.reconcileTypes },
        ...{ isDryRun, by: given.by, alertAbove: given.alertAbove ?? source.alertAbove ?? 0 },
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
          message: isDryRun ? "events are missing" : "some events could not be fetched"
        })
    })
    return yield* work.pipe(Effect.scoped, Effect.provide(connected))
  })
).pipe(
  Command.withDescription(
    "Compare a provider's list of events with those that came in, and fetch the missing ones. They are stored as if they had come in, and delivered like any event."
  ),
  Command.withShortDescription("Find events of a provider that never came in, and fetch them"),
  Command.withExamples([
    { command: "petrel reconcile acme/stripe --since 24h --api-key-file stripe.key" },
    { command: "petrel reconcile acme/stripe --since 3d --webhook-id we_1PX --dry-run" },
    { command: "petrel reconcile acme/legacy --command './list-ids.sh' --alert-above 5" }
  ])
)
