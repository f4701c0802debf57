import { isDeepStrictEqual } from "node:util"
import { JetStreamError } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Context, Effect, Option, Schema } from "effect"
import type { LevelRange } from "../domain/feature-level.ts"
import { levelProblem, ownLevels } from "../domain/feature-level.ts"
import { Broker } from "./broker.ts"
import {
  BrokerError,
  consumerNotFound,
  ifFound,
  isNoSuchMessage,
  streamNotFound
} from "./broker-error.ts"
import { ageLimitMs } from "./kept-since.ts"
import type { TopologyOptions } from "./topology.ts"
import { defaultTopology, isOfAccess, wanted } from "./topology.ts"
import { readValue, writeValue } from "./values.ts"

/** The layout on the broker cannot be changed to the one that was asked for. */
export class TopologyError extends Schema.TaggedError<TopologyError>()("TopologyError", {
  message: Schema.String
}) {}

/** The broker has less free storage than a stream reserves. */
export class NoSpaceError extends Schema.TaggedError<NoSpaceError>()("NoSpaceError", {
  message: Schema.String
}) {}

/** The layout that a worker finds on the broker. */
export interface Layout {
  readonly partitions: number
  /** See {@link LayoutRecord}. */
  readonly historyAtChange: number
  /** ms */
  readonly ackWait: number
  /** ms */
  readonly moveDedupe: number
  /** True if EVENTS has sources. A source may deliver an event twice. */
  readonly isSourced: boolean
}

/** The feature levels that this process can work at. A test replaces them by those of another version. */
export const FeatureLevels = Context.Reference<LevelRange>("petrel/broker/FeatureLevels", {
  defaultValue: () => ownLevels
})

/** Of what is stored: headers, keys, subjects and records. Another version may have another one. */
export const storedFormat = 3

type IntakeSetting = "intake" | "intakeAge" | "intakeBytes"

/** What `petrel init` was told and chose last: a stream that is missing is made again with it. */
const Settings = Schema.Struct({
  replicas: Schema.Int,
  ackWait: Schema.Number,
  eventDedupe: Schema.Number,
  moveDedupe: Schema.Number,
  eventAge: Schema.Number,
  eventBytes: Schema.Int,
  historyAge: Schema.Number,
  historyBytes: Schema.Int,
  deadAge: Schema.Number,
  deadBytes: Schema.Int,
  /** Absent in the record of an installation from before there was an intake. */
  intake: Schema.optionalKey(Schema.Boolean),
  intakeAge: Schema.optionalKey(Schema.Number),
  intakeBytes: Schema.optionalKey(Schema.Int),
  tenants: Schema.Array(Schema.String),
  tenantBytes: Schema.Int
}) satisfies Schema.Schema<Omit<TopologyOptions, "partitions" | IntakeSetting>>

/**
 * What the installation was made with, stored under `layoutKey` in the workers bucket. A version
 * that stores another format refuses the record by its `v`, before it reads or writes anything else.
 */
export const LayoutRecord = Schema.Struct({
  v: Schema.Literal(storedFormat),
  /** Absent until an init has completed. During a change, the number before it. */
  partitions: Schema.optionalKey(Schema.Int),
  /**
   * Number of completed changes. If it differs from the number that a worker started with, the
   * layout has changed.
   */
  epoch: Schema.Int,
  /** True if the tokens are in an account of their own. (Default: false) */
  isAccessApart: Schema.optionalKey(Schema.Boolean),
  /** The feature level (domain/feature-level.ts). (Default: 1) */
  level: Schema.optionalKey(Schema.Int),
  /** A level to which it is being raised: nothing that does not know that one may begin. */
  raising: Schema.optionalKey(Schema.Int),
  /**
   * Last sequence of the history when the last change completed. Facts up to it may be about messages
   * of another partition than their endpoint's present one. (Default: 0, no change yet)
   */
  historyAtChange: Schema.optionalKey(Schema.Int),
  /** Absent until an init has completed. What streams that exist say takes precedence. */
  settings: Schema.optionalKey(Settings),
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
export type LayoutRecord = typeof LayoutRecord.Type

export const layoutKey = "layout"

/** Returns the feature level of an installation. */
export const levelOf = ({ level = 1 }: LayoutRecord): number => level

const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(LayoutRecord))
const decodeFormat = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ v: Schema.Int }))
)

