/** Names of streams, buckets and subjects. Only this file builds and parses them. */

/**
 * A source that was started again because its stream had lost its end. Sequences are those of the
 * source stream.
 */
export interface Restart {
  /** Number of restarts of the source, this one included. */
  readonly number: number
  /** Where the source started. */
  readonly start: number
  /** Up to here the source brings messages that have taken the sequences of lost ones. */
  readonly lostThrough: number
  /** After `lostThrough` and up to here it brings again what it had copied before. */
  readonly copiedThrough: number
}

const restartPattern = /\.restarted\.(\d+)\.(\d+)\.(\d+)\.(\d+)(?!\S)/

/** Returns the restart that a source's filter or the header of its copies names, or undefined. */
export const readRestart = (text: string): Restart | undefined => {
  const [found, number, start, lostThrough, copiedThrough] = restartPattern.exec(text) ?? []
  if (found === undefined) return undefined
  return {
    number: Number(number),
    start: Number(start),
    lostThrough: Number(lostThrough),
    copiedThrough: Number(copiedThrough)
  }
}

export interface Names {
  /** First token(s) of the subjects that platforms publish to. */
  readonly eventRoot: string
  /** First tokens of the subjects of Petrel's own events (alerts). Only workers publish to them. */
  readonly alertRoot: string
  readonly events: string
  /** With tenants' streams, the stream for events that are published in Petrel's own account. */
  readonly ownEvents: string
  /** The stream of a tenant, in the tenant's account. */
  readonly tenantEvents: (tenant: string) => string
  /** Returns the tenant of a stream, or undefined. */
  readonly tenantOf: (stream: string) => string | undefined
  /** What came in from outside, by source and id, for as long as repeats are recognised. */
  readonly intake: string
  /** The origins of events. Used to detect events that a source published again. */
  readonly origins: string
  readonly history: string
  readonly dead: string
  /** Every change of an endpoint's configuration, copied from the history and never deleted. */
  readonly configuration: string
  /** There while a backup is being restored. Nothing is published to it. */
  readonly restoring: string
  readonly deliveries: (partition: number) => string
  readonly backlog: (partition: number) => string
  /** Returns the partition whose queue or backlog a stream is; undefined for other streams. */
  readonly partitionIn: (stream: string) => number | undefined
  /**
   * Returns true for a stream of this installation, those of its buckets included. Streams of an
   * installation whose prefix begins with the same letters are others.
   */
  readonly isOwn: (stream: string) => boolean
  readonly buckets: {
    readonly endpoints: string
    readonly health: string
    readonly retries: string
    readonly workers: string
    readonly alerts: string
    readonly tokens: string
    readonly jobs: string
    readonly sources: string
  }
  /** Returns the stream that messages on a subject are stored in; undefined for other subjects. */
  readonly streamOf: (subject: string) => string | undefined
  /**
   * Returns the tenant whose deliveries a message on a subject is about; undefined where the subject
   * names none.
   */
  readonly tenantIn: (subject: string) => string | undefined
  readonly routerConsumer: string
  readonly deliverConsumer: string
  readonly subjects: {
    readonly allEvents: string
    readonly eventsOf: (tenant: string) => string
    /** The prefix of JetStream requests to a tenant's account. */
    readonly tenantApi: (tenant: string) => string
    /** The subject on which a tenant's stream delivers its events. */
    readonly tenantDeliver: (tenant: string) => string
    readonly origin: string
    readonly allIncoming: string
    /** The subject of an event that came in, without its type. */
    readonly incoming: (tenant: string, source: string, id: string) => string
    /** The subject of an outbox's row, without its type. */
    readonly incomingRow: (tenant: string, id: string) => string
    /** The subject of a tenant's requests in quarantine. They become no events. */
    readonly quarantine: (tenant: string) => string
    /** How subjects of INTAKE become subjects of events. */
    readonly incomingTransforms: ReadonlyArray<{ readonly src: string; readonly dest: string }>
    /** Returns the subject of the event that a message of INTAKE becomes. */
    readonly eventOfIncoming: (subject: string) => string
    /** The filter that marks a restarted source. Nothing is published to it. */
    readonly restart: (restart: Restart) => string
    readonly event: (tenant: string, type: string) => string
    readonly allAlertEvents: string
    readonly alertEvent: (tenant: string, type: string) => string
    readonly delivery: (partition: number, tenant: string, endpoint: string) => string
    readonly deliveriesOf: (partition: number) => string
    readonly backlog: (partition: number, tenant: string, endpoint: string) => string
    readonly backlogOf: (partition: number) => string
    readonly schedule: (partition: number, id: string) => string
    readonly schedulesOf: (partition: number) => string
    /** The subject on which a partition's owner answers introspection queries. */
    readonly ask: (partition: number) => string
    /** The subject on which every worker says in which streams it can store nothing. */
    readonly askWorkers: string
    /** The subject on which a partition's owner takes commands. */
    readonly command: (partition: number) => string
    /** The subject on which a worker process is asked for a partition. */
    readonly handOver: (instance: string) => string
    /** The subject on which a worker tells its numbers. */
    readonly worker: (id: string) => string
    /** The subject on which a projection answers queries of the delivery log. */
    readonly projection: string
    /** The root of all but events, and the name of the NATS service. */
    readonly root: string
    readonly api: (tenant: string, operation: string) => string
    /** The subject of a stream that is about to be removed. Nothing is published to it. */
    readonly removed: (stream: string) => string
    readonly fact: (
      tenant: string,
      endpoint: string,
      result: "ok" | "failure" | "*",
      kind: string
    ) => string
    readonly allFacts: string
    readonly dead: (tenant: string, endpoint: string) => string
    readonly allDead: string
    readonly failures: (tenant: string, endpoint: string, kind: string) => string
    readonly failuresSource: string
    readonly failuresTarget: string
  }
}

