import type { StoredMsg } from "@nats-io/jetstream"
import type { Schema } from "effect"
import { Effect } from "effect"
import type { RaisedAlert } from "../../alerts/alert-store.ts"
import { listAlerts, raisedIn } from "../../alerts/alert-store.ts"
import { Broker } from "../../broker/broker.ts"
import { deliverConsumer } from "../../broker/consumers.ts"
import { isAccessHere, readInstallation, TopologyError } from "../../broker/installed.ts"
import { readHealth, type ServerHealth } from "../../broker/monitor.ts"
import { type RestrictedStream, restrictedAmong } from "../../broker/restrictions.ts"
import type { Divergence } from "../../broker/sources/divergence.ts"
import { surveySources } from "../../broker/sources/record.ts"
import { readAccountStorage } from "../../broker/storage-limits.ts"
import type { EventsSurvey, StreamSurvey } from "../../broker/survey-streams.ts"
import {
  countSince,
  lookAtConsumer,
  lookAtStream,
  lookAtStreams,
  surveyEvents,
  surveyOf
} from "../../broker/survey-streams.ts"
import { isOfAccess } from "../../broker/topology.ts"
import type { StoredValue } from "../../broker/values.ts"
import type { WriteError } from "../../broker/write-errors.ts"
import type { IntrospectionAnswer } from "../../cluster/introspection.ts"
import { queryOwner } from "../../cluster/introspection.ts"
import type { Present } from "../../cluster/roster.ts"
import { presentIn, type Roster, readWorkersBucket } from "../../cluster/roster.ts"
import { readSelfReports, type SelfReports } from "../../cluster/self-report.ts"
import { referencesIn } from "../../domain/backlog-message.ts"
import { deliverySubject, isSchedule } from "../../domain/delivery.ts"
import { firstInexactSequence } from "../../domain/fact.ts"
import type {
  DeadLetterCounts,
  Filled,
  OldestDelivery,
  PartitionState
} from "../../domain/installation.ts"
import type { Names } from "../../domain/names.ts"
import { countBacklogs } from "../../history/backlog-count.ts"
import { countOpen } from "../../history/dead-fates.ts"
import type { Bypass } from "../../policy/bypass.ts"
import { isCrowded } from "../../policy/storage-quotas.ts"
import type { Counts } from "../../policy/tally.ts"
import { mayHaveBypass, readBypass, readBypassChanges } from "../../routing/bypass-store.ts"
import { timers } from "../../time/timers.ts"
import { deadLetterUseIn } from "../retry/dead-letter-gate.ts"
import type { EndpointsSurvey } from "./survey-endpoints.ts"
import { surveyEndpoints } from "./survey-endpoints.ts"
import type { IncomingSurvey, UnroutableSurvey } from "./survey-incoming.ts"
import { surveyIncoming, surveyUnroutable } from "./survey-incoming.ts"
import type { SpaceSurvey } from "./survey-storage.ts"
import { bound, surveySpace } from "./survey-storage.ts"
import { countByTenant } from "./waiting.ts"

/** A partition, and what its owner has counted of the last hour. */
export interface PartitionSurvey extends Schema.Schema.Type<typeof PartitionState> {
  /** Undefined where the owner does not answer. */
  readonly lastHour: (Counts & Pick<IntrospectionAnswer, "since">) | undefined
  /** Fields by which the consumer of its queue hands out too little, as somebody has changed them. */
  readonly restrictions?: ReadonlyArray<string>
  /** Set if places in its backlog are not exact, so that neighbours are taken for one delivery. */
  readonly isBacklogInexact?: boolean
}

