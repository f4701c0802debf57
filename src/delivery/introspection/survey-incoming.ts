import type { StreamInfo } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { firstIncoming, type IntakeSurvey, surveyIntake } from "../../broker/survey-intake.ts"
import { countSince } from "../../broker/survey-streams.ts"
import { readValues, type StoredValue } from "../../broker/values.ts"
import { type GatewayReport, gatewayReportsIn } from "../../cluster/gateway-reports.ts"
import { type OutboxReport, outboxReportsIn } from "../../cluster/outbox-reports.ts"
import { type ReconcileReport, reconcileReportsIn } from "../../cluster/reconcile-reports.ts"
import { type Fact, factResult } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"
import { decodeFact } from "../../history/delivery-facts.ts"

/** What comes in from outside, and who takes it in. */
export interface IncomingSurvey extends IntakeSurvey {
  /** When the oldest event that it still has came in, ms since the epoch; null if it has none. */
  readonly oldestAt: number | null
  /** Messages that are no events yet; null if that is not known. */
  readonly notCopied: number | null
  readonly gateways: ReadonlyArray<GatewayReport>
  /** Sources whose webhooks nobody takes; absent if a gateway runs. */
  readonly unserved?: number
  readonly outboxes: ReadonlyArray<OutboxReport>
  readonly reconciled: ReadonlyArray<ReconcileReport>
}

/** Counts the sources that there are. */
const countSources = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.sources))
  // The value of a removed one is empty.
  return values.filter(({ text }) => text !== "").length
})

/**
 * Surveys what comes in; undefined where the installation has no intake.
 *
 * @param events what the broker says of the event stream.
 * @param workers the values of the bucket of workers.
 */
export const surveyIncoming = Effect.fnUntraced(function* (
  events: StreamInfo | undefined,
  workers: ReadonlyArray<StoredValue>
) {
  const { names } = yield* Broker
  const copies = events?.sources?.find(({ name }) => name === names.intake)
  if (copies === undefined) return undefined
  const [intake, first] = yield* Effect.all([surveyIntake, firstIncoming], { concurrency: 2 })
  if (intake === undefined) return undefined
  const gateways = gatewayReportsIn(workers)
  return {
    ...{ ...intake, notCopied: copies.lag ?? null },
    gateways,
    ...(gateways.length > 0 ? {} : { unserved: yield* countSources }),
    outboxes: outboxReportsIn(workers),
    reconciled: reconcileReportsIn(workers),
    oldestAt: first?.time.getTime() ?? null
  } satisfies IncomingSurvey
})

/** Events that were stored on subjects from which no plan can be made: nobody gets them. */
export interface UnroutableSurvey {
  readonly count: number
  readonly last: Pick<Fact, "at" | "event" | "reason" | "tenant">
}

/** Surveys the unroutable events since a time, ms since the epoch; undefined if there are none. */
export const surveyUnroutable = Effect.fnUntraced(function* (since: number) {
  const { names, readMessage } = yield* Broker
  const kind = "unroutable"
  const subject = names.subjects.fact("*", nobody, factResult(kind), kind)
  const found = yield* readMessage("look for unroutable events", names.history, {
    last_by_subj: subject
  })
  if (found === null || found.time.getTime() < since) return undefined
  const last = Option.getOrUndefined(decodeFact(found.string()))
  if (last === undefined) return undefined
  const count = Math.max(1, (yield* countSince(names.history, since, subject)) ?? 1)
  return { count, last } satisfies UnroutableSurvey
})
