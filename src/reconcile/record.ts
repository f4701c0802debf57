import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { Failpoint } from "../broker/failpoint.ts"
import { publishOnce } from "../broker/publish-once.ts"
import { readUser } from "../broker/user.ts"
import {
  noteRecorded,
  type ReconcileReport,
  writeReconcileReport
} from "../cluster/reconcile-reports.ts"
import { type Fact, factResult } from "../domain/fact.ts"
import { sourceKey } from "../domain/source.ts"
import { nobody } from "../domain/token.ts"
import { appendFact } from "../history/facts.ts"
import { countText } from "../text/quantities.ts"

/** Whether the history has a fact of the id. */
const isRecorded = Effect.fnUntraced(function* (
  { endpoint, kind, tenant }: Fact,
  id: string,
  after: number
) {
  const { names, readMessage } = yield* Broker
  const next_by_subj = names.subjects.fact(tenant, endpoint, factResult(kind), kind)
  let seq = after
  while (true) {
    const next = { seq: seq + 1, next_by_subj }
    const message = yield* readMessage(`look for a fact in ${names.history}`, names.history, next)
    if (message === null || message.header.get("Nats-Msg-Id") === id) return message !== null
    seq = message.seq
  }
})

/** @param tried whether the facts may be in the history already. */
const recordFacts = Effect.fnUntraced(function* (report: ReconcileReport, tried: boolean) {
  const { source: id, startedAt, tenant, unrecorded } = report
  if (unrecorded === undefined) return
  const reached = yield* Failpoint
  const broker = yield* Broker
  for (const fact of unrecorded.facts) {
    const factId = `${fact.kind}.${sourceKey({ tenant, id })}.${startedAt}`
    yield* publishOnce(
      Effect.provideService(appendFact(fact, factId), Broker, broker),
      Effect.provideService(isRecorded(fact, factId, unrecorded.after), Broker, broker),
      { tried }
    )
    reached("reconciliation-recorded")
  }
  yield* noteRecorded(report)
})

/**
 * Records what a report has found, if the process that wrote it was killed before it could. Facts
 * that are in the history already are not appended again.
 */
export const finishRecording = (report: ReconcileReport) => recordFacts(report, true)

/** The facts of a report. */
const factsOf = (
  { alertAbove, endedAt: at, found, problem, provider, source, tenant }: ReconcileReport,
  asked: Pick<Fact, "by" | "user">
): ReadonlyArray<Fact> => {
  const factOf = (
    kind: Extract<Fact["kind"], "reconciled" | "provider-lost" | "reconcile-failed">,
    reason?: string
  ): Fact => ({
    ...{ v: 1, kind, at, tenant, endpoint: nobody, ...asked, reason, reconciled: found },
    incoming: { source, provider }
  })
  const { listed, missing } = found
  const lost = `${countText(missing)} of ${countText(listed)} events had not come in`
  return [
    problem === undefined ? factOf("reconciled") : factOf("reconcile-failed", problem),
    ...(missing > alertAbove ? [factOf("provider-lost", lost)] : [])
  ]
}

/**
 * Writes a report, and appends its facts to the history. The report is stored first, with the facts:
 * if this process is killed in between, the next one records them, and finds none of it again.
 *
 * @param report its `startedAt` is another one for each reconciliation of a source.
 * @param by who asked for it.
 */
export const record = Effect.fnUntraced(function* (report: ReconcileReport, by?: string) {
  const { names, streamInfo } = yield* Broker
  const reached = yield* Failpoint
  const facts = factsOf(report, { by, user: yield* readUser })
  const { state } = yield* streamInfo(`look at ${names.history}`, names.history)
  const reported = { ...report, unrecorded: { facts, after: state.last_seq } }
  yield* writeReconcileReport(reported)
  reached("reconciliation-reported")
  yield* recordFacts(reported, false)
})