/** The state of an installation, as far as it is known. Times in ms since the epoch. */
export interface Survey {
  /** By the broker's clock. */
  readonly at: number
  readonly version: string
  /** Name of the NATS cluster, if it is one. */
  readonly cluster: string | undefined
  /** Bytes stored in the account, and its limit. */
  readonly account: typeof Filled.Type
  readonly streams: ReadonlyArray<StreamSurvey>
  /** Streams that drop or refuse what they should keep, as somebody has changed them. */
  readonly restricted?: ReadonlyArray<RestrictedStream>
  /** Streams in which the broker cannot store, as far as workers and this process know. */
  readonly writeErrors: ReadonlyArray<WriteError>
  /** Workers that say that they are not ready. */
  readonly unready?: SelfReports["unready"]
  /** What the broker's servers say of themselves, where their monitoring ports are known. */
  readonly health?: ReadonlyArray<ServerHealth> | undefined
  readonly space: SpaceSurvey
  readonly events: EventsSurvey
  /** The number per tenant is not known while the stream is at most half full. */
  readonly dead: typeof DeadLetterCounts.Type
  /** Sources that lost what was copied from them. */
  readonly sources: ReadonlyArray<Divergence>
  /** Set where the record of the layout was removed: no worker can start then. */
  readonly lacksLayout?: boolean
  /** Set while the number of partitions is being changed: no worker runs then. */
  readonly change: { readonly from: number; readonly to: number } | undefined
  readonly partitions: ReadonlyArray<PartitionSurvey>
  /** Undefined where their bucket cannot be read. */
  readonly workers: ReadonlyArray<Present> | undefined
  readonly endpoints: EndpointsSurvey | undefined
  /** Why the endpoints cannot be read; undefined also where only time ran out. */
  readonly endpointsUnread?: string | undefined
  readonly oldest: typeof OldestDelivery.Type | null
  /** Messages in backlogs by tenant; undefined unless shares of their space count. */
  readonly waitingByTenant?: ReadonlyMap<string, number> | undefined
  /** What comes in from outside; undefined where there is no intake, or it does not answer. */
  readonly incoming?: IncomingSurvey | undefined
  /** Those of the last hour; undefined also where that is not known. */
  readonly unroutable?: UnroutableSurvey | undefined
  /** The bypass by which events pass a flood; undefined also where that cannot be read. */
  readonly bypass?: Bypass | undefined
  /** Fields by which that one's consumer hands out too little, as somebody has changed them. */
  readonly bypassChanges?: ReadonlyArray<string> | undefined
  /** Raised alerts about the system and about tenants. */
  readonly alerts: ReadonlyArray<RaisedAlert>
}

const hour = 3_600_000
/** Maximum concurrent requests to the broker. */
const maxConcurrentLookups = 64
/** Time limit to read a bucket. */
const bucketPatience = "20 seconds"
/** Number of streams among whose first messages the oldest is searched. */
const candidates = 4

/** Returns how many workers answer; infinitely many where the roster cannot be read. */
const aliveIn = (roster: Roster | undefined): number =>
  roster === undefined ? Number.POSITIVE_INFINITY : Math.max(1, roster.members.size)

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

const nothingWaits: ReadonlyMap<string, number> = new Map()

const lookAtPartition = Effect.fnUntraced(function* (
  partition: number,
  streams: ReadonlyMap<string, StreamSurvey>
) {
  const { names } = yield* Broker
  const stream = names.deliveries(partition)
  const backlog = streams.get(names.backlog(partition))?.info?.state
  const isEmpty = backlog?.messages === 0
  const [consumer, answer, waiting] = yield* Effect.all(
    [
      lookAtConsumer(stream, deliverConsumer(names, partition, 0)),
      queryOwner(partition, { about: "partition" }),
      isEmpty ? Effect.succeed(nothingWaits) : orUnknown(countBacklogs(partition))
    ],
    { concurrency: 3 }
  )
  const queue = streams.get(stream)?.info?.state
  const counted = answer?.partition
  return {
    partition,
    restrictions: consumer?.restrictions ?? [],
    isBacklogInexact: (backlog?.last_seq ?? 0) >= firstInexactSequence,
    lastHour: counted === undefined ? undefined : { ...counted, since: answer?.since ?? 0 },
    answers: counted !== undefined,
    new: consumer?.pending ?? null,
    ackPending: consumer?.ackPending ?? null,
    inFlight: counted?.inFlight ?? null,
    inLine: counted?.inLine ?? null,
    retries:
      counted === undefined || consumer === undefined
        ? null
        : Math.max(0, consumer.ackPending - counted.prefetched),
    // Messages that the consumer does not count. The two counts were not read at the same moment.
    scheduled:
      consumer === undefined || queue === undefined
        ? null
        : Math.max(0, queue.messages - consumer.pending - consumer.ackPending),
    // A message stays until all its deliveries have ended; only its owner knows which have.
    backlog:
      counted?.backlog ??
      (waiting === undefined ? null : [...waiting.values()].reduce((sum, count) => sum + count, 0)),
    unreadable: counted?.unreadable ?? null,
    endpointsWithBacklog: waiting?.size ?? null
  }
})

/** Returns the tenants' own streams, which are in their accounts. */
const tenantStreamsOf = (
  names: Names,
  { missing = [], streams = [] }: Partial<Effect.Success<ReturnType<typeof surveySources>>> = {}
): ReadonlyArray<StreamSurvey> =>
  [
    ...streams.map((info) => surveyOf(info.config.name, info, false)),
    ...missing.map((name) => surveyOf(name, undefined, true))
  ].filter(({ name }) => names.tenantOf(name) !== undefined)

/** Returns when the round of the first of some references began; 0 where there is none. */
const firstBegun = ({ header, subject }: StoredMsg): number =>
  referencesIn(subject, (name) => header.get(name) || undefined, { events: "", queue: "" })?.[0]
    ?.began ?? 0

