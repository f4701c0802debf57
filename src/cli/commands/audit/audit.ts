import { Clock, Duration, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { present } from "../../../domain/record.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import type { AuditReading } from "../../../history/audit/audit-reading.ts"
import { AuditProblem } from "../../../history/audit/problem.ts"
import type { AuditRange } from "../../../history/audit/reach.ts"
import type { StreamReading } from "../../../history/audit/stream-reading.ts"
import { type Raised, watch } from "../../../history/audit/watch.ts"
import {
  AuditReport,
  type AuditRun,
  checkAudit,
  noteAudit,
  runAudit
} from "../../../operations/audit/run-audit.ts"
import { type TableName, usualTableName } from "../../../outbox/table-name.ts"
import { auditOutbox, isClean, type OutboxAudit } from "../../../relay/outbox-audit.ts"
import { OutboxTable } from "../../../relay/outbox-table.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, localTimeMs, plural } from "../../../text/quantities.ts"
import { durationFlag, isSet, maybe, tenantFlag, textFlag, timeFlag } from "../../flags/shared.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { showingProgress } from "../../terminal/progress.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { print } from "../../terminal/stdout.ts"
import { givenTable, isDatabase, openDatabase } from "../outbox/database.ts"
import { checkProofPath, compareWith, readProof, writeProof } from "./proof.ts"
import { auditLines, refusalOf } from "./view.ts"

const outboxLines = (found: OutboxAudit): ReadonlyArray<string> => [
  `${plural(found.rows, "row")}: ${countText(found.published)} published and in the intake, ${countText(found.underWay)} under way, ${countText(found.discarded)} discarded`,
  ...(found.uncertain === 0
    ? []
    : [
        `${plural(found.uncertain, "published row")} ${found.uncertain === 1 ? "is" : "are"} older than what the intake still has: \`petrel audit\` may know the events`
      ]),
  ...found.problems.map(
    ({ event, kind, tenant, text }) => `${kind}: ${tenant}/${plainText(event)} ${plainText(text)}`
  )
]

/** Compares an outbox with the intake, and fails where they differ. */
const compareOutbox = Effect.fnUntraced(function* (url: string, table: TableName) {
  if (!isDatabase(url))
    return yield* refusal(["--outbox must be the URL of a PostgreSQL that has an outbox"])
  const { json } = yield* petrel
  const opened = new OutboxTable(yield* openDatabase(url), table)
  yield* opened.check
  const found = yield* Effect.provide(auditOutbox(opened), connected)
  const { problems, ...sums } = found
  if (json)
    for (const line of [{ outbox: { ...sums, clean: isClean(found) } }, ...problems])
      yield* print(JSON.stringify(line))
  else for (const line of outboxLines(found)) yield* print(line)
  if (isClean(found)) return
  const counts = Object.entries(sums.counts).flatMap(([kind, count]) =>
    count === 0 ? [] : [`${kind} ${countText(count)}`]
  )
  return yield* new Refused({ message: `the outbox is not clean: ${counts.join(", ")}` })
}, Effect.scoped)

const line = ({ endpoint, event, reason, tenant }: Raised, now: number): string =>
  `${localTimeMs(now, now)}  missing: ${event} → ${tenant}/${endpoint}: ${reason}`

/**
 * Audits new events periodically (every `every` ms) and raises alerts for missing deliveries, until
 * stopped.
 */
const watchFor = (range: AuditRange, every: number) =>
  untilStopped(
    Effect.andThen(
      checkAudit(range),
      watch(range, every, {
        raised: Effect.fnUntraced(function* (raised) {
          const now = yield* Clock.currentTimeMillis
          yield* report({ missing: raised }, line(raised, now))
        }),
        failed: (why) => Effect.logWarning("could not audit; trying again", { why }),
        looked: ({ lost, pending, problems, verdict }) =>
          Effect.andThen(
            range.tenant === undefined ? noteAudit(verdict, problems) : Effect.void,
            Effect.logInfo("audited what is new", {
              verdict,
              waiting: pending,
              ...present({ lost })
            })
          )
      })
    )
  ).pipe(Effect.provide(connected))

const encodeReport = jsonOf(AuditReport)
const encodeProblem = jsonOf(AuditProblem)

const file = (name: string, description: string) => textFlag(name, "FILE", description)

const flags = {
  since: timeFlag(
    "since",
    "Events stored from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"
  ),
  until: timeFlag("until", "Events stored up to then, in the same form"),
  tenant: tenantFlag,
  proof: file("proof", "Write a proof of what was read to FILE, for a later --against"),
  watch: isSet("watch", "Keep auditing new events, and raise a failure for each that is missing"),
  every: maybe(
    durationFlag("every", "With --watch, how often (default: 1 minute)").pipe(
      Flag.map(Duration.toMillis)
    )
  ),
  against: file("against", "Compare with the proof in FILE, and say where they differ"),
  outbox: textFlag(
    "outbox",
    "URL",
    "Compare the outbox in this PostgreSQL with what came in, and nothing else"
  ),
  table: givenTable
}

const left = ({ next, to }: StreamReading): number => Math.max(0, to - next + 1)

const readIn = ({ events, history }: AuditReading) => {
  const done = events.messages + history.messages
  return { done, all: done + left(events) + left(history) }
}

/** Runs an audit and shows its reading progress. */
const withProgress = <A, E, R>(
  options: AuditRun,
  run: (options: AuditRun) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let reading: AuditReading | undefined
    const watched = run({
      ...options,
      onBegin: (begun) => {
        reading = begun
      }
    })
    return showingProgress(watched, () => (reading === undefined ? undefined : readIn(reading)))
  })