interface Roots {
  readonly eventRoot: string
  readonly root: string
  /** Returns the name of a stream of the installation. */
  readonly stream: (name: string) => string
}

const streamOf = (subject: string, { eventRoot, root, stream }: Roots): string | undefined => {
  if (subject.startsWith("$KV.")) return `KV_${subject.split(".", 2)[1]}`
  if (subject.startsWith(`${eventRoot}.`)) return stream("EVENTS")
  if (!subject.startsWith(`${root}.`)) return undefined
  const [kind, partition] = subject.slice(root.length + 1).split(".", 2)
  switch (kind) {
    case "history":
      return stream("HISTORY")
    case "dead":
      return stream("DEAD")
    case "intake":
      return stream("INTAKE")
    case "alert-events":
      return stream("EVENTS")
    case "deliveries":
    case "schedules":
      return stream(`DELIVERIES_${partition}`)
    case "backlog":
      return stream(`BACKLOG_${partition}`)
    default:
      return undefined
  }
}

const tenantIn = (subject: string, root: string, healthBucket: string): string | undefined => {
  if (subject.startsWith("$KV.")) {
    const [, bucket, tenant] = subject.split(".", 3)
    return bucket === healthBucket ? tenant : undefined
  }
  if (!subject.startsWith(`${root}.`)) return undefined
  const [kind, first, second] = subject.slice(root.length + 1).split(".", 3)
  if (kind === "history" || kind === "dead") return first
  return kind === "deliveries" || kind === "backlog" ? second : undefined
}

/** @param path an incoming subject without the root: `intake.sources.…` or `intake.outbox.…`. */
const eventOfIncoming = (path: string, eventRoot: string): string => {
  const [, kind, tenant = "", ...rest] = path.split(".")
  const type = kind === "outbox" ? rest.slice(1) : [rest[0], ...rest.slice(2)]
  return [eventRoot, tenant, ...type].join(".")
}

/** @param lower the prefix of buckets. */
const streamNames = (lower: string, stream: Roots["stream"]) => {
  const tenantStreams = stream("EVENTS_")
  const queuePrefixes = [stream("DELIVERIES_"), stream("BACKLOG_")]
  const partitionIn = (name: string): number | undefined => {
    const before = queuePrefixes.find((each) => name.startsWith(each))
    const digits = name.slice(before?.length)
    return before !== undefined && /^\d+$/.test(digits) ? Number(digits) : undefined
  }
  const single = {
    events: stream("EVENTS"),
    ownEvents: stream("OWN_EVENTS"),
    intake: stream("INTAKE"),
    origins: stream("ORIGINS"),
    history: stream("HISTORY"),
    dead: stream("DEAD"),
    configuration: stream("CONFIGURATION"),
    restoring: stream("RESTORE")
  }
  const buckets = {
    endpoints: `${lower}endpoints`,
    health: `${lower}health`,
    retries: `${lower}retries`,
    workers: `${lower}workers`,
    alerts: `${lower}alerts`,
    tokens: `${lower}tokens`,
    jobs: `${lower}jobs`,
    sources: `${lower}sources`
  }
  const own = new Set([
    ...Object.values(single),
    ...Object.values(buckets).map((bucket) => `KV_${bucket}`)
  ])
  return {
    ...single,
    buckets,
    partitionIn,
    isOwn: (name: string) => own.has(name) || partitionIn(name) !== undefined,
    tenantEvents: (tenant: string) => `${tenantStreams}${tenant}`,
    tenantOf: (name: string) =>
      name.startsWith(tenantStreams) ? name.slice(tenantStreams.length) : undefined,
    deliveries: (partition: number) => stream(`DELIVERIES_${partition}`),
    backlog: (partition: number) => stream(`BACKLOG_${partition}`)
  }
}

