import type { StreamInfo } from "@nats-io/jetstream"
import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isNoSuchMessage } from "../../broker/broker-error.ts"
import { brokerNow } from "../../broker/clock-watch.ts"
import { readInstallation } from "../../broker/installation.ts"
import { readValue, writeValue } from "../../broker/values.ts"
import { Invalid, type Problem } from "../../domain/problem.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { type Audit, type AuditOptions, audit } from "../../history/audit/audit.ts"
import type { AuditProblem } from "../../history/audit/problem.ts"
import type { Proof } from "../../history/audit/proof.ts"
import type { AuditRange } from "../../history/audit/reach.ts"
import { timers } from "../../time/timers.ts"
import { rangeProblems } from "../parameters.ts"

const untilProblems = (
  until: number | undefined,
  { first_ts, last_seq, messages }: StreamInfo["state"]
): ReadonlyArray<Problem> => {
  if (until === undefined || last_seq === 0) return []
  if (messages === 0)
    return [{ field: "until", message: "names a time of which no event is stored any more" }]
  const first = Date.parse(first_ts)
  return until >= first
    ? []
    : [
        {
          field: "until",
          message: `is before the first event that is stored, which is of ${new Date(first).toISOString()}`
        }
      ]
}

/** True if an endpoint, the settings, an event or a fact is of the tenant, or ever was. */
const isKnown = Effect.fnUntraced(function* (tenant: string) {
  const { names, readMessage, streamNames } = yield* Broker
  const { endpoints } = names.buckets
  const places = [
    [`KV_${endpoints}`, `$KV.${endpoints}.${tenant}.>`],
    [`KV_${endpoints}`, `$KV.${endpoints}.${tenant}`],
    [names.events, names.subjects.eventsOf(tenant)],
    [names.history, names.subjects.fact(tenant, "*", "*", "*")]
  ] as const
  const existing = new Set(yield* streamNames("list the streams"))
  for (const [stream, subject] of places) {
    if (!existing.has(stream)) continue
    const found = yield* readMessage(`look for tenant ${tenant} in ${stream}`, stream, {
      last_by_subj: subject
    }).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null)))
    if (found !== null) return true
  }
  return false
})

/** Fails with Invalid where an audit of the range would look at nothing that can be meant. */
export const checkAudit = Effect.fnUntraced(function* ({ tenant, ...range }: AuditRange) {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the events", names.events)
  const problems = [...rangeProblems(range, yield* brokerNow)]
  if (problems.length === 0) problems.push(...untilProblems(range.until, state))
  if (tenant !== undefined && !(yield* isKnown(tenant)))
    problems.push({
      field: "tenant",
      message: `${tenant} is unknown: it has no endpoint, no event and no fact`
    })
  if (problems.length > 0) return yield* new Invalid({ problems })
})

/**
 * Fails with Invalid where an audit cannot be compared with a proof.
 *
 * @param installation the id of this installation, where it has one.
 */
const checkProof = Effect.fnUntraced(function* (
  proof: Proof,
  { tenant }: AuditRange,
  installation: string | undefined
) {
  const problem =
    installation !== undefined &&
    proof.installation !== undefined &&
    proof.installation !== installation
      ? `is the proof of another installation: it is of ${proof.installation}, and this is ${installation}`
      : proof.tenant !== tenant
        ? `is the proof of ${proof.tenant ?? "all tenants"}: audit the same to compare with it`
        : undefined
  if (problem !== undefined)
    return yield* new Invalid({ problems: [{ field: "against", message: problem }] })
})

/** What the last audit of all tenants came to. Times in ms since the epoch. */
export const LastAudit = Schema.Struct({
  at: Timestamp.annotateKey({ description: "When it ended." }),
  verdict: Schema.Literals(["clean", "problems", "unvouched"]),
  problems: Schema.Int.annotateKey({ description: "Number of problems." })
})
export type LastAudit = typeof LastAudit.Type

/** Key in the bucket of workers, which holds what all need to know of each other. */
const key = "audit.last"
/** An auditor without permission to write gets no answer, ms. */
const maxWriteMs = 1_000

