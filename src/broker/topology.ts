import type { ConsumerConfig, StreamConfig } from "@nats-io/jetstream"
import {
  AckPolicy,
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  StoreCompression
} from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"
import type { Names } from "../domain/names.ts"
import { Broker, type BrokerError } from "./connection.ts"

const minute = 60_000
const day = 24 * 60 * minute

/** What `petrel init` decides. Times in ms, sizes in bytes. */
export interface TopologyOptions {
  /** Copies of each stream in a cluster. (Default: 1) */
  readonly replicas: number
  /** Slices of all endpoints; fixed once made. (Default: 8) */
  readonly partitions: number
  /** How long a worker may hold a message without a sign of life. (Default: 15 s) */
  readonly ackWait: number
  /** How long an event's idempotency key is remembered. (Default: 10 min) */
  readonly eventDedupe: number
  /** How long moves between streams are deduplicated by the broker; later ones are searched for. (Default: 2 min) */
  readonly moveDedupe: number
  /** (Default: 7 days) */
  readonly eventAge: number
  /** (Default: 30 days) */
  readonly historyAge: number
  /** (Default: 30 days) */
  readonly deadAge: number
  /** The dead-letter stream refuses more than this. (Default: 1 GiB) */
  readonly deadBytes: number
}

export const defaultTopology: TopologyOptions = {
  replicas: 1,
  partitions: 8,
  ackWait: 15_000,
  eventDedupe: 10 * minute,
  moveDedupe: 2 * minute,
  eventAge: 7 * day,
  historyAge: 30 * day,
  deadAge: 30 * day,
  deadBytes: 1024 ** 3
}

/** Room that an event leaves for the headers that Petrel adds on the way. */
const headerRoom = 64 * 1024

/** Messages handed out and not settled, waiting NAKs included: far above what the worker lets wait. */
const maxAckPending = 65_536

type WantedStream = Partial<StreamConfig> & Pick<StreamConfig, "name">
type WantedConsumer = Partial<ConsumerConfig> & Pick<ConsumerConfig, "durable_name">

/** A stream as it should be, and the durable consumer on it. */
export interface Wanted {
  readonly stream: WantedStream
  readonly consumer?: WantedConsumer
}

/** What was there already, what was made, what was changed and in which fields. */
export interface Change {
  readonly what: string
  readonly change: "unchanged" | "created" | "updated"
  readonly fields: ReadonlyArray<string>
}

/** The broker's layout cannot become what was asked for. */
export class TopologyError extends Schema.TaggedError<TopologyError>()("TopologyError", {
  message: Schema.String
}) {}

/** The layout a worker found on the broker. */
export interface Layout {
  readonly partitions: number
  /** ms */
  readonly ackWait: number
  /** ms */
  readonly moveDedupe: number
}

/**
 * All streams, buckets and consumers of an installation, as data, in the order in which they are
 * made: partition 0 comes last, and where it is there, all is there.
 */
export const wanted = (
  names: Names,
  options: TopologyOptions,
  maxPayload: number
): ReadonlyArray<Wanted> => {
  const common = {
    storage: StorageType.File,
    num_replicas: options.replicas,
    max_consumers: -1
  }
  const bucket = (name: string, markers: boolean): Wanted => ({
    stream: {
      ...common,
      name: `KV_${name}`,
      subjects: [`$KV.${name}.>`],
      retention: RetentionPolicy.Limits,
      max_msgs_per_subject: 1,
      discard: DiscardPolicy.New,
      allow_rollup_hdrs: true,
      deny_delete: true,
      // A stale read here would be a wrong decision: reads go to the leader.
      allow_direct: false,
      ...(markers ? { allow_msg_ttl: true, subject_delete_marker_ttl: nanos(minute) } : {})
    }
  })
  const partition = (index: number): Wanted => ({
    stream: {
      ...common,
      name: names.deliveries(index),
      subjects: [names.subjects.deliveriesOf(index), names.subjects.laterOf(index)],
      retention: RetentionPolicy.Workqueue,
      allow_direct: true,
      allow_msg_schedules: true,
      allow_msg_ttl: true,
      duplicate_window: nanos(options.moveDedupe)
    },
    consumer: {
      durable_name: names.deliverConsumer,
      // Schedules have subjects of their own, which no consumer may receive.
      filter_subject: names.subjects.deliveriesOf(index),
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(options.ackWait),
      max_ack_pending: maxAckPending,
      max_deliver: -1
    }
  })
  return [
    {
      stream: {
        ...common,
        name: names.events,
        subjects: [names.subjects.allEvents],
        retention: RetentionPolicy.Limits,
        max_age: nanos(options.eventAge),
        max_msg_size: maxPayload - headerRoom,
        duplicate_window: nanos(options.eventDedupe),
        allow_direct: true
      },
      consumer: {
        durable_name: names.routerConsumer,
        ack_policy: AckPolicy.Explicit,
        ack_wait: nanos(options.ackWait),
        max_ack_pending: 2_048,
        max_deliver: -1
      }
    },
    {
      stream: {
        ...common,
        name: names.history,
        subjects: [names.subjects.allFacts],
        retention: RetentionPolicy.Limits,
        max_age: nanos(options.historyAge),
        compression: StoreCompression.S2,
        allow_direct: true,
        duplicate_window: nanos(options.moveDedupe),
        republish: { src: names.subjects.failuresSource, dest: names.subjects.failuresTarget }
      }
    },
    {
      stream: {
        ...common,
        name: names.dead,
        subjects: [names.subjects.allDead],
        retention: RetentionPolicy.Limits,
        max_age: nanos(options.deadAge),
        max_bytes: options.deadBytes,
        discard: DiscardPolicy.New,
        allow_direct: true,
        duplicate_window: nanos(options.moveDedupe)
      }
    },
    bucket(names.buckets.endpoints, false),
    bucket(names.buckets.health, false),
    bucket(names.buckets.retries, true),
    bucket(names.buckets.workers, true),
    ...Array.from({ length: options.partitions }, (_, index) => partition(index)).reverse()
  ]
}

