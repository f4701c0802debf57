import { nanos } from "@nats-io/transport-node"
import { Effect, Option, Schema } from "effect"
import type { Names } from "../domain/names.ts"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { isNoSuchMessage } from "./broker-error.ts"
import { ageLimitMs } from "./kept-since.ts"
import type { TopologyOptions } from "./topology.ts"

/** The layout on the broker cannot be changed to the one that was asked for. */
export class TopologyError extends Schema.TaggedError<TopologyError>()("TopologyError", {
  message: Schema.String
}) {}

/** The broker has less free storage than a stream reserves. */
export class NoRoomError extends Schema.TaggedError<NoRoomError>()("NoRoomError", {
  stream: Schema.String,
  message: Schema.String
}) {}

/** The layout that a worker finds on the broker. */
export interface Layout {
  readonly partitions: number
  /** ms */
  readonly ackWait: number
  /** ms */
  readonly moveDedupe: number
  /** True if EVENTS has sources. A source may deliver an event twice. */
  readonly isSourced: boolean
}

export const streamNotFound = 10059
export const consumerNotFound = 10014

/** Turns the failure with the code `notFound` into undefined. */
export const ifFound = <A, R>(effect: Effect.Effect<A, BrokerError, R>, notFound: number) =>
  effect.pipe(
    Effect.catchIf(
      (error) => error.code === notFound,
      () => Effect.succeed(undefined)
    )
  )

/** State of changes to the number of partitions, stored under `layoutKey` in the workers bucket. */
export const LayoutChanges = Schema.Struct({
  v: Schema.Literal(1),
  /**
   * Number of completed changes. If it differs from the number that a worker started with, the
   * layout has changed.
   */
  epoch: Schema.Int,
  /** The highest sequence of any removed stream. A new stream of the same name begins after it. */
  beyond: Schema.Int,
  /** The change in progress. Until the stage `moving`, everything is where it was before. */
  change: Schema.optionalKey(
    Schema.Struct({
      from: Schema.Int,
      to: Schema.Int,
      stage: Schema.Literals(["settling", "moving"])
    })
  )
})
export type LayoutChanges = typeof LayoutChanges.Type

export const layoutKey = "layout"

const decodeChanges = Schema.decodeUnknownOption(Schema.fromJsonString(LayoutChanges))

/** Reads the state of layout changes from the leader, with its revision. */
export const readChanges = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const bucket = names.buckets.workers
  const message = yield* readMessage("look for a change of the layout", `KV_${bucket}`, {
    last_by_subj: `$KV.${bucket}.${layoutKey}`
  }).pipe(
    Effect.catchIf(
      (error) => isNoSuchMessage(error) || error.code === streamNotFound,
      () => Effect.succeed(null)
    )
  )
  if (message === null)
    return { changes: { v: 1, epoch: 0, beyond: 0 } satisfies LayoutChanges, revision: 0 }
  const changes: LayoutChanges | undefined = Option.getOrUndefined(decodeChanges(message.string()))
  if (changes === undefined)
    return yield* new TopologyError({
      message: `${layoutKey} in ${bucket} cannot be read: a newer Petrel may have written it`
    })
  return { changes, revision: message.seq }
})

/**
 * Fails while the number of partitions is being changed: deliveries may be in the wrong partition
 * then.
 */
export const refuseChange = Effect.gen(function* () {
  const { changes } = yield* readChanges
  if (changes.change === undefined) return changes
  const { from, to } = changes.change
  return yield* new TopologyError({
    message: `the number of partitions is being changed from ${from} to ${to}: wait until \`petrel repartition ${to}\` has finished or, where it was broken off, run it again`
  })
})

/**
 * Reads the partitions on the broker. `partitions` is undefined if no init has completed; `begun`
 * is the number that the last init was going to create; `isComplete` tells whether the streams and
 * buckets that newer versions need exist.
 */
export const findPartitions = Effect.gen(function* () {
  const { names, streamNames } = yield* Broker
  const all = new Set(yield* streamNames("list the streams"))
  const takingAlerts = yield* streamNames("look who takes alerts", names.subjects.allAlertEvents)
  let partitions = 0
  while (all.has(names.deliveries(partitions))) partitions++
  const prefixes = [names.deliveries(0), names.backlog(0)].map((name) => name.slice(0, -1))
  const indexes = prefixes.flatMap((prefix) =>
    [...all]
      .filter((name) => name.startsWith(prefix))
      .map((name) => Number(name.slice(prefix.length)))
      .filter(Number.isSafeInteger)
  )
  return {
    partitions: partitions === 0 ? undefined : partitions,
    begun: Math.max(-1, ...indexes) + 1,
    isComplete:
      takingAlerts.length > 0 &&
      [names.backlog(0), `KV_${names.buckets.jobs}`, names.configuration].every((name) =>
        all.has(name)
      )
  }
})

/** Of what is stored: headers, keys, subjects and records. Another version may have another one. */
const storedFormat = 2
/** Where the bucket of workers says which. */
const formatKey = "format"

