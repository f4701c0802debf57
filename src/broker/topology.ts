import type { StreamConfig } from "@nats-io/jetstream"
import { DiscardPolicy, RetentionPolicy, StorageType, StoreCompression } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { factResult } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"
import type { WantedConsumer } from "./consumers.ts"
import { deliverConsumer, routerConsumer } from "./consumers.ts"
import { routedAge } from "./kept-since.ts"

const minute = 60_000
const day = 24 * 60 * minute

/** Options of `petrel init`. Times in ms, sizes in bytes. */
export interface TopologyOptions {
  /** Replicas of each stream in a cluster. (Default: 1) */
  readonly replicas: number
  /** Number of partitions of all endpoints; only `petrel repartition` changes it. (Default: 8) */
  readonly partitions: number
  /** How long a worker may hold a message without reporting progress. (Default: 15 s) */
  readonly ackWait: number
  /** How long an event's idempotency key is remembered. (Default: 10 min) */
  readonly eventDedupe: number
  /**
   * How long the broker deduplicates moves between streams; later ones are searched for. (Default:
   * 2 min)
   */
  readonly moveDedupe: number
  /** (Default: 7 days) */
  readonly eventAge: number
  /**
   * Size limit of the event stream, which rejects publishes beyond it; -1: no limit. Commands
   * derive it from the store, see stream-sizes.ts. (Default: -1)
   */
  readonly eventBytes: number
  /** (Default: 30 days) */
  readonly historyAge: number
  /**
   * Size limit of the history, which drops its oldest facts beyond it; -1: no limit. Commands
   * derive it from the store, see stream-sizes.ts. (Default: -1)
   */
  readonly historyBytes: number
  /** (Default: 30 days) */
  readonly deadAge: number
  /**
   * Size limit of the dead-letter stream, which rejects dead letters beyond it. (Default: 1 GiB)
   */
  readonly deadBytes: number
  /**
   * Whether events come in through INTAKE, too: webhooks of providers, rows of an outbox. Needs
   * nats-server 2.15 (tenant-streams.ts). (Default: true)
   */
  readonly intake: boolean
  /**
   * How long what came in is recognised when it comes again; at most as long as events are kept.
   * (Default: 4 days)
   */
  readonly intakeAge: number
  /**
   * Size limit of INTAKE, which rejects publishes beyond it; -1: no limit. Commands derive it from
   * the store, see stream-sizes.ts. (Default: -1)
   */
  readonly intakeBytes: number
  /** Tenants with a stream of their own, in their own account. (Default: none) */
  readonly tenants: ReadonlyArray<string>
  /**
   * Size limit of each tenant's stream, and of the one for all others, which reject publishes
   * beyond it. (Default: 1 GiB)
   */
  readonly tenantBytes: number
}

export const defaultTopology: TopologyOptions = {
  replicas: 1,
  partitions: 8,
  ackWait: 15_000,
  eventDedupe: 10 * minute,
  moveDedupe: 2 * minute,
  eventAge: 7 * day,
  eventBytes: -1,
  historyAge: 30 * day,
  historyBytes: -1,
  deadAge: 30 * day,
  deadBytes: 1024 ** 3,
  intake: true,
  intakeAge: 4 * day,
  intakeBytes: -1,
  tenants: [],
  tenantBytes: 1024 ** 3
}

/**
 * Minimum `max_payload` of a broker: everything that Petrel stores besides events fits into it,
 * bytes.
 */
export const minMaxPayloadBytes = 64 * 1024

/** Bytes reserved in an event for the headers that Petrel adds later, which are under 8 KiB. */
const headerBytes = (maxPayload: number): number => Math.min(64 * 1024, Math.floor(maxPayload / 4))

/**
 * Upper bound of what a source adds to the headers of an event, bytes: names of 64 characters,
 * several times.
 */
const sourceHeaderBytes = 1024

/** Requests of a tenant in quarantine. Further ones are refused until some have left it. */
export const maxQuarantined = 100

export type WantedStream = Partial<StreamConfig> & Pick<StreamConfig, "name">

/**
 * What somebody may have set with another tool, and by which deliveries or endpoints would be lost.
 * Only a stream of facts or dead letters may have limits of an operator's own.
 */
const unlimited = {
  max_age: 0,
  max_bytes: -1,
  max_msgs: -1,
  max_msgs_per_subject: -1,
  max_msg_size: -1
} as const

/** What no stream but INTAKE has, and what keeps publishers from knowing what is stored. */
const answering = { no_ack: false, discard_new_per_subject: false, consumer_limits: {} } as const

/** True for a stream that is closed while a restore makes it, or its subjects move to another one. */
export const isClosed = (name: string, subjects: ReadonlyArray<string> = []): boolean =>
  subjects.join().endsWith(`.removed.${name}`)

/** A stream's desired configuration, and that of the durable consumer on it. */
export interface StreamSpec {
  readonly stream: WantedStream
  readonly consumer?: WantedConsumer
}

/**
 * With several copies nothing is compressed. After a crash, nats-server 2.15.1 may cut the end of a
 * copy off and compress what remains, and then appends to it uncompressed. At its next start it cannot
 * read the copy, and begins an empty one, as the others may do at the same time.
 */
