import { Clock, Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import type { AuditOptions } from "../../../history/audit/audit.ts"
import { runAudit } from "../../../operations/audit/audit-report.ts"
import { readDuration } from "../../flags/duration.ts"
import { tenantFlag, timeFlag } from "../../flags/selection.ts"
import { Refused } from "../../refused.ts"
import { connected, petrel } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"
import { withProgress } from "./progress.ts"
import { compareWith, readProof, writeProof } from "./proof.ts"
import { auditLines, refusalOf } from "./view.ts"
import { watchFor } from "./watch.ts"

const file = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(description),
    Flag.optional,
    Flag.map(Option.getOrUndefined)
  )

const flags = {
  since: timeFlag("since", "Events from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
  until: timeFlag("until", "Events up to then, in the same form"),
  tenant: tenantFlag,
  proof: file("proof", "Write what was read to FILE, for a later --against"),
  watch: Flag.Boolean("watch").pipe(
    Flag.withDescription("Go on: audit what is new, and raise a failure for what is missing"),
    Flag.withDefault(false),
    Flag.withoutNegation
  ),
  every: Flag.String("every").pipe(
    Flag.withMetavar("DURATION"),
    Flag.withDescription("With --watch, how often (default: 1 minute)"),
    Flag.withDefault("1 minute"),
    Flag.filterMap(
      (text) => Option.map(Option.fromUndefinedOr(readDuration(text)), Duration.toMillis),
      () => "must be a length of time such as '1 minute' or 30s"
    )
  ),
  against: file("against", "Say where what was read differs from what the proof in FILE says")
}

/** Verifies that every event reached every endpoint it was planned for, or reports why not. */
export const audit = Command.make(
  "audit",
  flags,
  Effect.fnUntraced(function* ({ against, every, proof, watch, ...range }) {
    if (watch) {
      if (proof !== undefined || against !== undefined || range.until !== undefined)
        return yield* new Refused({
          message: "--watch goes without --until, --proof and --against"
        })
      return yield* watchFor(range, every)
    }
    const { json } = yield* petrel
    const before = against === undefined ? undefined : yield* readProof(against)
    const options: AuditOptions = {
      ...range,
      marks:
        before === undefined
          ? undefined
          : { events: before.events.last, history: before.history.last }
    }
    const { problems, report, ...found } = yield* withProgress(options, runAudit).pipe(
      Effect.provide(connected)
    )
    const now = yield* Clock.currentTimeMillis
    if (json) {
      yield* print(JSON.stringify(report))
      for (const problem of problems) yield* print(JSON.stringify(problem))
    } else yield* Effect.forEach(auditLines(found.audit, now), print, { discard: true })
    if (proof !== undefined) yield* writeProof(proof, found.audit, now)
    const changed = before === undefined ? undefined : yield* compareWith(before, found.audit)
    const refusal = refusalOf(found.audit)
    if (refusal !== undefined || changed !== undefined)
      return yield* new Refused({
        message: [changed, refusal].filter((part) => part !== undefined).join("; and ")
      })
  })
).pipe(
  Command.withDescription(
    "Show that every event reached every endpoint it was for, or what became of it, from the streams and nothing else. Exit 0 only if nothing is missing or contradictory."
  ),
  Command.withShortDescription("Show that nothing was lost")
)