const otherFormat = (age: "an older" | "a newer" | "another"): TopologyError =>
  new TopologyError({
    message: `this installation was made by ${age} version of Petrel, whose data this version neither reads nor changes: let that version deliver what waits there, and make an installation for this one beside it (\`petrel init\` with \`--prefix\` and \`--events\`)`
  })

const unreadable = (text: string): TopologyError => {
  const { v = storedFormat } = Option.getOrElse(decodeFormat(text), () => ({ v: storedFormat }))
  return otherFormat(v > storedFormat ? "a newer" : v < storedFormat ? "an older" : "another")
}

/**
 * Reads the layout record from the leader, with its revision: 0 if there is none. Fails if another
 * version wrote it, and if the installation is at a feature level that this one does not know.
 */
export const readLayoutRecord = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const known = yield* FeatureLevels
  const bucket = names.buckets.workers
  const message = yield* readMessage("read the layout", `KV_${bucket}`, {
    last_by_subj: `$KV.${bucket}.${layoutKey}`
  }).pipe(
    Effect.catchIf(
      (error) => isNoSuchMessage(error) || error.code === streamNotFound,
      () => Effect.succeed(null)
    )
  )
  const text = message?.string() ?? ""
  if (message === null || text === "") {
    const none: LayoutRecord = { v: storedFormat, epoch: 0, level: known.newest, beyond: 0 }
    return { record: none, revision: message?.seq ?? 0 }
  }
  const record: LayoutRecord | undefined = Option.getOrUndefined(decodeRecord(text))
  if (record === undefined) return yield* unreadable(text)
  const problem =
    levelProblem(levelOf(record), known) ??
    (record.raising === undefined ? undefined : levelProblem(record.raising, known))
  if (problem !== undefined) return yield* new TopologyError({ message: problem })
  return { record, revision: message.seq }
})

/**
 * Fails while the number of partitions is being changed: deliveries may be in the wrong partition
 * then.
 */
export const refuseChange = Effect.gen(function* () {
  const { record } = yield* readLayoutRecord
  if (record.change === undefined) return record
  const { from, to } = record.change
  return yield* new TopologyError({
    message: `the number of partitions is being changed from ${from} to ${to}: wait until \`petrel repartition ${to}\` has finished or, if it was interrupted, run it again`
  })
})

/** True if the tokens are in this account for certain: without a record they may be in another. */
export const isAccessHere = ({ isAccessApart, partitions }: LayoutRecord): boolean =>
  partitions !== undefined && isAccessApart !== true

/**
 * Reads the layout record, and which streams of the installation there are. `partitions` is undefined
 * if no init has completed; `begun` is the number that the last init was going to create, as the
 * streams tell; `missing` are the streams of a completed installation that do not exist.
 */
export const readInstallation = Effect.gen(function* () {
  const { names, streamNames } = yield* Broker
  const { record } = yield* readLayoutRecord
  const all = new Set(yield* streamNames("list the streams"))
  if (all.has(names.restoring))
    return yield* new TopologyError({
      message:
        "a backup is being restored to this broker, or a restore was interrupted: if none is running, run `petrel restore` again"
    })
  const begun = Math.max(-1, ...[...all].map((name) => names.partitionIn(name) ?? -1)) + 1
  let inRow = 0
  while (all.has(names.deliveries(inRow))) inRow++
  const partitions =
    // A change creates and removes streams, each partition after the other.
    record.change !== undefined
      ? inRow
      : // Without a record, as its bucket was removed, the streams tell.
        (record.partitions ?? (inRow === 0 ? undefined : begun))
  const missing =
    partitions === undefined || record.change !== undefined
      ? []
      : wanted(
          names,
          { ...defaultTopology, intake: record.settings?.intake === true, partitions },
          0
        )
          .map(({ stream }) => stream.name)
          .filter((name) => !all.has(name))
          .filter((name) => isAccessHere(record) || !isOfAccess(names, name))
  const hasIntake = record.settings?.intake === true || all.has(names.intake)
  return { record, partitions, begun, missing, hasIntake }
})