const compressionOf = ({ replicas }: TopologyOptions): StoreCompression =>
  replicas > 1 ? StoreCompression.None : StoreCompression.S2

/** Settings common to all streams that hold events. */
const eventLimits = ({ replicas }: TopologyOptions) => ({
  ...unlimited,
  ...answering,
  storage: StorageType.File,
  num_replicas: replicas,
  max_consumers: -1,
  retention: RetentionPolicy.Limits,
  // A full stream rejects publishes: what it holds may not be routed yet.
  discard: DiscardPolicy.New,
  allow_direct: true
})

/**
 * Largest message, bytes, that a stream takes that EVENTS is sourced from. What fits there must fit
 * into EVENTS: otherwise its source would retry it for ever.
 */
export const largestSourced = (maxPayload: number): number =>
  maxPayload - headerBytes(maxPayload) - sourceHeaderBytes

/** A stream that accepts publishes, and that EVENTS is sourced from. */
const publishedTo = (
  name: string,
  subjects: ReadonlyArray<string>,
  options: TopologyOptions,
  maxPayload: number
): WantedStream => ({
  ...eventLimits(options),
  name,
  subjects: [...subjects],
  max_age: nanos(options.eventAge),
  max_msg_size: largestSourced(maxPayload),
  max_bytes: options.tenantBytes,
  duplicate_window: nanos(options.eventDedupe)
})

/** The configuration of a tenant's stream, in the tenant's account. */
export const tenantStream = (
  names: Names,
  tenant: string,
  options: TopologyOptions,
  maxPayload: number
): WantedStream =>
  publishedTo(names.tenantEvents(tenant), [names.subjects.eventsOf(tenant)], options, maxPayload)

/**
 * The stream for publishers that EVENTS is sourced from where tenants have streams, the one for what
 * comes in, and the one that detects duplicates of a source.
 */
const sourced = (
  names: Names,
  options: TopologyOptions,
  maxPayload: number
): ReadonlyArray<StreamSpec> => [
  ...(options.tenants.length === 0
    ? []
    : [
        {
          stream: publishedTo(
            names.ownEvents,
            [names.subjects.allEvents, names.subjects.allAlertEvents],
            options,
            maxPayload
          )
        }
      ]),
  ...(options.intake
    ? [
        {
          stream: {
            ...publishedTo(names.intake, [names.subjects.allIncoming], options, maxPayload),
            // The copy in EVENTS must last longer: the broker copies again what EVENTS does not have.
            max_age: nanos(Math.min(options.intakeAge, options.eventAge)),
            max_bytes: options.intakeBytes,
            // Each event has a subject of its own, and a tenant's quarantine has one for all of it.
            max_msgs_per_subject: maxQuarantined,
            discard_new_per_subject: true,
            // What is in quarantine stays until somebody has looked at it.
            allow_msg_ttl: true,
            duplicate_window: nanos(Math.min(minute, options.eventAge))
          }
        }
      ]
    : []),
  {
    stream: {
      storage: StorageType.File,
      num_replicas: options.replicas,
      max_consumers: -1,
      name: names.origins,
      subjects: [names.subjects.origin],
      retention: RetentionPolicy.Limits,
      max_age: nanos(options.eventDedupe),
      duplicate_window: nanos(options.eventDedupe)
    }
  }
]

/**
 * Start of a source of which EVENTS holds nothing. By default a source starts after the time of the
 * last event in EVENTS, whatever source that is from, and would skip acknowledged events.
 */
const fromBeginning = { opt_start_seq: 1 } as const

/** What came in has no `Nats-Msg-Id`, so EVENTS drops none of it as a duplicate. */
const fromIntake = (names: Names, { intake }: TopologyOptions) =>
  intake
    ? [
        {
          name: names.intake,
          ...fromBeginning,
          subject_transforms: [...names.subjects.incomingTransforms]
        }
      ]
    : []

/**
 * The subjects and sources of EVENTS. With tenants' streams it does not deduplicate: equal ids of
 * different tenants must both be stored.
 */
const takenFrom = (names: Names, options: TopologyOptions) => {
  const { eventDedupe, intake, tenants } = options
  return tenants.length === 0
    ? {
        subjects: [names.subjects.allEvents, names.subjects.allAlertEvents],
        duplicate_window: nanos(eventDedupe),
        ...(intake ? { sources: fromIntake(names, options) } : {})
      }
    : {
        subjects: [],
        duplicate_window: 0,
        sources: [
          { name: names.ownEvents, ...fromBeginning },
          ...tenants.map((tenant) => ({
            name: names.tenantEvents(tenant),
            ...fromBeginning,
            // The source takes only this tenant's events, whatever else the stream holds.
            subject_transforms: [
              { src: names.subjects.eventsOf(tenant), dest: names.subjects.eventsOf(tenant) }
            ],
            external: {
              api: names.subjects.tenantApi(tenant),
              deliver: names.subjects.tenantDeliver(tenant)
            }
          })),
          ...fromIntake(names, options)
        ]
      }
}

