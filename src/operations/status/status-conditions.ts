import type { RaisedAlert } from "../../alerts/alert-store.ts"
import { isLasting } from "../../broker/restrictions.ts"
import { divergenceText } from "../../broker/sources/divergence.ts"
import { isNew, silentSources } from "../../broker/survey-streams.ts"
import { isClosed } from "../../broker/topology.ts"
import type { Survey } from "../../delivery/introspection/survey.ts"
import { alertText } from "../../text/alert-text.ts"
import { plainText } from "../../text/plain-text.ts"
import { countText, plural, spanText, zonedTime } from "../../text/quantities.ts"
import { raisedSubject, raisedView } from "../alerts/alerts.ts"
import type { LastAudit } from "../audit/run-audit.ts"
import {
  type Condition,
  type Conditions,
  conditionIf,
  haveText,
  routingConditions,
  workerConditions
} from "./conditions.ts"
import { gatewayNotices, outboxNotices, reconcileNotices, refusingNotices } from "./incoming.ts"
import { waitingIn } from "./status-sums.ts"
import { storageConditions } from "./storage-conditions.ts"

const hour = 3_600_000
/** How long the last audit counts, ms: a standing one is never that old. */
const auditCountsMs = 24 * hour

/** Returns a few names, and the number of the others. */
const namesText = (names: ReadonlyArray<string>): string =>
  names.length <= 3
    ? names.join(", ")
    : `${names.slice(0, 2).join(", ")} and ${names.length - 2} more`

const aboutStreams = ({ streams }: Survey): ReadonlyArray<Condition> => {
  const named = (state: string) =>
    streams.filter((stream) => stream.state === state).map(({ name }) => name)
  const leaderless = named("leaderless")
  const missing = named("missing")
  return [
    ...conditionIf(
      leaderless.length > 0,
      "stream-without-leader",
      `${namesText(leaderless)} ${haveText(leaderless)} no leader, so nothing can be stored there: bring the missing servers of the cluster back; a server whose disk was full needs free space and a restart`
    ),
    ...conditionIf(
      missing.length > 0,
      "stream-missing",
      `${namesText(missing)} ${missing.length === 1 ? "is" : "are"} missing: run \`petrel init\`, which makes ${missing.length === 1 ? "it" : "them"} again and says what may be lost with ${missing.length === 1 ? "it" : "them"}, then restart the workers`
    )
  ]
}

/** Workers that run go on, so nothing else shows it before one has to start. */
const aboutLayout = ({ lacksLayout }: Survey): ReadonlyArray<Condition> =>
  conditionIf(
    lacksLayout === true,
    "layout-missing",
    "the record of the layout was removed from the bucket of workers, so no worker can start: run `petrel init`, which writes it again"
  )

/** They are closed while a restore makes them, or `petrel init` moves their subjects to another. */
const aboutClosed = ({ streams }: Survey): ReadonlyArray<Condition> => {
  const closed = streams.filter(({ info, name }) => isClosed(name, info?.config.subjects))
  return conditionIf(
    closed.length > 0,
    "stream-closed",
    `${namesText(closed.map(({ name }) => name))} ${closed.length === 1 ? "accepts" : "accept"} no messages, because the last step of a restore, or of a conversion to tenants' streams, is missing: run the same \`petrel restore\`, or \`petrel init --tenant-streams\`, again`
  )
}

const wereText = (of: ReadonlyArray<unknown>): string => (of.length === 1 ? "was" : "were")

interface Changed {
  readonly name: string
  readonly fields: ReadonlyArray<string>
}

const hasFewerCopies = ({ fields }: Changed): boolean => fields.includes("num_replicas")

/** Returns what else was changed: that copies are missing has a sentence of its own. */
const withoutCopies = (all: ReadonlyArray<Changed>): ReadonlyArray<Changed> =>
  all
    .map(({ fields, name }) => ({ name, fields: fields.filter((one) => one !== "num_replicas") }))
    .filter(({ fields }) => fields.length > 0)

