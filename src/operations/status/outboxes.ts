import { Clock, Effect, Schema } from "effect"
import { OutboxReport, readOutboxReports, silentAfterMs } from "../../cluster/outbox-reports.ts"

const { v: _, ...fields } = OutboxReport.fields

/** An outbox of a database, as its relay last told of it. */
export const OutboxView = Schema.Struct({
  ...fields,
  isSilent: Schema.Boolean.annotateKey({
    description:
      "Its relay has said nothing for longer than 30 s: it does not run, or has no broker."
  })
})
export type OutboxView = typeof OutboxView.Type

export const OutboxList = Schema.Struct({
  outboxes: Schema.Array(OutboxView).annotateKey({ description: "The outboxes." })
}).annotate({
  identifier: "OutboxList",
  description: "The outboxes of databases, as their relays last reported them."
})

/** @param now ms since the epoch. */
export const outboxView = ({ v: _, ...report }: OutboxReport, now: number): OutboxView => ({
  ...report,
  isSilent: now - report.at > silentAfterMs
})

/** Lists the outboxes that relays have told of, by name. */
export const listOutboxes = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis
  const reports = yield* readOutboxReports
  return { outboxes: reports.map((report) => outboxView(report, now)) }
})