const formatSubject = ({ buckets }: Names): string => `$KV.${buckets.workers}.${formatKey}`

/** The format of an installation; undefined where none is noted. */
const readFormat = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage(
    "look at the format of what is stored",
    `KV_${names.buckets.workers}`,
    { last_by_subj: formatSubject(names) }
  ).pipe(
    Effect.catchIf(
      (error) => isNoSuchMessage(error) || error.code === streamNotFound,
      () => Effect.succeed(null)
    )
  )
  const text = message?.string() ?? ""
  return text === "" ? undefined : Number(text)
})

const refuseFormat = (format: number) =>
  new TopologyError({
    message: `this installation holds data of format ${format}, and this version of Petrel reads format ${storedFormat} only: run the version that made it, or make another installation with --prefix and --events`
  })

/** Fails where an installation holds data that this version cannot read. */
export const refuseOtherFormat = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const format = yield* readFormat
  if (format === storedFormat) return
  if (format !== undefined) return yield* refuseFormat(format)
  const history = yield* ifFound(streamInfo("look at the history", names.history), streamNotFound)
  // The first format was not noted. An init that was broken off leaves an empty history.
  if (history !== undefined && history.state.messages > 0) return yield* refuseFormat(1)
})

/** Notes the format of what is stored from now on. */
export const noteFormat = Effect.gen(function* () {
  const { names, publish } = yield* Broker
  if ((yield* readFormat) === undefined)
    yield* publish(formatSubject(names), String(storedFormat), [])
})

/**
 * Reads the layout for a worker. Fails with a hint if `petrel init` has not been run, and while the
 * number of partitions is being changed.
 */
export const readLayout = Effect.gen(function* () {
  const { consumerInfo, names, streamInfo } = yield* Broker
  yield* refuseChange
  const { isComplete, partitions } = yield* findPartitions
  const format = partitions === undefined ? undefined : yield* readFormat
  if (format !== undefined && format !== storedFormat) return yield* refuseFormat(format)
  if (partitions !== undefined && (!isComplete || format === undefined))
    return yield* new TopologyError({
      message: "this installation was made by an older Petrel: run `petrel init` again"
    })
  if (partitions === undefined)
    return yield* new TopologyError({
      message: `there is no installation named ${names.events.replace(/EVENTS$/, "")} on this broker: run \`petrel init\` first`
    })
  const stream = names.deliveries(0)
  const info = yield* streamInfo(`look at stream ${stream}`, stream)
  const look = (stream: string, consumer: string) =>
    ifFound(consumerInfo(`look at the consumer of ${stream}`, stream, consumer), consumerNotFound)
  // Somebody may have removed one: a worker makes it again.
  const consumer =
    (yield* look(stream, names.deliverConsumer)) ??
    (yield* look(names.events, names.routerConsumer))
  const events = yield* streamInfo(`look at stream ${names.events}`, names.events)
  return {
    partitions,
    ackWait: (consumer?.config.ack_wait ?? nanos(30_000)) / 1e6,
    moveDedupe: info.config.duplicate_window / 1e6,
    isSourced: (events.config.sources?.length ?? 0) > 0
  } satisfies Layout
})

const millis = (nanoseconds: number): number => nanoseconds / 1e6

/**
 * Reads the options of an installation from the streams and consumers that exist. Returns none
 * before the first `petrel init`.
 */
export const readInstalled = Effect.gen(function* () {
  const { consumerInfo, names, streamInfo } = yield* Broker
  const stream = (name: string) =>
    ifFound(streamInfo(`look at stream ${name}`, name), streamNotFound)
  const router = ifFound(
    consumerInfo(`look at the consumer of ${names.events}`, names.events, names.routerConsumer),
    consumerNotFound
  )
  const [events, own, history, dead] = yield* Effect.all(
    [stream(names.events), stream(names.ownEvents), stream(names.history), stream(names.dead)],
    { concurrency: "unbounded" }
  )
  const { begun } = yield* findPartitions
  const consumer = events === undefined ? undefined : yield* router
  const ackWait = consumer?.config.ack_wait
  return {
    ...(begun === 0 ? {} : { partitions: begun }),
    ...(events === undefined
      ? {}
      : {
          replicas: events.config.num_replicas,
          eventDedupe: millis((own ?? events).config.duplicate_window),
          eventAge: ageLimitMs(events.config),
          eventBytes: events.config.max_bytes
        }),
    ...(own === undefined
      ? {}
      : {
          tenants: (events?.config.sources ?? []).flatMap(({ name }) => names.tenantOf(name) ?? []),
          tenantBytes: own.config.max_bytes
        }),
    ...(ackWait === undefined ? {} : { ackWait: millis(ackWait) }),
    ...(history === undefined
      ? {}
      : {
          historyAge: millis(history.config.max_age),
          historyBytes: history.config.max_bytes,
          moveDedupe: millis(history.config.duplicate_window)
        }),
    ...(dead === undefined
      ? {}
      : { deadAge: millis(dead.config.max_age), deadBytes: dead.config.max_bytes })
  } satisfies Partial<TopologyOptions>
})