/** What was changed with another tool so that it loses something, or holds it back. */
const aboutRestricted = ({
  bypass,
  bypassChanges = [],
  events,
  partitions,
  restricted = [],
  space
}: Survey): ReadonlyArray<Condition> => {
  const sealed = restricted.filter(({ fields }) => fields.some(isLasting))
  const others = withoutCopies(restricted.filter((stream) => !sealed.includes(stream)))
  const dropped = restricted.flatMap(({ tenants = [] }) => tenants)
  const lastingFields = [...new Set(sealed.flatMap(({ fields }) => fields.filter(isLasting)))]
  const fieldsOf = (all: ReadonlyArray<{ readonly fields: ReadonlyArray<string> }>) =>
    [...new Set(all.flatMap(({ fields }) => fields))].join(", ")
  const queues = partitions.map(({ partition, restrictions = [] }) => ({
    name: `partition ${partition}`,
    fields: restrictions
  }))
  const router = { name: "the routers", fields: events.restrictions }
  const consumers = withoutCopies([router, ...queues])
  const fewer = [
    ...restricted.filter(hasFewerCopies).map(({ name }) => name),
    ...(hasFewerCopies(router) ? ["the consumer of the routers"] : [])
  ]
  return [
    ...conditionIf(
      others.length > 0,
      "stream-changed",
      `${namesText(others.map(({ name }) => name))} ${wereText(others)} changed with another tool (${fieldsOf(others)}), so that messages are dropped, refused, not acknowledged or not found there: \`petrel init\` changes this back`
    ),
    ...conditionIf(
      fewer.length > 0,
      "stream-changed",
      `${namesText(fewer)} ${haveText(fewer)} fewer copies than other streams (num_replicas was changed with another tool), so that one lost server can stop delivery or take messages with it: \`petrel init\` changes this back`
    ),
    ...conditionIf(
      dropped.length > 0,
      "stream-changed",
      `the ${dropped.length === 1 ? "stream" : "streams"} of ${namesText(dropped)} ${dropped.length === 1 ? "was" : "were"} taken out of the sources of the event stream, so events that are published there are acknowledged and not delivered: \`petrel init --tenant-streams ${dropped.join(",")}\` takes ${dropped.length === 1 ? "it" : "them"} in again; where ${dropped.length === 1 ? "that tenant is" : "those tenants are"} to be removed, \`petrel init\` notes it`
    ),
    ...conditionIf(
      sealed.length > 0,
      "stream-sealed",
      `${namesText(sealed.map(({ name }) => name))} ${wereText(sealed)} made to refuse what Petrel has to do there (${lastingFields.join(", ")}), and the broker cannot undo this: once the content is no longer needed, remove ${sealed.length === 1 ? "the stream" : "the streams"}, run \`petrel init\`, which says what may be lost, then restart the workers`
    ),
    ...conditionIf(
      consumers.length > 0,
      "consumer-changed",
      `the ${consumers.length === 1 ? "consumer" : "consumers"} of ${namesText(consumers.map(({ name }) => name))} ${wereText(consumers)} changed with another tool (${fieldsOf(consumers)}), so that messages are held back there: \`petrel init\` changes this back`
    ),
    ...conditionIf(
      bypassChanges.length > 0,
      "consumer-changed",
      `the consumer ${bypass?.consumer} of ${space.events.name} was changed with another tool (${bypassChanges.join(", ")}), so that events that pass a flood are held back: remove it (\`nats consumer rm ${space.events.name} ${bypass?.consumer}\`), and a worker makes it again within seconds`
    )
  ]
}

/** What is said of endpoints is not complete where they were not counted. A missing stream is a problem of its own. */
const aboutUncounted = ({
  endpoints,
  endpointsUnread,
  streams
}: Survey): ReadonlyArray<Condition> =>
  conditionIf(
    endpoints === undefined && streams.every(({ state }) => state === "led"),
    "endpoints-not-counted",
    endpointsUnread === undefined
      ? "the endpoints are not counted yet, so it is not known which of them get nothing now: the first count of many endpoints takes longer than a status waits (20 s). A console continues its count: ask again"
      : `the endpoints cannot be read, so it is not known which of them get nothing now: ${endpointsUnread}`
  )

