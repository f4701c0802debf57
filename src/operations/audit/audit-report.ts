import { Effect, Schema } from "effect"
import { readInstallation } from "../../broker/installation.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { type Audit, type AuditOptions, audit } from "../../history/audit/audit.ts"
import type { AuditProblem } from "../../history/audit/problem.ts"
import type { Proof } from "../../history/audit/proof.ts"
import { timers } from "../../time/timers.ts"
import { checkAudit, checkProof } from "./check-audit.ts"
import { noteAudit } from "./last-audit.ts"

const Counts = Schema.Record(Schema.String, Schema.Int)

/** The scope of an audit and its result. Times in ms since the epoch. */
export const AuditReport = Schema.Struct({
  /** `unvouched`: nothing is wrong in what is there, but it does not reach back far enough. */
  verdict: Schema.Literals(["clean", "problems", "unvouched"]),
  range: Schema.Struct({
    firstEvent: Schema.Int,
    lastEvent: Schema.Int,
    since: Schema.optionalKey(Timestamp),
    until: Schema.optionalKey(Timestamp),
    tenant: Schema.optionalKey(Schema.String),
    /** What was before is not all there any more. */
    vouchedSince: Schema.optionalKey(Timestamp)
  }),
  events: Schema.Struct({
    stored: Schema.Int,
    /** Not routed yet. */
    unreached: Schema.Int,
    repeated: Schema.Int,
    deliveredAgain: Schema.Int,
    routerFloor: Schema.Int,
    routerLag: Schema.Int
  }),
  facts: Schema.Struct({
    read: Schema.Int,
    to: Schema.Int,
    attempts: Schema.Int,
    earlier: Schema.Int
  }),
  deliveries: Schema.Struct({
    begun: Schema.Int,
    delivered: Schema.Int,
    /** Of those delivered: more than once. */
    repeated: Schema.Int,
    /** Of those delivered: recorded by a former owner. */
    late: Schema.Int,
    deadLettered: Schema.Int,
    reasons: Counts,
    discarded: Schema.Int,
    /** Found where they wait, and in time. */
    pending: Schema.Int,
    overdue: Schema.Int,
    missing: Schema.Int
  }),
  plans: Schema.Struct({
    recomputed: Schema.Int,
    unknown: Schema.Int,
    unknownUntil: Schema.optionalKey(Timestamp)
  }),
  /** Deliveries that plans left out, by reason. */
  skipped: Counts,
  /** Problems by kind. */
  problems: Counts,
  /** The number of problems that are listed one by one. */
  shown: Schema.Int,
  remarks: Schema.Array(
    Schema.Struct({
      kind: Schema.Literal("health-differs"),
      tenant: Schema.String,
      endpoint: Schema.String,
      says: Schema.String
    })
  ),
  cautions: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(["ids-without-tenant", "source-behind"]),
      tenant: Schema.String,
      events: Schema.Int,
      says: Schema.String
    })
  ),
  /** How long the audit took. */
  ms: Schema.Int
})
export type AuditReport = typeof AuditReport.Type

const rangeOf = ({ reach }: Audit): AuditReport["range"] => {
  const { firstEvent, lastEvent, since, tenant, until } = reach.scope
  return {
    firstEvent,
    lastEvent,
    ...(since === 0 ? {} : { since }),
    ...(until === Number.POSITIVE_INFINITY ? {} : { until }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(reach.since === 0 ? {} : { vouchedSince: reach.since })
  }
}

/** Returns the scope of an audit and its result, without the list of its problems. */
export const auditReport = (audit: Audit, ms: number): AuditReport => {
  const { books, judgement, reach } = audit
  const { problems, tally, verdict } = judgement
  const { history, ledger, planCheck } = books
  return {
    verdict,
    range: rangeOf(audit),
    events: {
      ...judgement.events,
      routerFloor: reach.routerFloor,
      routerLag: Math.max(0, reach.lastEvent - reach.routerFloor)
    },
    facts: {
      read: history.messages,
      to: history.next - 1,
      attempts: ledger.attempts,
      earlier: ledger.earlier
    },
    deliveries: { ...tally, reasons: Object.fromEntries(tally.reasons) },
    plans: {
      recomputed: planCheck.recomputed,
      unknown: planCheck.unknown,
      ...(planCheck.unknown === 0 ? {} : { unknownUntil: planCheck.unknownUntil })
    },
    skipped: Object.fromEntries(ledger.skipped),
    problems: Object.fromEntries(problems.counts),
    shown: problems.list.length,
    remarks: audit.remarks,
    cautions: audit.cautions,
    ms
  }
}

/** What is audited, and the proof of an earlier audit that is to be compared with what is read. */
export interface AuditRun extends Omit<AuditOptions, "marks"> {
  readonly against?: Proof | undefined
}

/**
 * Audits a range, and returns the report, the problems one by one (at most 10,000), and for a proof
 * of what was read the audit itself and the installation's id. Fails with Invalid where the range or
 * the proof cannot be meant. Notes when it was and what it came to, unless it is of one tenant.
 */
export const runAudit = Effect.fnUntraced(function* ({ against, ...options }: AuditRun) {
  const began = timers.monotonicMs()
  const installation = yield* readInstallation
  yield* checkAudit(options)
  if (against !== undefined) yield* checkProof(against, options, installation)
  const marks =
    against === undefined
      ? undefined
      : { events: against.events.last, history: against.history.last }
  const result = yield* audit({ ...options, marks })
  const problems: ReadonlyArray<AuditProblem> = result.judgement.problems.list
  const report = auditReport(result, Math.round(timers.monotonicMs() - began))
  const { range, verdict } = report
  if (range.tenant === undefined) yield* noteAudit(verdict, result.judgement.problems.total)
  return { audit: result, installation, report, problems }
})
