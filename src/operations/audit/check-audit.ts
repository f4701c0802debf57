import type { StreamInfo } from "@nats-io/jetstream"
import { Clock, Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isNoSuchMessage } from "../../broker/broker-error.ts"
import type { Problem } from "../../domain/problem.ts"
import { Invalid } from "../../domain/problem.ts"
import type { Proof } from "../../history/audit/proof.ts"
import type { AuditRange } from "../../history/audit/reach.ts"
import { rangeProblems } from "../time-range.ts"

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
  const problems = [...rangeProblems(range, yield* Clock.currentTimeMillis)]
  if (problems.length === 0) problems.push(...untilProblems(range.until, state))
  if (tenant !== undefined && !(yield* isKnown(tenant)))
    problems.push({
      field: "tenant",
      message: `${tenant} is unknown: no endpoint, no event and no fact is of it`
    })
  if (problems.length > 0) return yield* new Invalid({ problems })
})

/**
 * Fails with Invalid where an audit cannot be compared with a proof.
 *
 * @param installation the id of this installation, where it has one.
 */
export const checkProof = Effect.fnUntraced(function* (
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