/** Reads the partitions of the installation: see {@link readInstallation}. */
export const findPartitions = Effect.map(readInstallation, ({ begun, missing, partitions }) => ({
  partitions,
  begun,
  missing
}))

/** Where an older version noted its format, in the bucket of workers. */
const olderFormatKey = "format"

/**
 * Fails where an installation holds data of a version that noted no format, or noted it in another place.
 * Where the bucket of workers is empty or gone, nothing contradicts this version. Nor does what workers
 * that run have stored there since somebody removed the record: versions that noted no format made no
 * bucket of jobs.
 */
export const refuseOlderFormat = Effect.gen(function* () {
  const { names, streamInfo, streamNames } = yield* Broker
  const { record } = yield* readLayoutRecord
  if (record.partitions !== undefined) return
  const all = yield* streamNames("list the streams")
  const isHere = (bucket: string) => all.includes(`KV_${bucket}`)
  const { jobs, workers } = names.buckets
  if (!isHere(workers)) return
  if (isHere(jobs) && (yield* readValue(workers, olderFormatKey)) === undefined) return
  const isEmpty = (name: string) =>
    Effect.map(
      ifFound(streamInfo(`look at stream ${name}`, name), streamNotFound),
      (info) => (info?.state.messages ?? 0) === 0
    )
  if (yield* isEmpty(`KV_${names.buckets.workers}`)) return
  if (yield* isEmpty(names.history)) return
  return yield* otherFormat("an older")
})

/** Returns the settings among options. */
const settingsIn = ({ partitions: _, ...settings }: TopologyOptions): typeof Settings.Type =>
  settings

/**
 * Notes the format, the number of partitions and the settings of a completed installation, and where
 * its tokens are. Returns whether there was no record.
 *
 * @param beyond a sequence above those of removed streams; 0 in a new installation.
 */
export const noteLayout = Effect.fnUntraced(function* (
  options: TopologyOptions,
  beyond: number,
  isAccessApart: boolean
) {
  const { names } = yield* Broker
  const { record, revision } = yield* readLayoutRecord
  const layout: LayoutRecord = {
    ...record,
    ...(isAccessApart ? { isAccessApart } : {}),
    ...(record.partitions === undefined ? { beyond, partitions: options.partitions } : {}),
    settings: settingsIn(options)
  }
  if (isDeepStrictEqual(layout, record)) return false
  const value = JSON.stringify(layout)
  yield* writeValue(names.buckets.workers, layoutKey, value, { expected: revision })
  return record.partitions === undefined
})

/** Names a few streams, and the number of the others. */
const someOf = (streams: ReadonlyArray<string>): string =>
  streams.length <= 3
    ? streams.join(", ")
    : `${streams.slice(0, 2).join(", ")} and ${streams.length - 2} more`

/**
 * Reads the layout for a worker. Fails with a hint if `petrel init` has not been run, if something
 * of the installation is missing, and while the number of partitions is being changed.
 */
