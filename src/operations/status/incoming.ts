import { Clock, Effect, Schema } from "effect"
import { GatewayReport } from "../../cluster/gateway-reports.ts"
import { OutboxReport, readOutboxReports, silentAfterMs } from "../../cluster/outbox-reports.ts"
import { brokenOff } from "../../cluster/reconcile-reports.ts"
import type { Survey } from "../../delivery/introspection/survey.ts"
import { Count, Filled } from "../../domain/installation.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { plainText } from "../../text/plain-text.ts"
import { plural, spanText, zonedTime } from "../../text/quantities.ts"
import type { Condition } from "./conditions.ts"

const { v: _outbox, ...outboxFields } = OutboxReport.fields

/** An outbox of a database, as its relay last told of it. */
export const OutboxView = Schema.Struct({
  ...outboxFields,
  isSilent: Schema.Boolean.annotateKey({
    description:
      "Its relay has not reported for longer than 30 s: it does not run, or cannot reach the broker."
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

const { v: _, ...gatewayFields } = GatewayReport.fields

/** What comes in from outside, and who takes it in. Times in ms since the epoch. */
export const IncomingState = Schema.Struct({
  events: Schema.Int.annotateKey({
    description: "Events that are recognised when they come again."
  }),
  notCopied: Count.annotateKey({ description: "Messages that have not become events yet." }),
  ...Filled.fields,
  oldestAt: Schema.NullOr(Timestamp).annotateKey({
    description: "When the oldest that is recognised came in."
  }),
  quarantined: Schema.Int.annotateKey({
    description: "Requests in quarantine, of all tenants."
  }),
  quarantinedByTenant: Schema.Record(Schema.String, Schema.Int).annotateKey({
    description: "Requests in quarantine, by tenant."
  }),
  gateways: Schema.Array(Schema.Struct(gatewayFields)).annotateKey({
    description: "The gateways that run, as they last reported."
  }),
  outboxes: Schema.Array(OutboxView).annotateKey({
    description: "The outboxes of databases, as their relays last reported."
  })
})
export type IncomingState = typeof IncomingState.Type

/** Hosts of gateways that are named. */
const maxNamedHosts = 3

/** Tenants that are named with what they have in quarantine. */
const maxNamedTenants = 100

/** What comes in; null where the installation has no intake, or it does not answer. */
export const incomingIn = ({ at, incoming }: Survey): IncomingState | null => {
  if (incoming === undefined) return null
  const { bytes, events, gateways, limitBytes, notCopied, oldestAt, outboxes, quarantined } =
    incoming
  const most = [...quarantined].toSorted(([, a], [, b]) => b - a).slice(0, maxNamedTenants)
  return {
    ...{ events, notCopied, bytes, limitBytes, oldestAt },
    quarantined: [...quarantined.values()].reduce((sum, count) => sum + count, 0),
    quarantinedByTenant: Object.fromEntries(most),
    gateways: gateways.map(({ v: _, ...gateway }) => gateway),
    outboxes: outboxes.map((report) => outboxView(report, at))
  }
}

/** Says how many gateways there are among some, and where the first of them run. */
const gatewaysText = (all: ReadonlyArray<{ readonly host: string }>): string => {
  const hosts = [...new Set(all.map(({ host }) => host))].slice(0, maxNamedHosts)
  return `${plural(all.length, "gateway")} (on ${plainText(hosts.join(", "))})`
}

/** Names the gateways that cannot store what comes. */
const silentGateways = ({ incoming }: Survey): ReadonlyArray<Condition> => {
  const silent = (incoming?.gateways ?? []).filter(({ problem }) => problem !== undefined)
  return silent.length === 0
    ? []
    : [
        {
          code: "gateway-silent",
          text: `the broker does not store what ${gatewaysText(silent)} took in, so providers are told to send it again (${plainText(silent.at(-1)?.problem ?? "")}): if this lasts, look at the log there; it tries again by itself`
        }
      ]
}

/** Names the gateways that do not see how sources change. */
const outdatedGateways = ({ incoming }: Survey): ReadonlyArray<Condition> => {
  const outdated = (incoming?.gateways ?? []).filter(({ isOutdated = false }) => isOutdated)
  return outdated.length === 0
    ? []
    : [
        {
          code: "gateway-outdated",
          text: `the broker does not show the sources to ${gatewaysText(outdated)}: requests of a source that was added are answered with 404, and one that was removed, or a secret that was dropped, still counts there. Give its user the permissions to read the sources (see nats.conf)`
        }
      ]
}

/** Says that providers post to nobody, or to gateways that store nothing or know no changes. */
export const gatewayNotices = (survey: Survey): ReadonlyArray<Condition> => {
  const count = survey.incoming?.unserved ?? 0
  return count === 0
    ? [...silentGateways(survey), ...outdatedGateways(survey)]
    : [
        {
          code: "no-gateway",
          text: `no gateway says that it runs, so nothing comes in from ${plural(count, "source")}: start one with \`petrel ingest\` (the log of one that runs says why it is not seen), or remove unused sources with \`petrel source remove\``
        }
      ]
}

/**
 * Names the sources that refuse all that comes: the alert has their number. A gateway knows only what
 * came to itself.
 */
export const refusingNotices = ({ at, incoming }: Survey): ReadonlyArray<Condition> => {
  const gateways = incoming?.gateways ?? []
  const sources = Map.groupBy(
    gateways.flatMap(({ host, refusing }) => refusing.map((one) => ({ ...one, host }))),
    ({ source, tenant }) => `${tenant}/${source}`
  )
  return [...sources].map(([name, refusals]) => {
    const since = Math.min(...refusals.map((one) => one.since))
    const reason = plainText(refusals.at(-1)?.reason ?? "")
    const hosts = [...new Set(refusals.map(({ host }) => host))].slice(0, maxNamedHosts)
    const where =
      refusals.length === gateways.length
        ? ""
        : ` to ${refusals.length} of ${gateways.length} gateways (on ${plainText(hosts.join(", "))})`
    return {
      code: "source-refusing",
      text: `${name} has refused every request${where} since ${zonedTime(since, at)} (${reason}): see \`petrel source show ${name}\``
    }
  })
}

/** Names an outbox that nobody publishes. The alert says so once that has lasted. */
export const outboxNotices = ({ at, incoming }: Survey): ReadonlyArray<Condition> => {
  const stuck = (incoming?.outboxes ?? [])
    .map((report) => outboxView(report, at))
    .filter(({ isSilent, problem }) => isSilent || problem !== undefined)
  const [first] = stuck
  if (first === undefined) return []
  const { isSilent, name, problem } = first
  const why = [
    ...(isSilent ? [`its relay has been silent for ${spanText(at - first.at)}`] : []),
    ...(problem === undefined ? [] : [plainText(problem)])
  ].join(", ")
  const which =
    stuck.length === 1
      ? `the outbox ${name} is not published (${why})`
      : `${plural(stuck.length, "outbox", "outboxes")} are not published, such as ${name} (${why}; \`petrel outbox status\` shows all)`
  return [
    {
      code: "outbox-unpublished",
      text: `${which}: the log of the relay says more; start one with \`petrel outbox\` if none runs, or run \`petrel outbox forget ${name}\` if the outbox is retired`
    }
  ]
}

/** Names the sources whose last reconciliation was broken off: what they lost since is not known. */
export const reconcileNotices = ({ at, incoming }: Survey): ReadonlyArray<Condition> =>
  brokenOff(incoming?.reconciled ?? [], at).map(({ endedAt, problem = "", source, tenant }) => ({
    code: "reconcile-failed",
    text: `the last reconciliation of ${tenant}/${source} was interrupted at ${zonedTime(endedAt, at)} (${plainText(problem)}): see \`petrel source show ${tenant}/${source}\``
  }))