/** Finds the oldest among the first messages of streams in which deliveries wait. */
const findOldest = Effect.fnUntraced(function* (waiting: ReadonlyArray<StreamSurvey>) {
  const { readMessage } = yield* Broker
  const first = waiting
    .flatMap(({ info, name }) =>
      info === undefined || info.state.messages === 0 ? [] : [{ name, ...info.state }]
    )
    .toSorted((a, b) => Date.parse(a.first_ts) - Date.parse(b.first_ts))
    .slice(0, candidates)
  const found = yield* Effect.forEach(
    first,
    ({ first_seq: seq, first_ts, name }) =>
      readMessage(`look at ${name}`, name, { seq }).pipe(
        Effect.orElseSucceed(() => null),
        Effect.map((message) => {
          // The message may have been settled meanwhile.
          if (message === null) return []
          const [tenant = "", endpoint = ""] = deliverySubject(message).split(".").slice(-2)
          const began = Number(message.header.get("petrel-began")) || firstBegun(message)
          const since = began > 0 ? began : Date.parse(first_ts)
          const isQueue = message.subject.split(".").includes("deliveries")
          const place = isSchedule(message) ? "schedule" : isQueue ? "queue" : "backlog"
          return [{ tenant, endpoint, place, since } satisfies Survey["oldest"]]
        })
      ),
    { concurrency: maxConcurrentLookups }
  )
  const [oldest] = found.flat().toSorted((a, b) => a.since - b.since)
  return oldest ?? null
})

/** Undefined for what cannot be read, or not in time. */
const orUnknown = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.timeoutOption(effect, bucketPatience).pipe(
    Effect.map((found) => (found._tag === "Some" ? found.value : undefined)),
    Effect.orElseSucceed(() => undefined)
  )

/** Counts the endpoints, or says why they cannot be read. */
const countEndpoints = surveyEndpoints.pipe(
  Effect.map((endpoints) => ({ endpoints })),
  Effect.catch(({ message }) => Effect.succeed({ endpoints: undefined, endpointsUnread: message }))
)

const surveyDead = Effect.fnUntraced(function* (
  info: StreamSurvey["info"],
  history: StreamSurvey["info"],
  at: number
) {
  const { names } = yield* Broker
  const state = info?.state
  const counted =
    state === undefined || history === undefined
      ? Effect.succeed(undefined)
      : countOpen(
          {
            stored: state.messages,
            firstId: state.first_seq,
            oldestAt: Date.parse(state.first_ts),
            removed: state.num_deleted ?? 0
          },
          history
        )
  const use = info === undefined ? Effect.succeed(undefined) : deadLetterUseIn(info)
  const [lastHour, open, letters] = yield* Effect.all(
    [countSince(names.dead, at - hour), orUnknown(counted), orUnknown(use)],
    { concurrency: 3 }
  )
  return {
    stored: state?.messages ?? null,
    open: open ?? null,
    lastHour: lastHour ?? null,
    bytes: state?.bytes ?? null,
    limitBytes: bound(info?.config.max_bytes),
    byTenant: letters?.byTenant === undefined ? null : Object.fromEntries(letters.byTenant)
  } satisfies Survey["dead"]
})

/** Surveys the workers, and what else their bucket tells of. */
const surveyWorkers = Effect.fnUntraced(function* (
  infoOf: (stream: string) => StreamSurvey["info"],
  isLed: boolean
) {
  const { names } = yield* Broker
  const bucket = isLed ? yield* orUnknown(readWorkersBucket) : undefined
  const values = bucket?.values
  const ifKnown = <A, E, R>(
    read: (values: ReadonlyArray<StoredValue>) => Effect.Effect<A, E, R>
  ) => (values === undefined ? Effect.succeed(undefined) : orUnknown(read(values)))
  const [bypass, incoming, sources, reports] = yield* Effect.all(
    [
      ifKnown((values) => (mayHaveBypass(values) ? readBypass : Effect.succeed(undefined))),
      ifKnown((values) => surveyIncoming(infoOf(names.events), values)),
      ifKnown((values) => surveySources(values, infoOf)),
      readSelfReports(aliveIn(bucket?.roster))
    ],
    { concurrency: "unbounded" }
  )
  const bypassChanges = yield* orUnknown(readBypassChanges(bypass?.bypass))
  return {
    ...{ roster: bucket?.roster, ended: bucket?.ended, bypass: bypass?.bypass, bypassChanges },
    ...{ incoming, sources, writeErrors: reports.failing, unready: reports.unready }
  }
})

/**
 * Surveys an installation as a whole. What cannot be read is left out, so that the rest is shown.
 * Fails where the broker does not answer at all, or there is no installation.
 */
