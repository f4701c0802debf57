import type { StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { firstIncoming, type IntakeSurvey, surveyIntake } from "../../broker/survey-intake.ts"
import {
  type GatewayReport,
  gatewayKeys,
  readGatewayReports
} from "../../cluster/gateway-reports.ts"
import { type OutboxReport, outboxKeys, readOutboxReports } from "../../cluster/outbox-reports.ts"
import {
  type ReconcileReport,
  readReconcileReports,
  reconcileKeys
} from "../../cluster/reconcile-reports.ts"

/** What comes in from outside, and who takes it in. */
export interface IncomingSurvey extends IntakeSurvey {
  /** When the oldest event that it still has came in, ms since the epoch; null if it has none. */
  readonly oldestAt: number | null
  /** Messages that are no events yet; null if that is not known. */
  readonly notCopied: number | null
  readonly gateways: ReadonlyArray<GatewayReport>
  readonly outboxes: ReadonlyArray<OutboxReport>
  readonly reconciled: ReadonlyArray<ReconcileReport>
}

/**
 * Reads the values of some keys in the bucket of workers; none where there is no such key, as the
 * leader says in one request. A reading takes four.
 */
const ifAny = Effect.fnUntraced(function* <A, E, R>(
  keys: string,
  read: Effect.Effect<ReadonlyArray<A>, E, R>
) {
  const { names, readMessage } = yield* Broker
  const bucket = names.buckets.workers
  const last_by_subj = `$KV.${bucket}.${keys}`
  const last = yield* readMessage(`look for ${keys} in ${bucket}`, `KV_${bucket}`, { last_by_subj })
  return last === null ? [] : yield* read
})

/**
 * Surveys what comes in; undefined where the installation has no intake.
 *
 * @param events what the broker says of the event stream.
 */
export const surveyIncoming = Effect.fnUntraced(function* (events: StreamInfo | undefined) {
  const { names } = yield* Broker
  const copies = events?.sources?.find(({ name }) => name === names.intake)
  if (copies === undefined) return undefined
  const intake = yield* surveyIntake
  if (intake === undefined) return undefined
  const { first, gateways, outboxes, reconciled } = yield* Effect.all(
    {
      first: firstIncoming,
      gateways: ifAny(gatewayKeys, readGatewayReports),
      outboxes: ifAny(outboxKeys, readOutboxReports),
      reconciled: ifAny(reconcileKeys, readReconcileReports)
    },
    { concurrency: 4 }
  )
  return {
    ...{ ...intake, notCopied: copies.lag ?? null, gateways, outboxes, reconciled },
    oldestAt: first?.time.getTime() ?? null
  } satisfies IncomingSurvey
})
