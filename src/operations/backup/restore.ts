import type { StreamConfig, StreamState } from "@nats-io/jetstream"
import { Clock, Effect, Schema } from "effect"
import { AccessBroker, inAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import { BrokerError } from "../../broker/broker-error.ts"
import { deliverConsumer, routerConsumer, startAfter } from "../../broker/consumers.ts"
import { noteRestored, readRestored } from "../../broker/installation.ts"
import { storedFormat } from "../../broker/installed.ts"
import { isUnanswered } from "../../broker/keep-going.ts"
import { PublishError } from "../../broker/publication.ts"
import { checkReservations, onceFreed, untilReported } from "../../broker/reservation.ts"
import {
  markRestoring,
  readRestoring,
  removeStream,
  restoreSnapshot,
  takeSubjects,
  takesNothing
} from "../../broker/snapshot.ts"
import { resumeSources } from "../../broker/sources/restart.ts"
import type { Names } from "../../domain/names.ts"
import { checkFile, chunksOf, readManifestText } from "./backup-files.ts"
import { BackupError, type CopiedStream, type Manifest, readManifest } from "./manifest.ts"
import { type Mended, mend, restoreTail } from "./mend.ts"

/** What a restore does, for who shows its progress. */
export type RestoreStep =
  /** Bytes of all files, each of which is read to check it, and then to restore it. */
  | { readonly event: "begun"; readonly bytes: number; readonly manifest: Manifest }
  | { readonly event: "checked"; readonly bytes: number }
  | { readonly event: "restoring"; readonly stream: string }
  | { readonly event: "sent"; readonly bytes: number }
  | { readonly event: "stream"; readonly stream: string; readonly messages: number }

export interface RestoreOptions {
  readonly directory: string
  /** Copies of each stream. (Default: as many as there were) */
  readonly replicas?: number | undefined
  /** Checks the backup and the broker, and changes nothing. (Default: false) */
  readonly dryRun?: boolean
  readonly tell: (step: RestoreStep) => void
}

/** What a restore made, or would make. */
export interface RestoreResult {
  readonly manifest: Manifest
  /** What was mended; undefined where nothing was restored now. */
  readonly mended: Mended | undefined
  /** True if an earlier restore was broken off, whose streams were removed first. */
  readonly resumed: boolean
  /** True if an earlier restore of the backup lacked its last step only, which is all that was done. */
  readonly lackedLastStep: boolean
  readonly streams: number
  readonly messages: number
  /** How long it took, ms. */
  readonly tookMs: number
}

const versionOf = (text: string): readonly [number, number] => {
  const [major = 0, minor = 0] = text.split(".").map(Number)
  return [major, minor]
}

const isOlder = (one: string, other: string): boolean => {
  const [[a, b], [c, d]] = [versionOf(one), versionOf(other)]
  return a < c || (a === c && b < d)
}

/** Fails unless the backup is one of this version and of the names that were asked for. */
const checkBackup = Effect.fnUntraced(function* (manifest: Manifest) {
  const { names, server } = yield* Broker
  const { eventRoot, format, natsServer, prefix } = manifest
  if (format !== storedFormat)
    return yield* new BackupError({
      message: `this backup was made by Petrel ${manifest.petrel}, whose data this version neither reads nor changes: restore it with that version`
    })
  if (`${prefix}EVENTS` !== names.events || eventRoot !== names.eventRoot)
    return yield* new BackupError({
      message: `this is a backup of the installation ${prefix} with events on ${eventRoot}: restore it with --prefix ${prefix} --events ${eventRoot}`
    })
  const here = server().version ?? ""
  if (isOlder(here, natsServer))
    return yield* new BackupError({
      message: `this backup was made by nats-server ${natsServer}, and this one is ${here}, which may be unable to read it: restore it to ${natsServer} or newer`
    })
})

/** Fails where the tokens are to be in another account than they were. */
const checkAccess = Effect.fnUntraced(function* ({ streams }: Manifest) {
  const access = yield* AccessBroker
  const isApart = streams.some(({ account }) => account === "access")
  if (isApart && access === undefined)
    return yield* new BackupError({
      message:
        "this installation kept its tokens in an account of their own (ACCESS in nats.conf): give the login of a user of it in NATS_ACCESS_URL, or with --access-creds or --access-nkey"
    })
  if (!isApart && access !== undefined)
    return yield* new BackupError({
      message:
        "this installation kept its tokens in the account of its streams: restore it without NATS_ACCESS_URL, then run `petrel init` with it"
    })
})

/** Streams of this installation that are on the broker. */
const existing = Effect.fnUntraced(function* (names: Names) {
  const { streamNames } = yield* Broker
  return (yield* streamNames("list the streams")).filter(names.isOwn)
})

/** Queues and backlogs that are there: an earlier restore may have been of a backup with more of them. */
const queuesHere = Effect.fnUntraced(function* (names: Names) {
  return (yield* existing(names)).filter((name) => names.partitionIn(name) !== undefined)
})

const inAccountOf = <A, E, R>(
  { account }: Pick<CopiedStream, "account">,
  effect: Effect.Effect<A, E, R | Broker>
) => (account === "access" ? inAccess(effect) : effect)

/** Fails where there is an installation already. Returns whether a restore was broken off. */
const checkEmpty = Effect.fnUntraced(function* ({ streams }: Manifest) {
  const { names } = yield* Broker
  if ((yield* readRestoring) !== undefined) return true
  const found = yield* existing(names)
  const apart = streams.filter(({ account }) => account === "access").map(({ name }) => name)
  // Who may only make backups may not list the streams there, and need not where this is known.
  if (found.length === 0 && apart.length > 0)
    found.push(...(yield* inAccess(existing(names))).filter((name) => apart.includes(name)))
  const [first] = found
  if (first === undefined) return false
  return yield* new BackupError({
    message: `there is an installation on this broker already (${first}${found.length > 1 ? ` and ${found.length - 1} more streams` : ""}), and a restore does not replace it: restore to an empty broker`
  })
})

/**
 * Fails where streams of somebody else take subjects that the installation needs. The broker would
 * refuse them at the last step only, when all is there.
 */
const checkSubjects = Effect.fnUntraced(function* (
  copied: ReadonlyArray<CopiedStream>,
  config: (stream: CopiedStream) => StreamConfig
) {
  for (const account of ["streams", "access"] as const) {
    const streams = copied.filter((stream) => stream.account === account).map(config)
    if (streams.length > 0) yield* inAccountOf({ account }, checkSubjectsHere(streams))
  }
})

const checkSubjectsHere = Effect.fnUntraced(function* (streams: ReadonlyArray<StreamConfig>) {
  const { names, streamNames } = yield* Broker
  if ((yield* streamNames("list the streams")).every(names.isOwn)) return
  for (const { name, subjects = [] } of streams)
    for (const subject of subjects) {
      const taking = yield* streamNames("list the streams that take a subject", subject)
      const other = taking.find((one) => !names.isOwn(one))
      if (other !== undefined)
        return yield* new BackupError({
          message: `the stream ${other} on this broker takes subjects that ${name} needs (${subject}): give it other subjects or remove it, or restore to an empty broker`
        })
    }
})

/** Says first that the files are whole, where only that and the broker are checked. */
const wholeIf =
  (dryRun: boolean) =>
  <E>(error: E): E | BackupError =>
    dryRun && (error instanceof BackupError || error instanceof BrokerError)
      ? new BackupError({ message: `all files of the backup are intact, but ${error.message}` })
      : error

const decodeConfig = Schema.decodeUnknownSync(
  Schema.StructWithRest(Schema.Struct({ name: Schema.String, num_replicas: Schema.Int }), [
    Schema.Record(Schema.String, Schema.Unknown)
  ])
)

/** The broker gives configurations, and takes them as they are. */
const configOf = ({ config }: CopiedStream, replicas: number | undefined): StreamConfig => {
  const read = decodeConfig(config)
  return { ...read, num_replicas: replicas ?? read.num_replicas } as unknown as StreamConfig
}

/** The state is the broker's own, too, and goes back as it came. */
const stateOf = ({ state }: CopiedStream): StreamState => state as unknown as StreamState

/** The order in which streams are made: what others copy from first, and what makes it usable last. */
const inOrder = (names: Names, streams: ReadonlyArray<CopiedStream>) => {
  const rank = ({ name }: CopiedStream) =>
    name === names.history || name === names.intake
      ? 0
      : name === `KV_${names.buckets.workers}`
        ? 2
        : 1
  return streams.toSorted((a, b) => rank(a) - rank(b))
}

/**
 * True for a stream into which others write, whoever works here: senders of events, gateways, relays
 * of outboxes, and people who set up endpoints, sources, alerts, tokens and jobs.
 */
const isWrittenByOthers = ({ buckets, events, intake }: Names, { name }: CopiedStream): boolean => {
  const { alerts, endpoints, jobs, sources, tokens } = buckets
  const closed = [alerts, endpoints, jobs, sources, tokens].map((bucket) => `KV_${bucket}`)
  return [events, intake, ...closed].includes(name)
}

/** Makes a stream of its copy, without its sources. Nobody but Petrel can publish into it yet. */
const restoreStream = Effect.fnUntraced(function* (
  { directory, tell }: RestoreOptions,
  stream: CopiedStream,
  { sources: _, ...config }: StreamConfig
) {
  const { names } = yield* Broker
  // What is acknowledged now would be lost if the restore begins anew.
  const subjects = isWrittenByOthers(names, stream)
    ? [names.subjects.removed(stream.name)]
    : config.subjects
  tell({ event: "restoring", stream: stream.name })
  const counted = async function* () {
    for await (const chunk of chunksOf(directory, stream)) {
      tell({ event: "sent", bytes: chunk.length })
      yield chunk
    }
  }
  const made = Effect.suspend(() =>
    restoreSnapshot({ config: { ...config, subjects }, state: stateOf(stream) }, counted())
  )
  const state = yield* inAccountOf(stream, untilReported(made, "run `petrel restore` again"))
  // A copy may hold more than the broker said when it began: what was stored in that moment.
  if (state.last_seq < stream.lastSeq)
    return yield* new BackupError({
      message: `${stream.name} came back with ${state.last_seq} as its last sequence instead of ${stream.lastSeq}: the broker did not take all of it`
    })
  tell({ event: "stream", stream: stream.name, messages: state.messages })
})

/**
 * Lets senders publish again, and people set up what they need: the last step. What is acknowledged
 * then would be lost if the restore began anew.
 */
const openStreams = Effect.fnUntraced(function* (
  names: Names,
  streams: ReadonlyArray<CopiedStream>,
  config: (stream: CopiedStream) => StreamConfig
) {
  for (const stream of streams)
    if (isWrittenByOthers(names, stream))
      yield* inAccountOf(stream, takeSubjects(stream.name, config(stream).subjects))
})

/** Returns whether a restore of this backup was broken off at its last step. */
const lacksLastStep = Effect.fnUntraced(function* ({ id, streams }: Manifest) {
  const { names } = yield* Broker
  if ((yield* readRestoring) !== undefined) return false
  let isClosed = false
  for (const stream of streams)
    if (isWrittenByOthers(names, stream) && (yield* inAccountOf(stream, takesNothing(stream.name))))
      isClosed = true
  return isClosed && (yield* readRestored)?.backup === id
})

/** Makes the consumers, that of the routers where it was. */
const makeConsumers = Effect.fnUntraced(function* ({
  ackWaitMs,
  partitions,
  routedUpTo
}: Manifest) {
  const { makeConsumer, names } = yield* Broker
  yield* makeConsumer("make the routers' consumer", names.events, {
    ...routerConsumer(names, ackWaitMs),
    ...startAfter(routedUpTo)
  })
  for (let index = 0; index < partitions; index++)
    yield* makeConsumer(
      `make the consumer of partition ${index}`,
      names.deliveries(index),
      deliverConsumer(names, index, ackWaitMs)
    )
})

/**
 * Says what to do where a restore breaks off that has begun.
 *
 * @param isCluster a stream may be given to a server that is away, and nothing answers then.
 */
const broken =
  (isCluster: boolean) =>
  <E>(error: E): E | BackupError => {
    if (!(error instanceof BrokerError || error instanceof PublishError)) return error
    const { message } = error
    const remedy = /no space left on device|insufficient resources/.test(message)
      ? "free some space on the broker's disk, then run"
      : isCluster && isUnanswered(error)
        ? "bring all servers of the cluster back, then run"
        : "run"
    return new BackupError({ message: `${message}: ${remedy} \`petrel restore\` again` })
  }

/** Makes the streams of a backup, with what belongs to them. */
const restoreAll = Effect.fnUntraced(function* (
  options: RestoreOptions,
  {
    config,
    copies,
    manifest,
    streams
  }: {
    readonly config: (stream: CopiedStream) => StreamConfig
    readonly copies: number
    readonly manifest: Manifest
    readonly streams: ReadonlyArray<CopiedStream>
  }
) {
  const { directory } = options
  const { names, streamInfo } = yield* Broker
  yield* markRestoring(manifest.id, copies)
  const restoreOne = (stream: CopiedStream) => restoreStream(options, stream, config(stream))
  const workers = `KV_${names.buckets.workers}`
  for (const stream of streams) if (stream.name !== workers) yield* restoreOne(stream)

  for (const stream of streams) {
    const { sources = [] } = config(stream)
    if (sources.length > 0) yield* inAccountOf(stream, resumeSources(stream.name, sources))
  }

  yield* makeConsumers(manifest)
  for (const stream of streams) if (stream.name === workers) yield* restoreOne(stream)
  for (const stream of streams)
    if (stream.tail !== undefined && stream.name.startsWith("KV_"))
      yield* restoreTail(directory, stream.tail)
  const mended = yield* mend(directory, manifest)
  const at = yield* Clock.currentTimeMillis
  yield* noteRestored({
    backup: manifest.id,
    factsUntil: manifest.history.at,
    eventsUntil: manifest.events.at,
    lastEvent: manifest.events.seq,
    at
  })
  // The consumers of a cluster are there once their leader answers.
  yield* streamInfo(`look at ${names.events}`, names.events)
  yield* removeStream(names.restoring)
  yield* openStreams(names, streams, config)
  return { mended, at }
})

/**
 * Makes an installation of a backup, on a broker that has none. Until it is complete, nobody can use
 * what is there; a restore that was broken off begins anew, or at its last step does that.
 */
export const restore = Effect.fnUntraced(function* (options: RestoreOptions) {
  const { directory, dryRun = false, replicas, tell } = options
  const startedAt = yield* Clock.currentTimeMillis
  const { names, server } = yield* Broker
  const manifest = yield* Effect.flatMap(readManifestText(directory), readManifest)
  yield* checkBackup(manifest)
  yield* checkAccess(manifest)
  const lackedLastStep = yield* lacksLastStep(manifest)
  const streams = inOrder(names, manifest.streams)
  const files = streams.flatMap((stream) => [stream, ...(stream.tail ? [stream.tail] : [])])
  tell({ event: "begun", manifest, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) })
  const checkFiles = Effect.forEach(
    files,
    (file) => checkFile(directory, file, (bytes) => tell({ event: "checked", bytes })),
    { discard: true }
  )
  // Whether a backup is whole can be asked where the installation itself is, too.
  if (dryRun) yield* checkFiles
  const config = (stream: CopiedStream) => configOf(stream, replicas)
  const resumed = !lackedLastStep && (yield* Effect.mapError(checkEmpty(manifest), wholeIf(dryRun)))
  yield* Effect.mapError(checkSubjects(streams, config), wholeIf(dryRun))
  if (!dryRun) yield* checkFiles

  const counted = {
    manifest,
    resumed,
    lackedLastStep,
    streams: streams.length,
    messages: streams.reduce((sum, { messages }) => sum + messages, 0)
  }
  if (lackedLastStep) {
    if (!dryRun) yield* openStreams(names, streams, config)
    const tookMs = (yield* Clock.currentTimeMillis) - startedAt
    return { ...counted, mended: undefined, tookMs } satisfies RestoreResult
  }
  const copies = Math.max(...streams.map((stream) => config(stream).num_replicas))
  if (!dryRun && resumed) {
    for (const stream of streams) yield* inAccountOf(stream, removeStream(stream.name))
    for (const queue of yield* queuesHere(names)) yield* removeStream(queue)
    yield* removeStream(names.restoring)
  }
  const space = checkReservations(
    streams
      .filter(({ account }) => account === "streams")
      .map((stream) => ({ stream: config(stream) })),
    copies,
    () =>
      "a restore reserves what the installation did: raise the account's max_file or the broker's max_file_store"
  )
  yield* !dryRun && resumed ? onceFreed(space) : space
  if (dryRun) {
    const tookMs = (yield* Clock.currentTimeMillis) - startedAt
    return { ...counted, mended: undefined, tookMs } satisfies RestoreResult
  }

  const done = yield* Effect.mapError(
    restoreAll(options, { config, copies, manifest, streams }),
    broken(server().cluster !== undefined)
  )
  return { ...counted, mended: done.mended, tookMs: done.at - startedAt } satisfies RestoreResult
})
