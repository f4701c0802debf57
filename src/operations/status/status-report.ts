import { Effect, Schema } from "effect"
import { isUnanswered } from "../../broker/keep-going.ts"
import { joinWriteErrors, readWriteErrors } from "../../broker/write-errors.ts"
import type { Survey } from "../../delivery/introspection/survey.ts"
import { readSurvey } from "../../delivery/introspection/survey.ts"
import {
  Count,
  DeadLetterCounts,
  EndpointCounts,
  EventCounts,
  Filled,
  OldestDelivery,
  PartitionState,
  StreamSpace,
  Waiting
} from "../../domain/installation.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { shareOf } from "../../text/quantities.ts"
import { LastHour } from "../endpoints/endpoint-view.ts"
import { NoLeader } from "../refusals.ts"
import { Conditions } from "./conditions.ts"
import { IncomingState, incomingIn } from "./incoming.ts"
import { conditionsOf } from "./status-conditions.ts"
import {
  copiesOf,
  endpointsWithBacklog,
  lastHourOf,
  storedBytes,
  waitingIn
} from "./status-sums.ts"
import { WorkerState, workerState } from "./workers.ts"

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
  events: StreamSpace,
  history: StreamSpace,
  deadLetters: Filled,
  queues: Filled,
  backlogs: Filled,
  account: Filled
})

/**
 * The state of an installation. Times in ms since the epoch. What is not known, as no owner
 * answers, is null.
 */
export const Status = Schema.Struct({
  at: Timestamp,
  broker: BrokerState,
  room: RoomState,
  events: EventCounts,
  deliveries: Schema.Struct({
    waiting: Schema.Int,
    ...Waiting,
    partitionsAnswering: Schema.Int
  }),
  /** The delivery that has waited longest. */
  oldestWaiting: Schema.NullOr(OldestDelivery),
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
  /** What comes in from outside. Null also where the installation has no intake. */
  incoming: Schema.NullOr(IncomingState),
  ...Conditions.fields
})
export type Status = typeof Status.Type

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

const roomIn = ({ account, dead, room }: Survey): Status["room"] => ({
  ...{ account, queues: room.queues, backlogs: room.backlogs },
  events: room.events.room,
  history: room.history.room,
  deadLetters: { bytes: dead.bytes, limitBytes: dead.limitBytes }
})

const brokerIn = (survey: Survey): Status["broker"] => {
  const { account, cluster, streams, version } = survey
  return {
    version,
    cluster: cluster ?? null,
    replicas: copiesOf(survey),
    storedBytes: storedBytes(survey),
    accountBytes: account.bytes,
    accountLimitBytes: account.limitBytes,
    health: (survey.health ?? []).map(({ isWell, says, server }) => ({
      ...{ server, says },
      ok: isWell ?? null
    })),
    streamsInTrouble: streams
      .filter(({ behind, state }) => state !== "led" || behind.length > 0)
      .map(({ behind, name, state }) => ({ name, state, copiesBehind: behind }))
  }
}

/** Returns the state of an installation, and what to do where it is not well. */
export const statusOf = (survey: Survey): Status => {
  const { at, change, dead, endpoints, events, oldest, partitions, workers } = survey
  return {
    at,
    broker: brokerIn(survey),
    room: roomIn(survey),
    events: events.counts,
    deliveries: waitingIn(survey),
    oldestWaiting: oldest,
    repartition: change ?? null,
    partitions: partitions.map(({ lastHour: _, ...partition }) => partition),
    endpoints:
      endpoints === undefined
        ? null
        : { ...endpoints.counts, withBacklog: endpointsWithBacklog(survey) },
    workers:
      workers?.map(({ heartbeat, id, partitions }) => ({
        ...workerState(id, heartbeat),
        partitions
      })) ?? null,
    lastHour: lastHourIn(survey),
    deadLetters: dead,
    incoming: incomingIn(survey),
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