const aboutSources = ({ sources: [first, ...others] }: Survey): ReadonlyArray<Condition> =>
  first === undefined
    ? []
    : [
        {
          code: "source-diverged",
          text: `${divergenceText(first)}${others.length === 0 ? "" : `, and the same holds for ${plural(others.length, "other source")}`}: run \`petrel init\`, which restarts the copying`
        }
      ]

/** The broker begins to copy again by itself before a source is silent for so long, ms. */
const silentTooLongMs = 60_000

/** Publishers are acknowledged by the source: nothing else shows that nothing is delivered. */
const aboutSilentSources = ({ streams }: Survey): Conditions => {
  // That one is missing is said by itself.
  const missing = new Set(streams.flatMap(({ name, state }) => (state === "missing" ? name : [])))
  const silent = streams
    .flatMap(({ info, name: target }) =>
      info === undefined || isNew(info)
        ? []
        : silentSources(info).map((source) => ({ ...source, target }))
    )
    .filter(({ name }) => !missing.has(name))
  const text = silent
    .map(
      ({ name, silentMs, target }) =>
        `${target} has received nothing from ${plainText(name)} ${silentMs === undefined ? "yet" : `for ${spanText(silentMs)}`}`
    )
    .slice(0, 3)
    .join(", ")
  const isLong = silent.some(({ silentMs = 0 }) => silentMs > silentTooLongMs)
  const conditions = conditionIf(
    silent.length > 0,
    "source-silent",
    `${text}${silent.length > 3 ? `, and the same holds for ${plural(silent.length - 3, "other source")}` : ""}: messages that are published there are acknowledged, and wait to be copied. The broker resumes by itself within some 40 s; if this lasts, look at its log, and at the exports and imports of that account (nats.conf)`
  )
  return isLong ? { problems: conditions, notices: [] } : { problems: [], notices: conditions }
}

const aboutUnreadable = (survey: Survey): ReadonlyArray<Condition> => {
  const unreadable = waitingIn(survey).unreadable ?? 0
  return conditionIf(
    unreadable > 0,
    "unreadable",
    `${plural(unreadable, "waiting message")} cannot be read by this version and ${unreadable === 1 ? "is" : "are"} kept: run the newer version that wrote ${unreadable === 1 ? "it" : "them"}; \`petrel audit\` names each`
  )
}

/** An earlier commit made such streams again above the sequences that places can hold. */
const aboutInexactBacklogs = ({ partitions }: Survey): ReadonlyArray<Condition> => {
  const inexact = partitions.filter(({ isBacklogInexact }) => isBacklogInexact)
  const one = inexact.length === 1
  return conditionIf(
    inexact.length > 0,
    "backlog-inexact",
    `the ${one ? "backlog" : "backlogs"} of ${one ? "partition" : "partitions"} ${inexact.map(({ partition }) => partition).join(", ")} ${one ? "has" : "have"} sequences beyond 2^44, as an earlier version made ${one ? "it" : "them"} again, and up to half of what waits there is never sent: \`petrel audit\` names what was lost; let the rest end, stop the workers, remove the ${one ? "stream" : "streams"} (PETREL_BACKLOG_…), run \`petrel init\`, and start the workers`
  )
}

const aboutUnroutable = ({ at, unroutable }: Survey): ReadonlyArray<Condition> =>
  unroutable === undefined
    ? []
    : [
        {
          code: "events-unroutable",
          text: `${plural(unroutable.count, "event")} of the last hour ${unroutable.count === 1 ? "goes" : "go"} to no endpoint, the last at ${zonedTime(unroutable.last.at, at)} (${plainText(unroutable.last.reason ?? "its subject is no event's")}), though the publisher got an acknowledgement: \`petrel history --kind unroutable\` names ${unroutable.count === 1 ? "it" : "them"}; correct the publisher`
        }
      ]

const aboutLostEndpoints = ({ endpoints }: Survey): ReadonlyArray<Condition> => {
  const { lost = 0 } = endpoints ?? {}
  return conditionIf(
    lost > 0,
    "endpoints-lost",
    `the bucket of endpoints was removed and made again, and ${plural(lost, "endpoint")} that the history has ${lost === 1 ? "is" : "are"} missing from it, so events wait to be routed: run \`petrel rebuild endpoints\``
  )
}