/** Verifies that every event reached every endpoint it was planned for, or reports why not. */
export const audit = Command.make(
  "audit",
  flags,
  Effect.fnUntraced(function* ({ against, every, outbox, proof, table, watch, ...range }) {
    if (outbox !== undefined) {
      const others = [against, every, proof, range.since, range.until, range.tenant]
      if (watch || others.some((other) => other !== undefined))
        return yield* refusal([
          "--outbox compares all rows of an outbox: leave out the other flags but --table"
        ])
      return yield* compareOutbox(outbox, table ?? usualTableName)
    }
    // What is ignored would look as if it had been audited.
    if (table !== undefined) return yield* refusal(["--table goes with --outbox"])
    if (watch) {
      if (proof !== undefined || against !== undefined || range.until !== undefined)
        return yield* refusal(["--watch goes without --until, --proof and --against"])
      return yield* watchFor(range, every ?? Duration.toMillis("1 minute"))
    }
    if (every !== undefined) return yield* refusal(["--every goes with --watch"])
    const { json } = yield* petrel
    const before = against === undefined ? undefined : yield* readProof(against)
    if (proof !== undefined) yield* checkProofPath(proof)
    const { installation, problems, report, ...found } = yield* withProgress(
      { ...range, against: before },
      runAudit
    ).pipe(Effect.provide(connected))
    const now = yield* Clock.currentTimeMillis
    if (json) {
      yield* print(JSON.stringify(encodeReport(report)))
      for (const problem of problems) yield* print(JSON.stringify(encodeProblem(problem)))
    } else yield* Effect.forEach(auditLines(found.audit, now), print, { discard: true })
    if (proof !== undefined) yield* writeProof(proof, found.audit, { at: now, installation })
    const changed = before === undefined ? undefined : yield* compareWith(before, found.audit)
    const unclean = refusalOf(found.audit)
    if (unclean !== undefined || changed !== undefined)
      return yield* new Refused({
        message: [changed, unclean].filter((part) => part !== undefined).join("; and ")
      })
  })
).pipe(
  Command.withDescription(
    "Show from the streams alone whether every event reached every endpoint that wanted it, and if not, why. Exit 0 only if nothing is missing or contradictory."
  ),
  Command.withShortDescription("Check whether every event reached every endpoint")
)
