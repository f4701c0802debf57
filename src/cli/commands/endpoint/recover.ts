import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { endpointLabel } from "../../../domain/endpoint.ts"
import type { RetriedDeliveries } from "../../../operations/retries/retry-waiting.ts"
import { countText } from "../../../text/quantities.ts"
import { byFlag, endpointArgument, isSet, timeFlag } from "../../flags/shared.ts"
import { refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { makeProgress, watchRounds } from "../../terminal/progress.ts"
import { doneText, planText } from "../dead/redeliver.ts"
import { counted } from "../delivery/delivery.ts"

/** Imported on demand: other commands do not need the engine. */
const operation = Effect.promise(() => import("../../../operations/retries/recover-endpoint.ts"))

/** Returns what became of the deliveries that wait, if any: one that is paused or suspended tries none. */
const waitingText = (retried: RetriedDeliveries): string => {
  const [held] = retried.skipped
  return held === undefined ? counted(retried) : `no waiting delivery is tried (${held.why})`
}

export const recover = Command.make(
  "recover",
  {
    name: endpointArgument,
    since: timeFlag(
      "since",
      "What failed from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"
    ),
    until: timeFlag("until", "What failed up to then (default: now)"),
    by: byFlag,
    dryRun: isSet("dry-run", "Say how many there are, and send none")
  },
  Effect.fnUntraced(function* ({ by, dryRun, name, since, until }) {
    if (since === undefined)
      return yield* refusal(["--since is missing: say from when on, such as --since '2 hours'"])
    const now = yield* Clock.currentTimeMillis
    const selection = { endpoint: name, since, until: Math.min(until ?? now, now) }
    const { json } = yield* petrel
    const progress = yield* makeProgress(json)
    const label = endpointLabel(name)
    yield* Effect.gen(function* () {
      const { checkRecovery, previewRecovery, recoverEndpoint } = yield* operation
      yield* checkRecovery(name)
      if (dryRun) {
        const plan = yield* previewRecovery(selection, by)
        const text = `${label}: ${waitingText(plan.retried)}; ${planText(plan)}`
        return yield* report({ event: "planned", ...plan }, text)
      }
      const options = { retry: { by }, redelivery: { by, held: progress.held } }
      const { plan, run } = yield* recoverEndpoint(selection, options)
      const { counts, done } = yield* watchRounds(
        run,
        plan.redeliver,
        progress,
        (sent) =>
          `stopped after ${countText(sent.begun + sent.finished)} of ${countText(plan.redeliver)}: run the same command to send the rest`
      )
      const text = `${label}: ${waitingText(done.retried)}; ${doneText(done, counts.before)}`
      yield* report({ event: "done", ...done }, text)
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription(
    "Send again everything that failed at an endpoint since a time: waiting deliveries are tried now, and dead letters are sent again, each delivery once"
  ),
  Command.withShortDescription("Send again everything that failed since a time"),
  Command.withExamples([
    { command: "petrel endpoint recover acme/billing --since '2 hours' --dry-run" },
    { command: "petrel endpoint recover acme/billing --since 2026-03-04T10:30:00Z" }
  ])
)