const Stored = Schema.fromJsonString(LastAudit)
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeSync(Stored)

/** Returns the last audit; undefined if none was run, or it cannot be read. */
export const readLastAudit = Effect.gen(function* () {
  const { names } = yield* Broker
  const entry = yield* readValue(names.buckets.workers, key)
  return entry === undefined ? undefined : Option.getOrUndefined(decode(entry.string()))
})

/**
 * Notes what an audit of all tenants came to, for whoever watches that audits are run. If that is
 * not possible, it is left out.
 *
 * @param problems how many it found.
 */
export const noteAudit = Effect.fnUntraced(function* (
  verdict: LastAudit["verdict"],
  problems: number
) {
  const { names } = yield* Broker
  const audit: LastAudit = { at: timers.wallMs(), verdict, problems }
  yield* writeValue(names.buckets.workers, key, encode(audit)).pipe(
    Effect.timeoutOption(maxWriteMs),
    Effect.catch((error) =>
      Effect.logDebug("the audit's verdict could not be noted", { why: error.message })
    )
  )
})

const Counts = Schema.Record(Schema.String, Schema.Int)

/** The scope of an audit and its result. Times in ms since the epoch. */
export const AuditReport = Schema.Struct({
  verdict: Schema.Literals(["clean", "problems", "unvouched"]).annotateKey({
    description:
      "`unvouched`: nothing is wrong in the streams, but they do not reach back far enough."
  }),
  range: Schema.Struct({
    firstEvent: Schema.Int,
    lastEvent: Schema.Int,
    since: Schema.optionalKey(Timestamp),
    until: Schema.optionalKey(Timestamp),
    tenant: Schema.optionalKey(Schema.String).annotateKey({
      description: "The name of the tenant."
    }),
    vouchedSince: Schema.optionalKey(Timestamp).annotateKey({
      description: "The streams no longer hold everything from before."
    })
  }),
  events: Schema.Struct({
    stored: Schema.Int,
    unreached: Schema.Int.annotateKey({ description: "Not routed yet." }),
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
    repeated: Schema.Int.annotateKey({ description: "Of those delivered: more than once." }),
    late: Schema.Int.annotateKey({
      description: "Of those delivered: recorded by a former owner."
    }),
    deadLettered: Schema.Int.annotateKey({ description: "Deliveries that ended as dead letters." }),
    reasons: Counts,
    discarded: Schema.Int.annotateKey({ description: "Dead letters that were discarded." }),
    pending: Schema.Int.annotateKey({ description: "Found where they wait, and in time." }),
    overdue: Schema.Int,
    missing: Schema.Int
  }),
  plans: Schema.Struct({
    recomputed: Schema.Int,
    unknown: Schema.Int,
    unknownUntil: Schema.optionalKey(Timestamp)
  }),
  skipped: Counts.annotateKey({ description: "Deliveries that plans left out, by reason." }),
  problems: Counts.annotateKey({ description: "Problems by kind." }),
  shown: Schema.Int.annotateKey({
    description: "The number of problems that are listed one by one."
  }),
  remarks: Schema.Array(
    Schema.Struct({
      kind: Schema.Literal("health-differs"),
      tenant: Schema.String.annotateKey({
        description: "The name of the tenant; `_` where it is about several."
      }),
      endpoint: Schema.String.annotateKey({
        description: "The id of the endpoint; `_` where it is about several."
      }),
      says: Schema.String
    })
  ),
  cautions: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(["ids-without-tenant", "restored", "source-behind"]),
      tenant: Schema.String.annotateKey({
        description: "The name of the tenant; `_` where it is about several, or all."
      }),
      events: Schema.Int,
      says: Schema.String
    })
  ),
  ms: Schema.Int.annotateKey({ description: "How long the audit took." })
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
const auditReport = (audit: Audit, ms: number): AuditReport => {
  const { reading, judgement, reach } = audit
  const { problems, tally, verdict } = judgement
  const { history, ledger, planCheck } = reading
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