/** True for a stream that is kept in the account of access, if there is one (access.ts). */
export const isOfAccess = (names: Names, stream: string): boolean =>
  stream === `KV_${names.buckets.tokens}`

/**
 * Returns all streams, buckets and consumers of an installation, as data, in order of creation.
 * Partition 0 comes last: if it exists, everything exists.
 */
export const wanted = (
  names: Names,
  options: TopologyOptions,
  maxPayload: number
): ReadonlyArray<StreamSpec> => {
  const common = {
    ...answering,
    sources: [],
    storage: StorageType.File,
    num_replicas: options.replicas,
    max_consumers: -1
  }
  /**
   * @param isListed whether it is often listed, by users who may use direct gets: one request reads
   *   it then, where a consumer takes four. A single value is read from the leader in any bucket: a
   *   stale one would cause a wrong decision.
   */
  const bucket = (name: string, markers: boolean, isListed = false): StreamSpec => ({
    stream: {
      ...common,
      ...unlimited,
      name: `KV_${name}`,
      subjects: [`$KV.${name}.>`],
      retention: RetentionPolicy.Limits,
      max_msgs_per_subject: 1,
      discard: DiscardPolicy.New,
      allow_rollup_hdrs: true,
      deny_delete: true,
      allow_direct: isListed,
      ...(markers ? { allow_msg_ttl: true, subject_delete_marker_ttl: nanos(minute) } : {})
    }
  })
  const queue = (index: number): StreamSpec => ({
    stream: {
      ...common,
      ...unlimited,
      name: names.deliveries(index),
      subjects: [names.subjects.deliveriesOf(index), names.subjects.schedulesOf(index)],
      retention: RetentionPolicy.Workqueue,
      allow_direct: true,
      allow_msg_schedules: true,
      allow_msg_ttl: true,
      duplicate_window: nanos(options.moveDedupe)
    },
    consumer: deliverConsumer(names, index, options.ackWait)
  })
  const backlog = (index: number): StreamSpec => ({
    stream: {
      ...common,
      ...unlimited,
      name: names.backlog(index),
      subjects: [names.subjects.backlogOf(index)],
      retention: RetentionPolicy.Limits,
      // No max_bytes: the broker would reserve that much for each partition. Partition owners
      // enforce the limit.
      allow_direct: true,
      duplicate_window: nanos(options.moveDedupe)
    }
  })
  return [
    ...(options.tenants.length > 0 || options.intake ? sourced(names, options, maxPayload) : []),
    {
      stream: {
        ...eventLimits(options),
        name: names.events,
        // Workers remove what is older and was routed (routing/event-expiry.ts).
        max_age: 0,
        metadata: routedAge(options.eventAge),
        ...takenFrom(names, options),
        max_bytes: options.eventBytes,
        max_msg_size: maxPayload - headerBytes(maxPayload)
      },
      consumer: routerConsumer(names, options.ackWait)
    },
    {
      stream: {
        ...common,
        name: names.history,
        max_msgs_per_subject: -1,
        subjects: [names.subjects.allFacts],
        retention: RetentionPolicy.Limits,
        discard: DiscardPolicy.Old,
        max_age: nanos(options.historyAge),
        max_bytes: options.historyBytes,
        max_msg_size: -1,
        compression: compressionOf(options),
        // Facts are immutable. The broker lets nobody revert these two settings.
        deny_delete: true,
        deny_purge: true,
        allow_direct: true,
        duplicate_window: nanos(options.moveDedupe),
        republish: { src: names.subjects.failuresSource, dest: names.subjects.failuresTarget }
      }
    },
    {
      stream: {
        ...common,
        name: names.dead,
        max_msgs_per_subject: -1,
        subjects: [names.subjects.allDead],
        retention: RetentionPolicy.Limits,
        max_age: nanos(options.deadAge),
        max_bytes: options.deadBytes,
        max_msg_size: -1,
        discard: DiscardPolicy.New,
        allow_direct: true,
        duplicate_window: nanos(options.moveDedupe)
      }
    },
    {
      // The broker copies these facts: the history keeps 30 days by default, but an old plan may
      // depend on an older configuration.
      stream: {
        ...common,
        ...unlimited,
        name: names.configuration,
        // Without sources, the broker lets a stream take a subject of its own name.
        subjects: [],
        sources: [
          {
            name: names.history,
            filter_subject: names.subjects.fact(
              "*",
              "*",
              factResult("endpoint-changed"),
              "endpoint-changed"
            )
          }
        ],
        retention: RetentionPolicy.Limits,
        compression: compressionOf(options),
        deny_delete: true,
        deny_purge: true,
        allow_direct: true
      }
    },
    bucket(names.buckets.endpoints, false),
    bucket(names.buckets.health, false),
    bucket(names.buckets.retries, true),
    bucket(names.buckets.workers, true, true),
    bucket(names.buckets.alerts, true, true),
    bucket(names.buckets.tokens, true),
    bucket(names.buckets.jobs, true),
    ...(options.intake ? [bucket(names.buckets.sources, false)] : []),
    ...Array.from({ length: options.partitions }, (_, index) => [queue(index), backlog(index)])
      .flat()
      .reverse()
  ]
}
