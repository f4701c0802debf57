import { Effect, Schema } from "effect"
import { isUnanswered } from "../../broker/until-answered.ts"
import { joinWriteErrors, readWriteErrors } from "../../broker/write-errors.ts"
import type { Survey } from "../../delivery/introspection/survey.ts"
import { readSurvey } from "../../delivery/introspection/survey.ts"
import type { StreamRoom } from "../../delivery/introspection/survey-room.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { shareOf } from "../../text/quantities.ts"
import { LastHour } from "../endpoints/endpoint-view.ts"
import { Conditions } from "./conditions.ts"
import { conditionsOf } from "./status-conditions.ts"
import {
  copiesOf,
  lastHourOf,
  retriesIn,
  storedBytes,
  waitingLimits,
  waitingSums
} from "./status-sums.ts"
import { WorkerState, workerState } from "./workers.ts"

const Count = Schema.NullOr(Schema.Int)
const Filled = Schema.Struct({ bytes: Count, limitBytes: Count })
const StreamRoomState = Schema.Struct({
  bytes: Count,
  limitBytes: Count,
  oldestAt: Schema.NullOr(Timestamp)
})

const Waiting = {
  /** Not delivered by the broker yet. */
  new: Count,
  /** Delivered by the broker and not acknowledged. */
  handedOut: Count,
  inFlight: Count,
  inLine: Count,
  /** Of those handed out, the ones that wait for a retry. */
  retries: Count,
  /** Retries that wait as schedules of the broker. */
  scheduled: Count,
  backlog: Count,
  /** Messages that no owner can read. */
  unreadable: Count
}

const PartitionState = Schema.Struct({
  partition: Schema.Int,
  owner: Schema.NullOr(Schema.String),
  /** Present if nobody owns it. */
  unownedSince: Schema.optionalKey(Schema.NullOr(Timestamp)),
  /** Whether its owner answers. */
  answers: Schema.Boolean,
  ...Waiting,
  endpointsWithBacklog: Count
})

const BrokerState = Schema.Struct({
  version: Schema.String,
  cluster: Schema.NullOr(Schema.String),
  /** Copies of each stream. */
  replicas: Schema.Int,
  /** Of all streams. Replicas are not counted. */
  storedBytes: Schema.Int,
  accountBytes: Count,
  accountLimitBytes: Count,
  /** What its servers say at `/healthz`; empty where their monitoring ports are not known. */
  health: Schema.Array(
    Schema.Struct({
      server: Schema.String,
      /** Null where it does not answer. */
      ok: Schema.NullOr(Schema.Boolean),
      says: Schema.String
    })
  ),
  streamsInTrouble: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      state: Schema.String,
      copiesBehind: Schema.Array(
        Schema.Struct({ server: Schema.String, offline: Schema.Boolean, lag: Schema.Int })
      )
    })
  )
})

const RoomState = Schema.Struct({
  events: StreamRoomState,
  history: StreamRoomState,
  deadLetters: Filled,
  queues: Filled,
  backlogs: Filled,
  account: Filled
})

const OldestState = Schema.Struct({
  tenant: Schema.String,
  endpoint: Schema.String,
  place: Schema.Literals(["queue", "schedule", "backlog"]),
  since: Timestamp
})

/** Endpoints by state. A disabled, suspended or paused endpoint counts in no other state. */
const EndpointCounts = Schema.Struct({
  total: Schema.Int,
  closed: Schema.Int,
  open: Schema.Int,
  halfOpen: Schema.Int,
  paused: Schema.Int,
  suspended: Schema.Int,
  disabled: Schema.Int,
  unreadable: Schema.Int,
  withBacklog: Schema.Int
})

const DeadLetterCounts = Schema.Struct({
  stored: Count,
  /** Neither sent again nor delivered late; also null where that takes too long to count. */
  open: Count,
  lastHour: Count,
  bytes: Count,
  limitBytes: Count,
  byTenant: Schema.NullOr(Schema.Record(Schema.String, Schema.Int))
})

/**
 * The state of an installation. Times in ms since the epoch. What is not known, as no owner
 * answers, is null.
 */
export const Status = Schema.Struct({
  at: Timestamp,
  broker: BrokerState,
  room: RoomState,
  events: Schema.Struct({
    stored: Count,
    waitingForRouter: Count,
    inRouter: Count,
    /** When the oldest event was stored that is not routed; null also if all are. */
    oldestUnroutedAt: Schema.NullOr(Timestamp),
    /** Events that left the stream before they were routed. */
    lost: Schema.Int
  }),
  deliveries: Schema.Struct({
    waiting: Schema.Int,
    ...Waiting,
    partitionsAnswering: Schema.Int
  }),
  /** The delivery that has waited longest. */
  oldestWaiting: Schema.NullOr(OldestState),
  /** The change of the number of partitions that is under way. */
  repartition: Schema.NullOr(Schema.Struct({ from: Schema.Int, to: Schema.Int })),
  partitions: Schema.Array(PartitionState),
  endpoints: Schema.NullOr(EndpointCounts),
  workers: Schema.NullOr(
    Schema.Array(Schema.Struct({ ...WorkerState.fields, partitions: Schema.Array(Schema.Int) }))
  ),
  /**
   * Attempts within the last hour, in the partitions whose owners answer. `since` is the start of
   * the shortest count: that partition had another owner before.
   */
  lastHour: Schema.NullOr(LastHour),
  deadLetters: DeadLetterCounts,
  ...Conditions.fields
})
export type Status = typeof Status.Type