/**
 * Returns the names of an installation.
 *
 * @param prefix of streams ("PETREL_"). In lower case it prefixes buckets ("petrel_"). Without the
 *   trailing underscore it is the root of the subjects ("petrel").
 * @param eventRoot the root that platforms publish under ("events").
 */
export const makeNames = (prefix = "PETREL_", eventRoot = "events"): Names => {
  const lower = prefix.toLowerCase()
  const root = lower.replace(/_+$/, "")
  const alertRoot = `${root}.alert-events`
  // join() returns a flat string, and each fact names a stream: see deliveryId.
  const stream = (name: string) => [prefix, name].join("")
  const streams = streamNames(lower, stream)
  return {
    eventRoot,
    alertRoot,
    ...streams,
    streamOf: (subject) => streamOf(subject, { eventRoot, root, stream }),
    tenantIn: (subject) => tenantIn(subject, root, streams.buckets.health),
    routerConsumer: "router",
    deliverConsumer: "deliver",
    subjects: {
      allEvents: `${eventRoot}.>`,
      eventsOf: (tenant) => `${eventRoot}.${tenant}.>`,
      tenantApi: (tenant) => `${root}.tenants.${tenant}.api`,
      tenantDeliver: (tenant) => `${root}.tenants.${tenant}.events`,
      origin: `${root}.origin`,
      allIncoming: `${root}.intake.>`,
      incoming: (tenant, source, id) => `${root}.intake.sources.${tenant}.${source}.${id}`,
      incomingRow: (tenant, id) => `${root}.intake.outbox.${tenant}.${id}`,
      quarantine: (tenant) => `${root}.intake.quarantine.${tenant}`,
      incomingTransforms: [
        {
          src: `${root}.intake.sources.*.*.*.>`,
          dest: `${eventRoot}.{{wildcard(1)}}.{{wildcard(2)}}.>`
        },
        { src: `${root}.intake.outbox.*.*.>`, dest: `${eventRoot}.{{wildcard(1)}}.>` }
      ],
      eventOfIncoming: (subject) => eventOfIncoming(subject.slice(root.length + 1), eventRoot),
      restart: ({ copiedThrough, lostThrough, number, start }) =>
        `${root}.restarted.${number}.${start}.${lostThrough}.${copiedThrough}`,
      event: (tenant, type) => `${eventRoot}.${tenant}.${type}`,
      allAlertEvents: `${alertRoot}.>`,
      alertEvent: (tenant, type) => `${alertRoot}.${tenant}.${type}`,
      delivery: (partition, tenant, endpoint) =>
        `${root}.deliveries.${partition}.${tenant}.${endpoint}`,
      deliveriesOf: (partition) => `${root}.deliveries.${partition}.>`,
      backlog: (partition, tenant, endpoint) =>
        `${root}.backlog.${partition}.${tenant}.${endpoint}`,
      backlogOf: (partition) => `${root}.backlog.${partition}.>`,
      schedule: (partition, id) => `${root}.schedules.${partition}.${id}`,
      schedulesOf: (partition) => `${root}.schedules.${partition}.>`,
      ask: (partition) => `${root}.ask.${partition}`,
      askWorkers: `${root}.ask.workers`,
      command: (partition) => `${root}.command.${partition}`,
      handOver: (instance) => `${root}.hand-over.${instance}`,
      worker: (id) => `${root}.worker.${id}`,
      projection: `${root}.projection`,
      root,
      api: (tenant, operation) => `${root}.api.v1.${tenant}.${operation}`,
      removed: (stream) => `${root}.removed.${stream}`,
      fact: (tenant, endpoint, result, kind) =>
        `${root}.history.${tenant}.${endpoint}.${result}.${kind}`,
      allFacts: `${root}.history.>`,
      dead: (tenant, endpoint) => `${root}.dead.${tenant}.${endpoint}`,
      allDead: `${root}.dead.>`,
      failures: (tenant, endpoint, kind) => `${root}.failures.${tenant}.${endpoint}.${kind}`,
      failuresSource: `${root}.history.*.*.failure.*`,
      failuresTarget: `${root}.failures.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}`
    }
  }
}

/**
 * Returns the partition of an endpoint: FNV-1a (32 bit) of `tenant.endpoint`, modulo P. Part of the
 * stored layout: a change of it would strand waiting deliveries.
 */
export const partitionOf = (tenant: string, endpoint: string, partitions: number): number =>
  partitionOfKey(`${tenant}.${endpoint}`, partitions)

/** Returns the partition of an endpoint's key, `<tenant>.<endpoint>`. */
export const partitionOfKey = (key: string, partitions: number): number =>
  endpointHash(key) % partitions

/** Returns the hash of an endpoint's key, of which a partition is the remainder. */
export const endpointHash = (key: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
