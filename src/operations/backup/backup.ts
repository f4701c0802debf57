import { randomUUID } from "node:crypto"
import type { StreamState } from "@nats-io/jetstream"
import { Clock, Effect } from "effect"
import { requireAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import { BrokerError, isForbidden } from "../../broker/broker-error.ts"
import { readInstallation } from "../../broker/installation.ts"
import {
  type Layout,
  readInstalled,
  readLayout,
  readLayoutRecord,
  storedFormat
} from "../../broker/installed.ts"
import type { Names } from "../../domain/names.ts"
import { makeBackupFolder, removeParts, writeManifest } from "./backup-files.ts"
import { type BackupStep, Copies, stateOf } from "./copies.ts"
import { BackupError, type Manifest, manifestText } from "./manifest.ts"

export interface BackupOptions {
  readonly directory: string
  /** The version of Petrel that makes it. */
  readonly version: string
  readonly tell: (step: BackupStep) => Effect.Effect<void>
  /** Called with the number of bytes that came, fewer than the broker counts; it is waited for. */
  readonly copied: (bytes: number) => void | Promise<void>
}

/**
 * Copies an installation into a folder while it works. One stream is copied after the other, and what
 * is stored or removed meanwhile makes each copy another moment's. The order makes them agree as after
 * a crash: what has left the stream of an early copy by then is there, with what a later copy says of
 * it.
 *
 * 1. How far routing was, and the bucket of workers: from there on everything is looked at again. Then
 *    retry records: one that says of a message that its delivery has left it is older than the copy of
 *    where that went.
 * 2. Each queue, then its backlogs, then what came into the two meanwhile: a delivery that has not
 *    ended is in one of them.
 * 3. The copy of configurations and the jobs, then the history: it has the end of all that left 2,
 *    whatever configurations hold, and what jobs say they have sent. It has the attempts of what went
 *    on from 2, too, which are stored again.
 * 4. The events, so that the history names none that is not there; then what the history is not
 *    compared with, or brings up to date by itself.
 */
export const backUp = Effect.fnUntraced(
  function* (options: BackupOptions) {
    const { directory } = options
    const layout = yield* readLayout
    yield* requireAccess
    if ((yield* readInstalled).tenants?.length)
      return yield* new BackupError({
        message:
          "tenants of this installation have streams in accounts of their own, which a backup from here would not contain: back up the broker's disks instead"
      })
    const isNew = yield* makeBackupFolder(directory)
    return yield* copyAll(options, layout).pipe(Effect.onError(() => removeParts(directory, isNew)))
  },
  Effect.catchIf(
    (error) => error instanceof BrokerError && isForbidden(error),
    () =>
      new BackupError({
        message:
          "the broker does not let this user make a backup: of the users of nats.conf, `backup` or `operator` may, with `access_backup` or `access_operator` in NATS_ACCESS_URL"
      })
  )
)

/** Copies all streams into the folder of a backup. */
const copyAll = Effect.fnUntraced(function* (options: BackupOptions, layout: Layout) {
  const { directory, tell, version } = options
  const { consumerInfo, names, server } = yield* Broker
  const { epoch, isAccessApart = false } = (yield* readLayoutRecord).record
  const startedAt = yield* Clock.currentTimeMillis
  const { ack_floor } = yield* consumerInfo(
    "look how far routing is",
    names.events,
    names.routerConsumer
  )
  const { last_seq: historyFrom } = yield* stateOf(names, names.history)
  // In this order: what is stored in DEAD later has its fact later.
  const { last_seq: deadBefore } = yield* stateOf(names, names.dead)

  const all = streamsOf(names, layout)
  const states = yield* Effect.forEach(all, (name) => stateOf(names, name), { concurrency: 8 })
  const bytes = states.reduce((sum, state) => sum + state.bytes, 0)
  yield* tell({ event: "begun", bytes, streams: all.length })

  const { buckets } = names
  const copies = new Copies({ ...options, names, isAccessApart })
  for (const bucket of [buckets.workers, buckets.retries]) yield* copies.busyBucket(bucket)
  for (let index = 0; index < layout.partitions; index++) yield* copies.partition(index)
  yield* copies.plain(names.configuration)
  // A job says how far it has come: the history of the copy has all of that.
  yield* copies.quietBucket(buckets.jobs)
  const history = yield* copies.plain(names.history)
  const events = yield* copies.plain(names.events)
  // After the events: the broker copies into them what they do not have, and never what has a sequence that
  // they know.
  if (layout.isSourced)
    for (const stream of [names.intake, names.origins]) yield* copies.plain(stream)
  yield* copies.plain(names.dead)
  yield* copies.busyBucket(buckets.health)
  const { alerts, endpoints, sources, tokens } = buckets
  for (const bucket of [endpoints, sources, alerts, tokens]) yield* copies.quietBucket(bucket)

  const { record } = yield* readLayoutRecord
  if (record.epoch !== epoch || record.change !== undefined)
    return yield* new BackupError({
      message: "the number of partitions was changed meanwhile: back up again, into another folder"
    })
  const manifest: Manifest = {
    v: 1,
    id: yield* Effect.sync(randomUUID),
    petrel: version,
    format: storedFormat,
    natsServer: server().version ?? "",
    installation: (yield* readInstallation) ?? null,
    prefix: names.events.replace(/EVENTS$/, ""),
    eventRoot: names.eventRoot,
    partitions: layout.partitions,
    ackWaitMs: layout.ackWait,
    startedAt,
    completedAt: yield* Clock.currentTimeMillis,
    routedUpTo: ack_floor.stream_seq,
    historyFrom,
    history: endOf(history),
    events: endOf(events),
    deadBefore,
    streams: copies.streams
  }
  yield* writeManifest(directory, manifestText(manifest))
  return manifest
})

const endOf = ({ last_seq, last_ts }: StreamState) => ({
  seq: last_seq,
  at: last_seq === 0 ? 0 : Date.parse(last_ts)
})

const streamsOf = (names: Names, { isSourced, partitions }: Layout): ReadonlyArray<string> => [
  ...(isSourced ? [names.intake, names.origins] : []),
  ...Object.values(names.buckets).map((bucket) => `KV_${bucket}`),
  ...[names.configuration, names.history, names.events, names.dead],
  ...Array.from({ length: partitions }, (_, index) => [
    names.deliveries(index),
    names.backlog(index)
  ]).flat()
]
