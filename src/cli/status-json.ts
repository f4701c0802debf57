import type { StreamRoom, Survey } from "../delivery/introspection/survey.ts"
import { shareOf } from "../operations/text/number-format.ts"
import { newsOf } from "./status-news.ts"
import {
  copiesOf,
  lastHourOf,
  retriesIn,
  storedBytes,
  waitingRoom,
  waitingSums
} from "./status-sums.ts"

const tenths = (ms: number | undefined): number | null =>
  ms === undefined ? null : Math.round(ms * 10) / 10

const lastHourJson = (survey: Survey): object | null => {
  const hour = lastHourOf(survey)
  if (hour === undefined) return null
  const { attempts, delivered, p50, p95, since } = hour
  return {
    since,
    attempts,
    delivered,
    successRate: shareOf(delivered, attempts),
    p50Ms: tenths(p50),
    p95Ms: tenths(p95)
  }
}

const deliveriesJson = (survey: Survey): object => {
  const waiting = waitingSums(survey)
  const { all, answering, ackPending, backlog, fresh, inFlight, inLine, retries, scheduled } =
    waiting
  const told = (count: number) => (answering === 0 ? null : count)
  return {
    waiting: all,
    new: fresh,
    handedOut: ackPending,
    inFlight: told(inFlight),
    inLine: told(inLine),
    retries: told(retries),
    scheduled,
    backlog,
    unreadable: waiting.unreadable ?? null,
    partitionsAnswering: answering
  }
}

const streamRoomJson = ({ bytes, limit, oldestAt }: StreamRoom): object => ({
  bytes: bytes ?? null,
  limitBytes: limit ?? null,
  oldestAt: oldestAt ?? null
})

const roomJson = (survey: Survey): object => {
  const { account, dead, room } = survey
  const waiting = waitingRoom(survey)
  return {
    events: streamRoomJson(room.events),
    history: streamRoomJson(room.history),
    deadLetters: { bytes: dead.bytes ?? null, limitBytes: dead.limit ?? null },
    queues: { bytes: room.queues ?? null },
    backlogs: { bytes: room.backlogs ?? null },
    waiting: { bytes: waiting.bytes ?? null, limitBytes: waiting.limit ?? null },
    account: { bytes: account?.bytes ?? null, limitBytes: account?.limit ?? null }
  }
}

const partitionsJson = ({ partitions }: Survey): ReadonlyArray<object> =>
  partitions.map((partition) => ({
    partition: partition.partition,
    owner: partition.owner ?? null,
    ...(partition.owner === undefined ? { unownedSince: partition.unownedSince ?? null } : {}),
    answers: partition.told !== undefined,
    new: partition.new ?? null,
    handedOut: partition.ackPending ?? null,
    inFlight: partition.told?.inFlight ?? null,
    inLine: partition.told?.inLine ?? null,
    retries: retriesIn(partition) ?? null,
    scheduled: partition.scheduled ?? null,
    backlog: partition.backlog ?? null,
    unreadable: partition.told?.unreadable ?? null,
    endpointsWithBacklog: partition.backlogs ?? null
  }))

/**
 * Returns the state of an installation as one object. Times are in ms since the epoch, sizes in
 * bytes. Values for which no owner answers are null.
 */
export const statusJson = (survey: Survey): object => {
  const { account, at, cluster, dead, endpoints, events, oldest, streams, version, workers } =
    survey
  const { longestOpen: _, ...states } = endpoints ?? { longestOpen: [] }
  const { notices, problems } = newsOf(survey)
  return {
    at,
    broker: {
      version,
      cluster: cluster ?? null,
      replicas: copiesOf(survey),
      storedBytes: storedBytes(survey),
      accountBytes: account?.bytes ?? null,
      accountLimitBytes: account?.limit ?? null,
      streamsInTrouble: streams
        .filter(({ behind, state }) => state !== "led" || behind.length > 0)
        .map(({ behind, name, state }) => ({ name, state, copiesBehind: behind }))
    },
    room: roomJson(survey),
    events: {
      stored: events.stored ?? null,
      waitingForRouter: events.pending ?? null,
      inRouter: events.inRouter ?? null
    },
    deliveries: deliveriesJson(survey),
    oldestWaiting: oldest ?? null,
    repartition:
      survey.change === undefined ? null : { from: survey.change.from, to: survey.change.to },
    partitions: partitionsJson(survey),
    endpoints:
      endpoints === undefined ? null : { ...states, withBacklog: waitingSums(survey).backlogs },
    workers:
      workers?.map(({ heartbeat, id, partitions }) => ({
        worker: id,
        alive: heartbeat !== undefined,
        ...(heartbeat === undefined
          ? {}
          : {
              host: heartbeat.host,
              startedAt: heartbeat.startedAt,
              roles: heartbeat.roles,
              leaving: heartbeat.leaving === true
            }),
        partitions
      })) ?? null,
    lastHour: lastHourJson(survey),
    deadLetters: {
      stored: dead.stored ?? null,
      lastHour: dead.lastHour ?? null,
      bytes: dead.bytes ?? null,
      limitBytes: dead.limit ?? null,
      byTenant: dead.byTenant === undefined ? null : Object.fromEntries(dead.byTenant)
    },
    problems,
    notices
  }
}