const aboutCopies = ({ streams }: Survey): ReadonlyArray<Condition> => {
  const clusters = streams.flatMap(({ info }) => info?.cluster ?? [])
  // A server may be silent about some of its copies only, as when its disk was full.
  const alive = new Set(
    clusters.flatMap(({ leader, replicas = [] }) => [
      leader,
      ...replicas.filter(({ current }) => current).map(({ name }) => name)
    ])
  )
  const servers = new Map<string, { offline: boolean; lag: number; streams: Array<string> }>()
  for (const { behind, name } of streams)
    for (const { lag, offline, server } of behind) {
      const known = servers.get(server) ?? { offline: false, lag: 0, streams: [] }
      known.offline ||= offline && !alive.has(server)
      known.lag = Math.max(known.lag, lag)
      known.streams.push(name)
      servers.set(server, known)
    }
  return [...servers].map(([server, { lag, offline, streams }]) => ({
    code: offline ? "copy-offline" : "copy-behind",
    text: offline
      ? `server ${server} is offline or does not answer, so ${plural(streams.length, "stream")} ${streams.length === 1 ? "has" : "have"} one copy fewer: bring it back before another fails; a server whose disk was full needs free space and a restart`
      : `server ${server} is ${lag === 0 ? "" : `up to ${plural(lag, "message")} `}behind with its copies of ${namesText(streams)}: if this lasts, look at its log; a server whose disk was full needs free space and a restart`
  }))
}

/** Maximum number of tenants whose alerts are shown one by one: a common cause raises them for all. */
const mostTenants = 5

const isCritical = ({ alert }: RaisedAlert): boolean => alert.level === "critical"

/** Returns the alerts about the first tenants, the critical ones first, and the number of the others. */
const aboutTenants = (raised: ReadonlyArray<RaisedAlert>) => {
  const all = raised.toSorted((a, b) => Number(isCritical(b)) - Number(isCritical(a)))
  const shown = all.length <= mostTenants + 1 ? all : all.slice(0, mostTenants)
  const others = all.slice(shown.length)
  const critical = others.filter(isCritical).length
  const tenants = new Set(others.map(({ tenant }) => tenant)).size
  return {
    shown,
    others: conditionIf(
      others.length > 0,
      "more-alerts",
      `${countText(others.length)} more alerts are raised about ${plural(tenants, "tenant")}${critical === 0 ? "" : `, ${countText(critical)} of them critical`}: \`petrel alerts list\` names them`
    )
  }
}

/** The alert with what is in quarantine now: its own count is renewed once a minute. */
const counted = ({ alert, tenant }: RaisedAlert, { incoming }: Survey): RaisedAlert["alert"] =>
  alert.name !== "quarantined" || incoming === undefined
    ? alert
    : { ...alert, currentValue: incoming.quarantined.get(tenant) ?? 0 }

/**
 * Returns the raised alerts about the system and tenants. Endpoints are reported by their circuits.
 * What an audit has found missing is a problem.
 */
const aboutAlerts = (survey: Survey): Conditions => {
  const { alerts, at } = survey
  const isMissing = ({ alert }: RaisedAlert) => alert.name === "deliveries-missing"
  const isOfTenant = ({ alert }: RaisedAlert) => alert.about === "tenant"
  const { others, shown } = aboutTenants(alerts.filter(isOfTenant))
  const named = [...alerts.filter((raised) => !isMissing(raised) && !isOfTenant(raised)), ...shown]
  return {
    problems: alerts.filter(isMissing).map(({ alert }) => ({
      code: "deliveries-missing",
      text: `an audit found something missing (last day, since ${zonedTime(alert.raisedAt, at)}): \`petrel history --kind missing\` and \`petrel audit\` name it, and \`petrel replay\` sends it`
    })),
    notices: [
      ...named.map((raised) => ({
        code: "alert-raised",
        text: `${raisedSubject(raisedView(raised))} (${raised.alert.name}, since ${zonedTime(raised.alert.raisedAt, at)}): ${alertText(counted(raised, survey))}`
      })),
      ...others
    ]
  }
}