export const readLayout = Effect.gen(function* () {
  const { consumerInfo, names, streamInfo } = yield* Broker
  const record = yield* refuseChange
  const { missing, partitions } = yield* findPartitions
  if (partitions === undefined)
    return yield* new TopologyError({
      message: `there is no installation named ${names.events.replace(/EVENTS$/, "")} on this broker: run \`petrel init\` first`
    })
  yield* refuseOlderFormat
  if (missing.length > 0)
    return yield* new TopologyError({
      message: `${someOf(missing)} ${missing.length === 1 ? "is" : "are"} missing on the broker: run \`petrel init\`, which makes again what is missing and says what may be lost`
    })
  if (record.partitions === undefined)
    return yield* new TopologyError({
      message: `the record of the layout is missing in ${names.buckets.workers}: run \`petrel init\`, which writes it again`
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
    historyAtChange: record.historyAtChange ?? 0,
    ackWait: (consumer?.config.ack_wait ?? nanos(30_000)) / 1e6,
    moveDedupe: info.config.duplicate_window / 1e6,
    isSourced: (events.config.sources?.length ?? 0) > 0,
    /** The broker's clock meanwhile, ms since the epoch; NaN if it does not tell. */
    brokerMs: Date.parse(info.ts ?? "")
  } satisfies Layout & { readonly brokerMs: number }
})

/**
 * Reads the number of partitions, for those who look for an endpoint's: of the layout only the record
 * is read. Where that does not say it, and while the number is being changed, as {@link readLayout}.
 */
export const readPartitions = Effect.gen(function* () {
  const { partitions } = yield* refuseChange
  return partitions ?? (yield* readLayout).partitions
})

/** The status of a direct reading that nobody answers: the stream has no replica at hand, or is none. */
const nobodyAnswers = 503

const mayBeMissing = ({ cause, code }: BrokerError): boolean =>
  code === streamNotFound ||
  (cause instanceof JetStreamError && "code" in cause && cause.code === nobodyAnswers)

/** Fails as {@link readLayout} where a stream that is asked does not exist: that says what is missing. */
export const orSayMissing = <A, E extends { readonly _tag: string }, R>(
  asks: Effect.Effect<A, E | BrokerError, R>
) =>
  Effect.tapError(asks, (error) =>
    error instanceof BrokerError && mayBeMissing(error) ? readLayout : Effect.void
  )

const millis = (nanoseconds: number): number => nanoseconds / 1e6

/**
 * Reads the options of an installation from the streams and consumers that exist, and of those that
 * are missing from the record of the layout. Returns none before the first `petrel init`.
 */
export const readInstalled = Effect.gen(function* () {
  const { consumerInfo, names, streamInfo } = yield* Broker
  const stream = (name: string) =>
    ifFound(streamInfo(`look at stream ${name}`, name), streamNotFound)
  const router = ifFound(
    consumerInfo(`look at the consumer of ${names.events}`, names.events, names.routerConsumer),
    consumerNotFound
  )
  const [events, own, intake, ...letters] = yield* Effect.all(
    [names.events, names.ownEvents, names.intake, names.history, names.dead].map(stream),
    { concurrency: "unbounded" }
  )
  // The broker takes the age off a stream that is sealed.
  const [history, dead] = letters.map((info) => (info?.config.sealed === true ? undefined : info))
  const { begun, partitions = begun } = yield* findPartitions
  // The server may have been too old for an intake when the record was made.
  const { intake: _, ...settings } = (yield* readLayoutRecord).record.settings ?? {}
  const consumer = events === undefined ? undefined : yield* router
  const ackWait = consumer?.config.ack_wait
  // Init gives copies back that somebody has taken away with another tool.
  const copies = [events, ...letters].flatMap((info) => info?.config.num_replicas ?? [])
  return {
    ...settings,
    ...(partitions === 0 ? {} : { partitions }),
    ...(copies.length === 0 ? {} : { replicas: Math.max(...copies) }),
    ...(events === undefined
      ? {}
      : {
          eventDedupe: millis((own ?? events).config.duplicate_window),
          eventAge: ageLimitMs(events.config),
          eventBytes: events.config.max_bytes
        }),
    ...(own === undefined ? {} : { tenantBytes: own.config.max_bytes }),
    ...(intake === undefined
      ? {}
      : {
          intake: true,
          intakeAge: millis(intake.config.max_age),
          intakeBytes: intake.config.max_bytes
        }),
    ...(own === undefined || events === undefined
      ? {}
      : {
          tenants: (events.config.sources ?? []).flatMap(({ name }) => names.tenantOf(name) ?? [])
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