export const readSurvey = Effect.gen(function* () {
  const { names, server } = yield* Broker
  const { hasIntake, partitions: count, record } = yield* readInstallation
  if (count === undefined)
    return yield* new TopologyError({
      message: `there is no installation named ${names.events.replace(/EVENTS$/, "")} on this broker: run \`petrel init\` first`
    })
  const { buckets } = names
  const waitingStreams = range(count).flatMap((index) => [
    names.deliveries(index),
    names.backlog(index)
  ])
  const looked = yield* lookAtStreams([
    ...[names.events, names.history, names.dead, names.configuration],
    ...(hasIntake ? [names.intake, names.origins] : []),
    ...Object.values(buckets).map((bucket) => `KV_${bucket}`),
    ...waitingStreams
  ])
  const { info } = looked.find(({ name }) => name === names.events) ?? {}
  const isSourced = (info?.sources ?? []).some(({ name }) => name === names.ownEvents)
  const streams = isSourced ? [...looked, yield* lookAtStream(names.ownEvents)] : looked
  const byName = new Map(streams.map((stream) => [stream.name, stream]))
  const infoOf = (name: string) => byName.get(name)?.info
  const [event, dead] = [infoOf(names.events), infoOf(names.dead)]
  const at = Date.parse(event?.ts ?? dead?.ts ?? "") || timers.wallMs()
  const isLed = (bucket: string) => byName.get(`KV_${bucket}`)?.state === "led"
  const ifLed = <A, E, R>(bucket: string, effect: Effect.Effect<A, E, R>) =>
    isLed(bucket) ? orUnknown(effect) : Effect.succeed(undefined)
  const { account, alerts, counted, health, letters, oldest, partitions, routed, ...others } =
    yield* Effect.all(
      {
        account: orUnknown(readAccountStorage),
        alerts: ifLed(buckets.alerts, listAlerts()),
        counted: ifLed(buckets.endpoints, countEndpoints),
        health: readHealth,
        letters: surveyDead(dead, infoOf(names.history), at),
        oldest: findOldest(streams.filter(({ name }) => waitingStreams.includes(name))),
        partitions: Effect.forEach(range(count), (index) => lookAtPartition(index, byName), {
          concurrency: maxConcurrentLookups
        }),
        routed: surveyEvents(event),
        unroutable: orUnknown(surveyUnroutable(at - hour)),
        workers: surveyWorkers(infoOf, isLed(buckets.workers))
      },
      { concurrency: "unbounded" }
    )
  const { unroutable, workers } = others
  const { roster, incoming, sources, unready, writeErrors } = workers
  const space = surveySpace(names, range(count), byName, sources?.streams ?? [], {
    deadBytes: letters.limitBytes,
    intakeBytes: byName.get(names.intake)?.info?.config.max_bytes ?? null
  })
  const theirs = tenantStreamsOf(names, sources)
  const all = [...streams, ...theirs.filter(({ state }) => state !== "led")]
  const isApart = !isAccessHere(record) || !isLed(buckets.workers)
  const { bytes, limitBytes } = space.backlogs
  const areSharesDue = isCrowded({ bytes: bytes ?? 0, maxBytes: limitBytes ?? undefined })
  const survey: Survey = {
    at,
    version: server().version ?? "",
    cluster: streams.find(({ info }) => info?.cluster?.name !== undefined)?.info?.cluster?.name,
    account: account ?? { bytes: null, limitBytes: null },
    // This account does not have the tokens if they are in one of their own.
    streams: isApart ? all.filter(({ name }) => !isOfAccess(names, name)) : all,
    restricted: restrictedAmong(names, [...streams, ...theirs], record, count, server()),
    ...{ health, space, unready, writeErrors },
    lacksLayout: record.partitions === undefined && isLed(buckets.workers),
    waitingByTenant: areSharesDue ? yield* orUnknown(countByTenant(range(count))) : undefined,
    events: routed,
    dead: letters,
    sources: sources?.divergences ?? [],
    change: record.change,
    partitions: partitions.map((partition) => {
      const owner = roster?.leases.get(partition.partition)?.said.worker ?? null
      const unownedSince = workers.ended?.get(partition.partition) ?? null
      return { ...partition, owner, ...(owner === null ? { unownedSince } : {}) }
    }),
    workers: roster === undefined ? undefined : presentIn(roster),
    ...(counted ?? { endpoints: undefined }),
    oldest,
    incoming,
    unroutable,
    ...{ bypass: workers.bypass, bypassChanges: workers.bypassChanges },
    alerts: raisedIn(alerts ?? []).filter(({ alert }) => alert.about !== "endpoint")
  }
  return survey
})
