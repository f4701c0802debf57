import { Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isUnanswered } from "../../broker/keep-going.ts"
import { leaderAnswerMs } from "../../broker/survey-streams.ts"
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
import { type LastAudit, readLastAudit } from "../audit/run-audit.ts"
import { LastHour } from "../endpoints/endpoint-view.ts"
import { BrokerAway, NoLeader } from "../refusals.ts"
import { Conditions } from "./conditions.ts"
import { IncomingState, incomingIn } from "./incoming.ts"
import { auditNotices, conditionsOf } from "./status-conditions.ts"
import {
  copiesOf,
  endpointsWithBacklog,
  lastHourOf,
  storedBytes,
  waitingIn
} from "./status-sums.ts"
import { WorkerState, workerState } from "./workers.ts"

const BrokerState = Schema.Struct({
  version: Schema.String.annotateKey({ description: "The broker's version." }),
  cluster: Schema.NullOr(Schema.String).annotateKey({
    description: "The cluster's name; null for a single server."
  }),
  replicas: Schema.Int.annotateKey({ description: "Copies of each stream." }),
  storedBytes: Schema.Int.annotateKey({ description: "Of all streams. Replicas are not counted." }),
  accountBytes: Count.annotateKey({ description: "What the broker's account stores, bytes." }),
  accountLimitBytes: Count.annotateKey({ description: "What the account may store, bytes." }),
  /** What its servers say at `/healthz`; empty where their monitoring ports are not known. */
  health: Schema.Array(
    Schema.Struct({
      server: Schema.String.annotateKey({ description: "The address or name of the server." }),
      ok: Schema.NullOr(Schema.Boolean).annotateKey({
        description: "Null if it does not answer."
      }),
      says: Schema.String.annotateKey({ description: "What it says." })
    })
  ).annotateKey({
    description:
      "What its servers say at `/healthz`; empty where their monitoring ports are not known."
  }),
  streamsInTrouble: Schema.Array(
    Schema.Struct({
      name: Schema.String.annotateKey({ description: "The name of the stream." }),
      state: Schema.String.annotateKey({ description: "`leaderless`, `missing` or `led`." }),
      copiesBehind: Schema.Array(
        Schema.Struct({
          server: Schema.String.annotateKey({ description: "The name of the server." }),
          offline: Schema.Boolean.annotateKey({ description: "Whether it is away." }),
          lag: Schema.Int.annotateKey({ description: "How many messages it is behind." })
        })
      ).annotateKey({ description: "The copies that are not up to date." })
    })
  ).annotateKey({
    description: "Streams without a leader, or with copies that are not up to date."
  })
})

const StoredSpace = Schema.Struct({
  events: StreamSpace.annotateKey({ description: "The events, and how far their routing is." }),
  history: StreamSpace.annotateKey({ description: "The history." }),
  deadLetters: Filled.annotateKey({ description: "The dead letters." }),
  queues: Filled.annotateKey({ description: "The queues." }),
  backlogs: Filled.annotateKey({ description: "The backlogs." }),
  account: Filled.annotateKey({ description: "The broker's account." })
})

/**
 * The state of an installation. Times in ms since the epoch. What is not known, as no owner
 * answers, is null.
 */
export const Status = Schema.Struct({
  at: Timestamp.annotateKey({ description: "When the state was read." }),
  broker: BrokerState.annotateKey({ description: "The NATS servers." }),
  room: StoredSpace.annotateKey({ description: "How much is stored, and how much there may be." }),
  events: EventCounts.annotateKey({ description: "The events, and how far their routing is." }),
  deliveries: Schema.Struct({
    waiting: Schema.Int.annotateKey({ description: "All that wait." }),
    ...Waiting,
    partitionsAnswering: Schema.Int.annotateKey({ description: "Partitions whose owner answers." })
  }).annotateKey({ description: "Deliveries that wait, by place." }),
  oldestWaiting: Schema.NullOr(OldestDelivery).annotateKey({
    description: "The delivery that has waited longest."
  }),
  repartition: Schema.NullOr(
    Schema.Struct({
      from: Schema.Int.annotateKey({ description: "The former number of partitions." }),
      to: Schema.Int.annotateKey({ description: "The new number of partitions." })
    })
  ).annotateKey({
    description: "The change of the number of partitions that is under way."
  }),
  partitions: Schema.Array(PartitionState).annotateKey({ description: "The partitions." }),
  endpoints: Schema.NullOr(EndpointCounts).annotateKey({ description: "Endpoints by state." }),
  workers: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        ...WorkerState.fields,
        partitions: Schema.Array(Schema.Int).annotateKey({ description: "The partitions." })
      })
    )
  ).annotateKey({ description: "The workers." }),
  lastHour: Schema.NullOr(LastHour).annotateKey({
    description:
      "Attempts within the last hour, in the partitions whose owners answer. `since` is the start of the shortest count: that partition had another owner before."
  }),
  deadLetters: DeadLetterCounts.annotateKey({ description: "The dead letters." }),
  incoming: Schema.NullOr(IncomingState).annotateKey({
    description: "What comes in from outside. Null also where the installation has no intake."
  }),
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

const spaceIn = ({ account, dead, space }: Survey): Status["room"] => ({
  ...{ account, queues: space.queues, backlogs: space.backlogs },
  events: space.events.space,
  history: space.history.space,
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

/**
 * Returns the state of an installation, and what to do where it is not well.
 *
 * @param audit the last one of all tenants, if one was run.
 */
export const statusOf = (survey: Survey, audit?: LastAudit): Status => {
  const { at, change, dead, endpoints, events, oldest, partitions, workers } = survey
  const { notices, problems } = conditionsOf(survey)
  return {
    at,
    broker: brokerIn(survey),
    room: spaceIn(survey),
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
    problems,
    notices: [...notices, ...auditNotices(survey, audit)]
  }
}

/** The last audit. The status is worth reading without it. */
const lastAudit = readLastAudit.pipe(
  Effect.timeoutOrElse({ duration: leaderAnswerMs, orElse: () => Effect.succeed(undefined) }),
  Effect.orElseSucceed(() => undefined)
)

/** Without a connection each question would wait for its time-out, and name a wrong cause then. */
const read = Effect.flatMap(Broker, ({ life }) =>
  life() === undefined
    ? Effect.fail(new BrokerAway())
    : readSurvey.pipe(
        Effect.catchIf(isUnanswered, () =>
          Effect.fail(life() === undefined ? new BrokerAway() : new NoLeader())
        )
      )
)

/** Reads the state of the installation. */
export const readStatus = Effect.map(Effect.all([read, lastAudit], { concurrency: 2 }), (found) =>
  statusOf(...found)
)

/**
 * Reads the state of the installation, and asks the broker itself what it could not write. Of streams
 * with copies it is not asked: there each request would go through all of them.
 */
export const readStatusAndDisk = Effect.gen(function* () {
  const [survey, audit] = yield* Effect.all([read, lastAudit], { concurrency: 2 })
  const single = survey.streams.filter(({ info }) => info?.config.num_replicas === 1)
  const writeErrors = yield* readWriteErrors(single.map(({ name }) => name))
  const joined = joinWriteErrors([...writeErrors, ...survey.writeErrors])
  return statusOf({ ...survey, writeErrors: joined }, audit)
})