/** The broker answers no request about its streams, as where its servers cannot elect a leader. */
export class NoLeader extends Schema.TaggedError<NoLeader>()("NoLeader", {}) {
  override get message() {
    return "the broker answers no request about its streams, as where its cluster has no leader, so nothing is stored or delivered: more than half of its servers must run, and one whose disk was full needs room and a restart"
  }
}

const tenths = (ms: number | undefined): number | null =>
  ms === undefined ? null : Math.round(ms * 10) / 10

const lastHourIn = (survey: Survey): Status["lastHour"] => {
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

const deliveriesIn = (survey: Survey): Status["deliveries"] => {
  const waiting = waitingSums(survey)
  const { all, answering, ackPending, backlog, fresh, inFlight, inLine, retries, scheduled } =
    waiting
  const ifAnswered = (count: number) => (answering === 0 ? null : count)
  return {
    waiting: all,
    new: fresh,
    handedOut: ackPending,
    inFlight: ifAnswered(inFlight),
    inLine: ifAnswered(inLine),
    retries: ifAnswered(retries),
    scheduled,
    backlog,
    unreadable: waiting.unreadable ?? null,
    partitionsAnswering: answering
  }
}

const streamRoom = ({ bytes, limit, oldestAt }: StreamRoom): typeof StreamRoomState.Type => ({
  bytes: bytes ?? null,
  limitBytes: limit ?? null,
  oldestAt: oldestAt ?? null
})

const roomIn = (survey: Survey): Status["room"] => {
  const { account, dead, room } = survey
  const limits = waitingLimits(survey)
  return {
    events: streamRoom(room.events),
    history: streamRoom(room.history),
    deadLetters: { bytes: dead.bytes ?? null, limitBytes: dead.limit ?? null },
    queues: { bytes: room.queues ?? null, limitBytes: limits.queues ?? null },
    backlogs: { bytes: room.backlogs ?? null, limitBytes: limits.backlogs ?? null },
    account: { bytes: account?.bytes ?? null, limitBytes: account?.limit ?? null }
  }
}

const partitionsIn = ({ partitions }: Survey): Status["partitions"] =>
  partitions.map((partition) => ({
    partition: partition.partition,
    owner: partition.owner ?? null,
    ...(partition.owner === undefined ? { unownedSince: partition.unownedSince ?? null } : {}),
    answers: partition.answer !== undefined,
    new: partition.new ?? null,
    handedOut: partition.ackPending ?? null,
    inFlight: partition.answer?.inFlight ?? null,
    inLine: partition.answer?.inLine ?? null,
    retries: retriesIn(partition) ?? null,
    scheduled: partition.scheduled ?? null,
    backlog: partition.backlog ?? null,
    unreadable: partition.answer?.unreadable ?? null,
    endpointsWithBacklog: partition.backlogs ?? null
  }))

const brokerIn = (survey: Survey): Status["broker"] => {
  const { account, cluster, streams, version } = survey
  return {
    version,
    cluster: cluster ?? null,
    replicas: copiesOf(survey),
    storedBytes: storedBytes(survey),
    accountBytes: account?.bytes ?? null,
    accountLimitBytes: account?.limit ?? null,
    health: (survey.health ?? []).map(({ isWell, says, server }) => ({
      ...{ server, says },
      ok: isWell ?? null
    })),
    streamsInTrouble: streams
      .filter(({ behind, state }) => state !== "led" || behind.length > 0)
      .map(({ behind, name, state }) => ({ name, state, copiesBehind: behind }))
  }
}

const endpointsIn = (survey: Survey): Status["endpoints"] => {
  if (survey.endpoints === undefined) return null
  const { longestOpen: _, lost: __, ...states } = survey.endpoints
  return { ...states, withBacklog: waitingSums(survey).backlogs }
}

const deadLettersIn = ({ dead }: Survey): Status["deadLetters"] => ({
  stored: dead.stored ?? null,
  open: dead.open ?? null,
  lastHour: dead.lastHour ?? null,
  bytes: dead.bytes ?? null,
  limitBytes: dead.limit ?? null,
  byTenant: dead.byTenant === undefined ? null : Object.fromEntries(dead.byTenant)
})

/** Returns the state of an installation, and what to do where it is not well. */
export const statusOf = (survey: Survey): Status => {
  const { at, events, oldest, workers } = survey
  return {
    at,
    broker: brokerIn(survey),
    room: roomIn(survey),
    events: {
      stored: events.stored ?? null,
      waitingForRouter: events.pending ?? null,
      inRouter: events.inRouter ?? null,
      oldestUnroutedAt: events.oldestUnroutedAt ?? null,
      lost: events.lost
    },
    deliveries: deliveriesIn(survey),
    oldestWaiting: oldest ?? null,
    repartition: survey.change ?? null,
    partitions: partitionsIn(survey),
    endpoints: endpointsIn(survey),
    workers:
      workers?.map(({ heartbeat, id, partitions }) => ({
        ...workerState(id, heartbeat),
        partitions
      })) ?? null,
    lastHour: lastHourIn(survey),
    deadLetters: deadLettersIn(survey),
    ...conditionsOf(survey)
  }
}

const read = readSurvey.pipe(Effect.catchIf(isUnanswered, () => new NoLeader()))

/** Reads the state of the installation. */
export const readStatus = Effect.map(read, statusOf)

/**
 * Reads the state of the installation, and asks the broker itself what it could not write. Of streams
 * with copies it is not asked: there each request would go through all of them.
 */
export const readStatusAndDisk = Effect.gen(function* () {
  const survey = yield* read
  const single = survey.streams.filter(({ info }) => info?.config.num_replicas === 1)
  const writeErrors = yield* readWriteErrors(single.map(({ name }) => name))
  return statusOf({
    ...survey,
    writeErrors: joinWriteErrors([...writeErrors, ...survey.writeErrors])
  })
})
