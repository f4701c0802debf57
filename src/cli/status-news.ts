import { resumeBelowShare } from "../broker/room.ts"
import { defaultTtl } from "../cluster/ownership.ts"
import type { PartitionSurvey, Survey } from "../delivery/introspection/survey.ts"
import { alertText } from "../history/alert-text.ts"
import { plainText } from "../history/line.ts"
import { spanText } from "../history/span.ts"
import { bytesText } from "../operations/text/bytes.ts"
import { countText, percentText, plural } from "../operations/text/number-format.ts"
import { moment } from "../operations/text/time.ts"
import { subjectText } from "./alerts-list.ts"
import { waitingRoom, waitingSums } from "./status-sums.ts"

/** A problem or notice, with what to do about it. */
export interface News {
  /** A stable code for programs. */
  readonly code: string
  readonly text: string
}

export interface AllNews {
  /** Work has stopped or is about to stop until an operator acts. */
  readonly problems: ReadonlyArray<News>
  /** Notable states, and states that pass without action. */
  readonly notices: ReadonlyArray<News>
}

/** Time after the start of a worker within which partitions are assigned, ms. */
const takingOver = 20_000
/** Number of events that may be queued in a healthy router under load. */
const queueWorthNoting = 1_000
const hour = 3_600_000

/** Formats numbers as ranges: `0-3, 5`. */
export const rangesText = (numbers: ReadonlyArray<number>): string => {
  const ranges: Array<[from: number, to: number]> = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last !== undefined && last[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ")
}

const partitionsText = (partitions: ReadonlyArray<PartitionSurvey>): string =>
  `partition${partitions.length === 1 ? "" : "s"} ${rangesText(partitions.map(({ partition }) => partition))}`

const haveText = (of: ReadonlyArray<unknown>): string => (of.length === 1 ? "has" : "have")

/** Returns a few names, and the number of the others. */
const namesText = (names: ReadonlyArray<string>): string =>
  names.length <= 3
    ? names.join(", ")
    : `${names.slice(0, 2).join(", ")} and ${names.length - 2} more`

const aboutStreams = ({ streams }: Survey): ReadonlyArray<News> => {
  const named = (state: string) =>
    streams.filter((stream) => stream.state === state).map(({ name }) => name)
  const leaderless = named("leaderless")
  const missing = named("missing")
  return [
    ...(leaderless.length === 0
      ? []
      : [
          {
            code: "stream-without-leader",
            text: `${namesText(leaderless)} ${haveText(leaderless)} no leader, so nothing can be stored there: bring the missing servers of the cluster back`
          }
        ]),
    ...(missing.length === 0
      ? []
      : [
          {
            code: "stream-missing",
            text: `${namesText(missing)} ${missing.length === 1 ? "is" : "are"} missing: run \`petrel init\``
          }
        ])
  ]
}

const aboutWorkers = ({ at, change, partitions, workers }: Survey): AllNews => {
  if (change !== undefined)
    return {
      problems: [
        {
          code: "repartitioning",
          text: `the number of partitions is being changed from ${change.from} to ${change.to}, and nothing is delivered meanwhile: wait for \`petrel repartition ${change.to}\` or, where it was broken off, run it again`
        }
      ],
      notices: []
    }
  if (workers === undefined) return { problems: [], notices: [] }
  const alive = workers.flatMap(({ heartbeat }) => (heartbeat === undefined ? [] : [heartbeat]))
  const staying = alive.filter(({ leaving }) => leaving !== true)
  const delivering = staying.filter(({ roles }) => roles.includes("deliver"))
  const unowned = partitions.filter(({ owner }) => owner === undefined)
  if (alive.length === 0)
    return {
      problems: [
        {
          code: "no-worker",
          text: "no worker is running, so nothing is delivered: start one with `petrel worker`"
        }
      ],
      notices: []
    }
  const isStarting = delivering.some(({ startedAt }) => at - startedAt < takingOver)
  const isFresh = ({ unownedSince }: PartitionSurvey) =>
    delivering.length > 0 &&
    (unownedSince === undefined ? isStarting : at - unownedSince <= defaultTtl)
  const fresh = unowned.filter(isFresh)
  const stale = unowned.filter((partition) => !isFresh(partition))
  const [{ unownedSince } = {}] = stale
  const since = unownedSince === undefined ? "" : ` for ${spanText(at - unownedSince)}`
  const remedy =
    delivering.length === 0
      ? "start a worker with `petrel worker`"
      : "look at the logs of the workers, or start another with `petrel worker`"
  const silent = partitions.filter(({ owner, told }) => owner !== undefined && told === undefined)
  const [first] = silent
  return {
    problems: [
      ...(stale.length === 0
        ? []
        : [
            {
              code: "partition-without-owner",
              text: `${partitionsText(stale)} ${haveText(stale)} no owner${since}, so nothing there is delivered: ${remedy}`
            }
          ]),
      ...(staying.some(({ roles }) => roles.includes("router"))
        ? []
        : [
            {
              code: "no-router",
              text: "no worker routes events: start one with `petrel worker --roles router`"
            }
          ])
    ],
    notices: [
      ...(fresh.length === 0
        ? []
        : [
            {
              code: "partition-changing-hands",
              text: `${partitionsText(fresh)} ${haveText(fresh)} no owner yet: a worker takes over within ${spanText(defaultTtl)}`
            }
          ]),
      ...(first === undefined
        ? []
        : [
            {
              code: "owner-silent",
              text: `${plainText(first.owner ?? "")} has ${partitionsText(silent)} and does not answer: it is just taking over, or has died; if this stays, look at its log`
            }
          ])
    ]
  }
}

const aboutUnreadable = (survey: Survey): ReadonlyArray<News> => {
  const { unreadable = 0 } = waitingSums(survey)
  return unreadable === 0
    ? []
    : [
        {
          code: "unreadable",
          text: `${plural(unreadable, "waiting message")} cannot be read by this version and ${unreadable === 1 ? "is" : "are"} kept: run the newer version that wrote ${unreadable === 1 ? "it" : "them"}; \`petrel audit\` names each`
        }
      ]
}

/** Returns true if the given percentage of a limit is used. */
const isUsed = (bytes: number | undefined, limit: number | undefined, percent: number): boolean =>
  bytes !== undefined && limit !== undefined && bytes * 100 >= limit * percent

/** Percentages of a limit: about to reject writes, and worth a notice. */
const full = 95
const filling = 80

interface Filled {
  readonly code: string
  readonly text: string
  readonly of:
    | { readonly bytes: number | undefined; readonly limit: number | undefined }
    | undefined
}

const fullEvents = ({ at, room: { events } }: Survey): string => {
  const { bytes = 0, limit = 0, maxAge, name, oldestAt } = events
  const freed =
    maxAge === undefined || oldestAt === undefined
      ? ""
      : ` Its oldest events are removed from ${moment(oldestAt + maxAge, at)} on, ${spanText(maxAge)} old;`
  return `${name} is ${percentText(bytes, limit)} full (${bytesText(bytes)} of ${bytesText(limit)}), and refuses events when it is full; what it holds is delivered.${freed} to make room sooner, raise \`petrel init --event-bytes\``
}

/** A full history discards its oldest facts. This is not a problem, but shortens its reach. */
const aboutHistory = ({ at, room: { history } }: Survey): ReadonlyArray<News> => {
  const { bytes, limit, maxAge, name, oldestAt } = history
  if (!isUsed(bytes, limit, full) || oldestAt === undefined) return []
  const asked = maxAge === undefined ? "" : ` instead of ${spanText(maxAge)}`
  return [
    {
      code: "history-full",
      text: `${name} is full and drops its oldest facts: it goes back ${spanText(at - oldestAt)}${asked}, and nothing before can be audited; raise \`petrel init --history-bytes\``
    }
  ]
}

/** An event stream without a limit may take the storage that the engine needs to continue. */
const aboutUnbounded = ({ room: { events } }: Survey): ReadonlyArray<News> =>
  events.bytes === undefined || events.limit !== undefined
    ? []
    : [
        {
          code: "events-unbounded",
          text: `${events.name} has no limit: events can fill the broker's store, and then nothing is delivered either; give it half of the store with \`petrel init --event-bytes\``
        }
      ]

const aboutWaiting = (survey: Survey): ReadonlyArray<News> => {
  const { bytes, limit } = waitingRoom(survey)
  return bytes === undefined || limit === undefined || bytes < limit * resumeBelowShare
    ? []
    : [
        {
          code: "routing-held-back",
          text: `queues and backlogs take ${bytesText(bytes)}; at ${bytesText(limit)} events are not routed until some has gone out: look for large backlogs with \`petrel endpoint list\`, or raise \`petrel init --event-bytes\``
        }
      ]
}

/** Returns the tenants with the most dead letters, highest first. */
const mostOf = (byTenant: ReadonlyMap<string, number> | undefined): string => {
  if (byTenant === undefined || byTenant.size === 0) return ""
  const most = [...byTenant].sort(([, a], [, b]) => b - a)
  const named = most.slice(0, 3).map(([tenant, count]) => `${tenant} ${countText(count)}`)
  const others = most.length - named.length
  return ` (${named.join(", ")}${others === 0 ? "" : ` and ${plural(others, "other tenant")}`})`
}

const aboutRoom = (survey: Survey): AllNews => {
  const { account, dead, room } = survey
  const deadText = `the dead-letter stream is ${percentText(dead.bytes ?? 0, dead.limit ?? 0)} full${mostOf(dead.byTenant)}, and what ends then waits: make room with \`petrel dead discard\` or \`petrel init --dead-bytes\``
  const storageText = `the broker's storage is ${percentText(account?.bytes ?? 0, account?.limit ?? 0)} full, and when it is full, nothing is stored and nothing delivered: raise the account's max_file`
  const bounded: ReadonlyArray<Filled> = [
    { code: "events-full", text: fullEvents(survey), of: room.events },
    { code: "dead-letters-full", text: deadText, of: dead },
    { code: "storage-full", text: storageText, of: account }
  ]
  const isFull = ({ of }: Filled) => isUsed(of?.bytes, of?.limit, full)
  const isFilling = ({ of }: Filled) => isUsed(of?.bytes, of?.limit, filling)
  const news = ({ code, text }: Filled): News => ({ code, text })
  return {
    problems: [...bounded.filter(isFull).map(news), ...aboutWaiting(survey)],
    notices: [
      ...bounded.filter((one) => isFilling(one) && !isFull(one)).map(news),
      ...aboutHistory(survey),
      ...aboutUnbounded(survey)
    ]
  }
}

const aboutCopies = ({ streams }: Survey): ReadonlyArray<News> => {
  const servers = new Map<string, { offline: boolean; lag: number; streams: Array<string> }>()
  for (const { behind, name } of streams)
    for (const { lag, offline, server } of behind) {
      const known = servers.get(server) ?? { offline: false, lag: 0, streams: [] }
      known.offline ||= offline
      known.lag = Math.max(known.lag, lag)
      known.streams.push(name)
      servers.set(server, known)
    }
  return [...servers].map(([server, { lag, offline, streams }]) => ({
    code: offline ? "copy-offline" : "copy-behind",
    text: offline
      ? `server ${server} is offline, and ${plural(streams.length, "stream")} ${streams.length === 1 ? "has" : "have"} a copy less: bring it back before another fails`
      : `server ${server} is behind by up to ${countText(lag)} with ${namesText(streams)}: if this stays, look at its log`
  }))
}

/**
 * Returns the raised alerts about the system and tenants. Endpoints are reported by their circuits.
 */
const aboutAlerts = ({ alerts, at }: Survey): ReadonlyArray<News> =>
  alerts.map((raised) => ({
    code: "alert-raised",
    text: `${subjectText(raised)}: ${alertText(raised.alert)} (${raised.alert.name}, since ${moment(raised.alert.raisedAt, at)})`
  }))

const aboutDeliveries = ({ at, dead, endpoints, events }: Survey): ReadonlyArray<News> => {
  const { lastHour = 0 } = dead
  const { pending = 0 } = events
  const { longestOpen = [], open = 0, unreadable = 0 } = endpoints ?? {}
  const [worst] = longestOpen
  const name = `${worst?.tenant}/${worst?.endpoint}`
  return [
    ...(pending < queueWorthNoting
      ? []
      : [
          {
            code: "router-behind",
            text: `${plural(pending, "event")} wait to be routed: if they become more, start another worker`
          }
        ]),
    ...(worst === undefined
      ? []
      : [
          {
            code: "circuit-open",
            text: `${plural(open, "endpoint")} ${open === 1 ? "has an open circuit" : "have open circuits"}${open === 1 ? "," : ", the longest"} ${name} since ${moment(worst.since, at)} (${plainText(worst.why)}): see \`petrel endpoint show ${name}\``
          }
        ]),
    ...(unreadable === 0
      ? []
      : [
          {
            code: "endpoint-unreadable",
            text: `the configuration of ${plural(unreadable, "endpoint")} cannot be read: \`petrel endpoint list\` names them; remove and add them again`
          }
        ]),
    ...(lastHour === 0
      ? []
      : [
          {
            code: "dead-letters",
            text: `${plural(lastHour, "delivery", "deliveries")} ended without success since ${moment(at - hour, at)}: see \`petrel dead list --since 1h\``
          }
        ])
  ]
}

/** Returns all problems and notices. */
export const newsOf = (survey: Survey): AllNews => {
  const workers = aboutWorkers(survey)
  const room = aboutRoom(survey)
  return {
    problems: [
      ...aboutStreams(survey),
      ...workers.problems,
      ...aboutUnreadable(survey),
      ...room.problems
    ],
    notices: [
      ...workers.notices,
      ...aboutAlerts(survey),
      ...aboutCopies(survey),
      ...room.notices,
      ...aboutDeliveries(survey)
    ]
  }
}