/** Names the last audit if it found problems. What it found missing has an alert, which says more. */
export const auditNotices = (
  { alerts, at }: Survey,
  audit: LastAudit | undefined
): ReadonlyArray<Condition> =>
  audit === undefined ||
  audit.verdict !== "problems" ||
  at - audit.at > auditCountsMs ||
  alerts.some(({ alert }) => alert.name === "deliveries-missing")
    ? []
    : [
        {
          code: "audit-problems",
          text: `the last audit found ${plural(audit.problems, "problem")} (${zonedTime(audit.at, at)}): \`petrel audit\` names ${audit.problems === 1 ? "it" : "them"}`
        }
      ]

const aboutDeliveries = ({ at, dead, endpoints }: Survey): ReadonlyArray<Condition> => {
  const lastHour = dead.lastHour ?? 0
  const { open = 0, suspended = 0, unreadable = 0 } = endpoints?.counts ?? {}
  const { longestOpen = [] } = endpoints ?? {}
  const { incomplete = 0 } = endpoints ?? {}
  const [worst] = longestOpen
  const name = `${worst?.tenant}/${worst?.endpoint}`
  return [
    ...(worst === undefined
      ? []
      : [
          {
            code: "circuit-open",
            text: `${plural(open, "endpoint")} ${open === 1 ? "has an open circuit" : "have open circuits"}${open === 1 ? "," : ", the longest"} ${name} since ${zonedTime(worst.since, at)} (${plainText(worst.why)}): see \`petrel endpoint show ${name}\``
          }
        ]),
    ...conditionIf(
      suspended > 0,
      "endpoint-suspended",
      `${plural(suspended, "endpoint")} ${suspended === 1 ? "is" : "are"} suspended, and the deliveries that wait there expire: \`petrel endpoint list\` names them, \`petrel endpoint resume\` sends the deliveries`
    ),
    ...conditionIf(
      incomplete > 0,
      "endpoint-incomplete",
      `${plural(incomplete, "endpoint")} ${incomplete === 1 ? "was" : "were"} made again without a URL, secret or header that the history does not hold, and ${incomplete === 1 ? "is" : "are"} paused: \`petrel endpoint list --state paused\` names them, \`petrel endpoint show\` says what is missing; set it, then run \`petrel endpoint resume\``
    ),
    ...conditionIf(
      unreadable > 0,
      "endpoint-unreadable",
      `the configuration of ${plural(unreadable, "endpoint")} cannot be read: \`petrel endpoint list\` names them; remove and add them again`
    ),
    ...conditionIf(
      lastHour > 0,
      "dead-letters",
      `${plural(lastHour, "delivery", "deliveries")} ended without success since ${zonedTime(at - hour, at)}: see \`petrel dead list --since 1h\``
    )
  ]
}

/** Returns all problems and notices. */
export const conditionsOf = (survey: Survey): Conditions => {
  const workers = workerConditions(survey)
  const storage = storageConditions(survey)
  const routing = routingConditions(survey)
  const alerts = aboutAlerts(survey)
  const silent = aboutSilentSources(survey)
  return {
    problems: [
      ...aboutStreams(survey),
      ...aboutLayout(survey),
      ...aboutClosed(survey),
      ...aboutRestricted(survey),
      ...aboutLostEndpoints(survey),
      ...aboutSources(survey),
      ...silent.problems,
      ...workers.problems,
      ...routing.problems,
      ...aboutUnreadable(survey),
      ...aboutInexactBacklogs(survey),
      ...storage.problems,
      ...alerts.problems
    ],
    notices: [
      ...workers.notices,
      ...alerts.notices,
      ...aboutUncounted(survey),
      ...aboutUnroutable(survey),
      ...gatewayNotices(survey),
      ...refusingNotices(survey),
      ...reconcileNotices(survey),
      ...outboxNotices(survey),
      ...silent.notices,
      ...aboutCopies(survey),
      ...storage.notices,
      ...routing.notices,
      ...aboutDeliveries(survey)
    ]
  }
}