const streamNotFound = 10059
const consumerNotFound = 10014

/**
 * Makes what is missing, and changes what differs and may be changed.
 * Looks before it writes: re-creating a consumer can destroy its state.
 */
export const init = Effect.fnUntraced(function* (options: TopologyOptions) {
  const { ask, connection, jsm, names } = yield* Broker
  const { begun, partitions: found } = yield* findPartitions
  if (found !== undefined && found !== options.partitions)
    return yield* new TopologyError({
      message: `this installation has ${found} partitions and init cannot make them ${options.partitions}: say --partitions ${found}, or leave the flag out`
    })
  if (begun > options.partitions)
    return yield* new TopologyError({
      message: `an init with ${begun} partitions was broken off: finish it with --partitions ${begun}`
    })
  const changes: Array<Change> = []
  for (const item of wanted(names, options, connection.info?.max_payload ?? 1_048_576)) {
    changes.push(yield* ensureStream(item.stream))
    if (item.consumer !== undefined)
      changes.push(yield* ensureConsumer(item.stream.name, item.consumer))
  }
  return changes

  function ensureStream(stream: WantedStream) {
    const what = `stream ${stream.name}`
    return Effect.gen(function* () {
      const info = yield* ifFound(
        ask(`look at ${what}`, () => jsm.streams.info(stream.name)),
        streamNotFound
      )
      if (info === undefined) {
        yield* ask(`make ${what}`, () => jsm.streams.add(stream))
        return { what, change: "created", fields: [] } satisfies Change
      }
      const fields = differing(stream, info.config)
      if (fields.length === 0) return { what, change: "unchanged", fields } satisfies Change
      yield* ask(`change ${fields.join(", ")} of ${what}`, () =>
        jsm.streams.update(stream.name, { ...info.config, ...stream })
      )
      return { what, change: "updated", fields } satisfies Change
    })
  }

  function ensureConsumer(stream: string, consumer: WantedConsumer) {
    const name = consumer.durable_name ?? ""
    const what = `consumer ${name} of ${stream}`
    return Effect.gen(function* () {
      const info = yield* ifFound(
        ask(`look at ${what}`, () => jsm.consumers.info(stream, name)),
        consumerNotFound
      )
      if (info === undefined) {
        yield* ask(`make ${what}`, () => jsm.consumers.add(stream, consumer))
        return { what, change: "created", fields: [] } satisfies Change
      }
      const fields = differing(consumer, info.config)
      if (fields.length === 0) return { what, change: "unchanged", fields } satisfies Change
      yield* ask(`change ${fields.join(", ")} of ${what}`, () =>
        jsm.consumers.update(stream, name, consumer)
      )
      return { what, change: "updated", fields } satisfies Change
    })
  }
})

/**
 * The number of partitions on the broker, or undefined where no init has come to its end; and the
 * number that the last one was going to make.
 */
const findPartitions = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const all = yield* ask("list the streams", async () => {
    const list: Array<string> = []
    for await (const name of jsm.streams.names()) list.push(name)
    return new Set(list)
  })
  let partitions = 0
  while (all.has(names.deliveries(partitions))) partitions++
  const prefix = names.deliveries(0).slice(0, -1)
  const indexes = [...all]
    .filter((name) => name.startsWith(prefix))
    .map((name) => Number(name.slice(prefix.length)))
    .filter(Number.isSafeInteger)
  return {
    partitions: partitions === 0 ? undefined : partitions,
    begun: Math.max(-1, ...indexes) + 1
  }
})

/** What a worker must know of the layout. Fails with a hint where `petrel init` has not been run. */
export const readLayout = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const { partitions } = yield* findPartitions
  if (partitions === undefined)
    return yield* new TopologyError({
      message: `there is no installation named ${names.events.replace(/EVENTS$/, "")} on this broker: run \`petrel init\` first`
    })
  const stream = names.deliveries(0)
  const info = yield* ask(`look at stream ${stream}`, () => jsm.streams.info(stream))
  const consumer = yield* ask(`look at the consumer of ${stream}`, () =>
    jsm.consumers.info(stream, names.deliverConsumer)
  )
  return {
    partitions,
    ackWait: (consumer.config.ack_wait ?? nanos(30_000)) / 1e6,
    moveDedupe: info.config.duplicate_window / 1e6
  } satisfies Layout
})

const ifFound = <A>(effect: Effect.Effect<A, BrokerError>, notFound: number) =>
  effect.pipe(
    Effect.catchIf(
      (error) => error.code === notFound,
      () => Effect.succeed(undefined)
    )
  )

/** Fields of `want` that `have` says otherwise. The broker leaves defaults out of its answers. */
const differing = (want: object, have: object): ReadonlyArray<string> => {
  const actual = new Map(Object.entries(have))
  return Object.entries(want)
    .filter(([field, value]) => {
      const there = actual.get(field)
      if (there === undefined) return value !== false && value !== -1 && value !== 0
      return JSON.stringify(there) !== JSON.stringify(value)
    })
    .map(([field]) => field)
}
