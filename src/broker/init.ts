import type { JetStreamManager } from "@nats-io/jetstream"
import { Clock, Effect, Schedule } from "effect"
import { AccessBroker, inAccess, requireAccess } from "./access.ts"
import { checkAccountLimits } from "./account-limits.ts"
import { Broker } from "./broker.ts"
import {
  BrokerError,
  consumerExists,
  consumerNotFound,
  exceedsStreamCopies,
  ifFound,
  streamNotFound
} from "./broker-error.ts"
import { natsClients } from "./clients.ts"
import type { WantedConsumer } from "./consumers.ts"
import { startAfter } from "./consumers.ts"
import { noteInstallation } from "./installation.ts"
import {
  findPartitions,
  noteLayout,
  readInstalled,
  readLayoutRecord,
  refuseChange,
  refuseOlderFormat,
  TopologyError
} from "./installed.ts"
import { madeAgain, notingRaise } from "./kept-since.ts"
import { beyondRemoved, lossesOf } from "./losses.ts"
import { checkReservations, untilReported } from "./reservation.ts"
import {
  lastingRestrictionsOf,
  needsRemaking,
  restrictionsOfConsumer,
  restrictionsOfStream
} from "./restrictions.ts"
import { readPosition } from "./router-position.ts"
import { keepingRestarts, repairSources } from "./sources/restart.ts"
import {
  checkSourceServer,
  checkTenantSpace,
  inAccountOf,
  isSourceServer,
  releaseSubjects
} from "./tenant-streams.ts"
import type { StreamSpec, TopologyOptions, WantedStream } from "./topology.ts"
import { isOfAccess, minMaxPayloadBytes, tenantStream, wanted } from "./topology.ts"

/** What init did with one stream or consumer, and which fields it changed. */
export interface Change {
  readonly what: string
  readonly change: "unchanged" | "created" | "updated"
  readonly fields: ReadonlyArray<string>
  /** Of a stream that was there before and was missing: what may be lost with it. */
  readonly lost?: string
}

/** Streams that are looked at at the same time. */
const maxConcurrentLooks = 8

/** Accounts of tenants that are asked at the same time. */
const maxConcurrentAccounts = 8

/** What to do if there is less space than was reported. */
const withLess = "run init again with smaller sizes"

/** Fails if another stream, or this installation itself, already takes subjects that it needs. */
const checkSubjects = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { allAlertEvents, allDead, allEvents, allFacts, allIncoming } = names.subjects
  const { delivery, failures, schedule } = names.subjects
  const head = (subject: string) => subject.split(".").slice(0, 2).join(".")
  const own = [
    allFacts,
    allDead,
    allAlertEvents,
    allIncoming,
    ...[delivery(0, "t", "e"), schedule(0, "i"), failures("t", "e", "k")].map(
      (subject) => `${head(subject)}.>`
    )
  ]
  const events = allEvents.slice(0, -1)
  const clash = own.find(
    (subject) => subject.startsWith(events) || events.startsWith(subject.slice(0, -1))
  )
  if (clash !== undefined)
    return yield* new TopologyError({
      message: `--events ${names.eventRoot} would take ${clash}, which this installation needs for itself: choose another name for the events`
    })
  const mine = new Set([
    ...[names.events, names.ownEvents, names.intake, names.origins],
    ...[names.history, names.dead]
  ])
  const isMine = (name: string) =>
    mine.has(name) || name.replace(/\d+$/, "0") === names.deliveries(0)
  for (const subject of [allEvents, ...own]) {
    const holders = yield* ask(`look for streams on ${subject}`, async () => {
      const found: Array<string> = []
      for await (const name of jsm.streams.names(subject)) found.push(name)
      return found
    })
    const other = holders.find((name) => !isMine(name))
    if (other !== undefined)
      return yield* new TopologyError({
        message:
          subject === allEvents
            ? `the stream ${other} takes ${subject} already: a further installation on this broker needs --events NAME besides --prefix, with a name of its own`
            : `the stream ${other} takes ${subject} already: choose another --prefix`
      })
  }
})

/** Fails unless the options fit what there is. Changes nothing. */
const checkInit = Effect.fnUntraced(function* ({ partitions, tenants }: TopologyOptions) {
  const { server } = yield* Broker
  const access = yield* AccessBroker
  const { isAccessApart } = yield* refuseChange
  if (isAccessApart === true && access === undefined) yield* requireAccess
  yield* refuseOlderFormat
  const found = yield* findPartitions
  if (found.partitions !== undefined && found.partitions !== partitions)
    return yield* new TopologyError({
      message: `this installation has ${found.partitions} partitions and init cannot make them ${partitions}: say --partitions ${found.partitions} or leave the flag out, and change it with \`petrel repartition ${partitions}\``
    })
  if (found.begun > partitions)
    return yield* new TopologyError({
      message:
        found.partitions === undefined
          ? `an init with ${found.begun} partitions was interrupted: finish it with --partitions ${found.begun}`
          : `there are streams of a partition ${found.begun - 1} besides the ${partitions} partitions of this installation, which no worker reads: remove them if they hold nothing`
    })
  const maxPayload = server().max_payload ?? 1_048_576
  if (maxPayload < minMaxPayloadBytes)
    return yield* new TopologyError({
      message: `this broker takes messages of up to ${maxPayload} bytes (max_payload), and Petrel needs ${minMaxPayloadBytes} (64 KiB) at least: raise it in the broker's configuration`
    })
  yield* checkSubjects
  if (tenants.length > 0) yield* checkSourceServer
  return {
    isComplete: found.partitions !== undefined,
    maxPayload,
    isSourceable: isSourceServer(server().version ?? "0")
  }
})

/** Fails if the broker will not let a stream be changed back to what it has to be. Changes nothing. */
const checkChangeable = Effect.fnUntraced(function* (streams: ReadonlyArray<WantedStream>) {
  const { streamInfo } = yield* Broker
  const refusing = yield* Effect.forEach(
    streams,
    (stream) =>
      Effect.map(
        ifFound(streamInfo(`look at ${stream.name}`, stream.name), streamNotFound),
        (info) => ({
          name: stream.name,
          fields: info === undefined ? [] : lastingRestrictionsOf(info.config, stream)
        })
      ),
    { concurrency: maxConcurrentLooks }
  )
  const [first, ...others] = refusing.filter(({ fields }) => fields.length > 0)
  if (first !== undefined)
    return yield* new TopologyError({
      message: `${first.name} was made to refuse what Petrel has to do there (${first.fields.join(", ")}), ${others.length === 0 ? "" : `and so ${others.length === 1 ? "was" : "were"} ${others.map(({ name }) => name).join(", ")}, `}and the broker cannot undo this. Once its content is no longer needed, remove the stream (\`nats stream rm ${first.name}\`), run \`petrel init\` again, which says what may be lost, then restart the workers`
    })
})

/**
 * Returns the tenants whose accounts answer. The stream of one that does not stays as it is, and keeps
 * nothing else from being changed. Fails where a tenant that is to get a stream does not answer.
 */
const answeringOf = Effect.fnUntraced(function* (tenants: ReadonlyArray<string>) {
  if (tenants.length === 0) return []
  const { tenants: known = [] } = yield* readInstalled
  return yield* Effect.filter(
    tenants,
    (tenant) =>
      inAccountOf(tenant, () => Effect.succeed(true)).pipe(
        Effect.catchTag("TopologyError", (error) =>
          known.includes(tenant)
            ? Effect.as(
                Effect.logWarning(`the stream of ${tenant} stays as it is: ${error.message}`),
                false
              )
            : Effect.fail(error)
        )
      ),
    { concurrency: maxConcurrentAccounts }
  )
})

/**
 * Creates missing streams and consumers, and updates those that differ and may be changed. Reads
 * before it writes: re-creating a consumer can destroy its state. A stream that is missing in a
 * completed installation begins after all sequences of the former one.
 */
export const init = Effect.fnUntraced(function* (asked: TopologyOptions) {
  const { names } = yield* Broker
  const { isComplete, isSourceable, maxPayload } = yield* checkInit(asked)
  // On an older server everything but the intake works.
  const options = { ...asked, intake: asked.intake && isSourceable }
  const losses = isComplete ? lossesOf(names, options.partitions) : new Map<string, string>()
  const now = yield* Clock.currentTimeMillis
  const beyondOf = (isOfPartition: boolean) => (isComplete ? beyondRemoved(now, isOfPartition) : 0)
  const all = wanted(names, options, maxPayload)
  const access = yield* AccessBroker
  const isApart = ({ stream }: StreamSpec) => access !== undefined && isOfAccess(names, stream.name)
  const items = all.filter((item) => !isApart(item))
  const apartItems = all.filter(isApart)
  yield* checkChangeable(items.map(({ stream }) => stream))
  yield* inAccess(checkAccountLimits(apartItems, options.replicas))
  yield* checkAccountLimits(items, options.replicas)
  const answering = yield* answeringOf(options.tenants)
  yield* Effect.forEach(
    answering,
    (tenant) => checkTenantSpace(tenant, tenantStream(names, tenant, options, maxPayload)),
    { concurrency: maxConcurrentAccounts, discard: true }
  )
  yield* checkReservations(items, options.replicas)
  // What is in other accounts comes first: if one is not set up, nothing has been changed yet.
  const apart = yield* inAccess(ensureAll(apartItems, () => 0))
  const theirs = yield* Effect.forEach(answering, (tenant) =>
    inAccountOf(tenant, (jsm) =>
      ensureTenantStream(tenant, tenantStream(names, tenant, options, maxPayload), jsm)
    )
  )
  if (options.tenants.length > 0)
    yield* Effect.forEach(
      items.filter(({ stream }) => stream.name === names.events),
      ({ stream }) => releaseSubjects(stream),
      { discard: true }
    )
  const own = yield* ensureAll(items, (stream) =>
    losses.has(stream) ? beyondOf(names.partitionIn(stream) !== undefined) : 0
  )
  yield* warnOfDropped(options.tenants)
  const isNew = yield* noteLayout(options, beyondOf(true), access !== undefined)
  yield* noteInstallation
  const isRemade = own.some(
    ({ change, what }) => change === "created" && what === `stream KV_${names.buckets.workers}`
  )
  const record: Change = { what: "record of the layout", change: "created", fields: [] }
  const made = [...apart, ...theirs, ...own].map((change): Change => {
    const lost = losses.get(change.what.replace(/^stream /, ""))
    return change.change !== "created" || lost === undefined ? change : { ...change, lost }
  })
  const written = isComplete && isNew && !isRemade ? [record] : []
  return [...made, ...written, ...(yield* restartDiverged)]
})

/** Who removes a tenant takes its stream out of the sources; who did not mean to learns of it here only. */
const warnOfDropped = Effect.fnUntraced(function* (tenants: ReadonlyArray<string>) {
  const { settings } = (yield* readLayoutRecord).record
  const dropped = (settings?.tenants ?? []).filter((tenant) => !tenants.includes(tenant))
  if (dropped.length === 0) return
  const what = dropped.join(", ")
  yield* Effect.logWarning(
    `the ${dropped.length === 1 ? "stream" : "streams"} of ${what} ${dropped.length === 1 ? "was" : "were"} taken out of the sources of the event stream: events that are published there are no longer delivered, and from now on the status does not say so. If this is wrong, run \`petrel init --tenant-streams ${dropped.join(",")}\``
  )
})

const restartDiverged = Effect.map(repairSources, (divergences) =>
  divergences.map(
    ({ from, source, start, target, to }): Change => ({
      what: `source ${source} of ${target}`,
      change: "updated",
      fields: [`starts again at ${start}, having lost ${from === to ? from : `${from} to ${to}`}`]
    })
  )
)

/**
 * Creates missing streams and consumers of the given partitions, and updates the existing ones.
 *
 * @param beyond new streams begin after this sequence.
 */
export const makePartitions = Effect.fnUntraced(function* (
  options: TopologyOptions,
  indexes: ReadonlyArray<number>,
  beyond: number
) {
  const { names } = yield* Broker
  const streams = new Set(
    indexes.flatMap((index) => [names.deliveries(index), names.backlog(index)])
  )
  const items = wanted(names, { ...options, partitions: Math.max(...indexes) + 1 }, 0)
  return yield* ensureAll(
    items.filter(({ stream }) => streams.has(stream.name)),
    () => beyond
  )
})

/** The client keeps a field that it is not given. */
const noTransform: object = { subject_transform: undefined }

/** @param beyondOf the sequence after which a stream begins if it is created. */
const ensureAll = Effect.fnUntraced(function* (
  items: ReadonlyArray<StreamSpec>,
  beyondOf: (stream: string) => number
) {
  const changes: Array<Change> = []
  for (const { consumer, stream } of items) {
    changes.push(yield* ensureStream(stream, beyondOf(stream.name)))
    if (consumer !== undefined) changes.push(yield* ensureConsumer(stream.name, consumer))
  }
  return changes
})

/** @param of JetStream of the account that the stream is in. (Default: this account) */
const ensureStream = Effect.fnUntraced(function* (
  stream: WantedStream,
  beyond: number,
  of?: JetStreamManager
) {
  const clients = yield* natsClients
  const { ask } = clients
  const jsm = of ?? clients.jsm
  const what = `stream ${stream.name}`
  const info = yield* ifFound(
    Effect.tryPromise({
      try: () => jsm.streams.info(stream.name),
      catch: (cause) => new BrokerError({ operation: `look at ${what}`, cause })
    }),
    streamNotFound
  )
  if (info === undefined) {
    const first = beyond === 0 ? {} : { first_seq: beyond + 1 }
    // The audit does not look for plans from before. It does tell of events that were removed.
    const isHistory = beyond > 0 && stream.name === clients.names.history
    const noted = isHistory ? madeAgain(stream, yield* Clock.currentTimeMillis) : {}
    yield* untilReported(
      ask(`make ${what}`, () => jsm.streams.add({ ...stream, ...first, ...noted })),
      withLess
    )
    return { what, change: "created", fields: [] } satisfies Change
  }
  const wanted = { ...stream, ...keepingRestarts(stream, info.config) }
  const fields = [
    ...new Set([...differing(wanted, info.config), ...restrictionsOfStream(info.config, wanted)])
  ]
  if (fields.length === 0) return { what, change: "unchanged", fields } satisfies Change
  const change = ask(`change ${fields.join(", ")} of ${what}`, () =>
    jsm.streams.update(stream.name, {
      ...info.config,
      ...wanted,
      ...noTransform,
      ...notingRaise(stream, info)
    })
  )
  yield* untilReported(change, withLess)
  return { what, change: "updated", fields } satisfies Change
})

/** A stream that is sealed stays as it is: one tenant's holds up no change of the others. */
const ensureTenantStream = Effect.fnUntraced(function* (
  tenant: string,
  stream: WantedStream,
  jsm: JetStreamManager
) {
  const { ask } = yield* natsClients
  const what = `stream ${stream.name}`
  const look = ask(`look at ${what}`, () => jsm.streams.info(stream.name))
  const info = yield* ifFound(look, streamNotFound)
  if (info?.config.sealed !== true) return yield* ensureStream(stream, 0, jsm)
  yield* Effect.logWarning(
    `the stream of ${tenant} stays as it is: it was sealed, so it refuses the tenant's events, and the broker cannot undo this. Once its events are delivered, remove it (\`nats stream rm ${stream.name}\` in the account of ${tenant}) and run \`petrel init\` again`
  )
  return { what, change: "unchanged", fields: [] } satisfies Change
})

const ensureConsumer = Effect.fnUntraced(function* (stream: string, consumer: WantedConsumer) {
  const { ask, consumerInfo, jsm, names } = yield* natsClients
  const name = consumer.durable_name
  const what = `consumer ${name} of ${stream}`
  const info = yield* ifFound(consumerInfo(`look at ${what}`, stream, name), consumerNotFound)
  const make = Effect.gen(function* () {
    const start = name === names.routerConsumer ? startAfter(yield* readPosition) : {}
    yield* ask(`make ${what}`, () => jsm.consumers.add(stream, { ...consumer, ...start }))
  })
  if (info === undefined) {
    yield* make
    return { what, change: "created", fields: [] } satisfies Change
  }
  const restrictions = restrictionsOfConsumer(info, consumer)
  const fields = [...new Set([...differing(consumer, info.config), ...restrictions])]
  if (fields.length === 0) return { what, change: "unchanged", fields } satisfies Change
  if (info.paused === true) yield* ask(`resume ${what}`, () => jsm.consumers.resume(stream, name))
  const isFiltered = fields.includes("filter_subject") || fields.includes("filter_subjects")
  if (needsRemaking(info.config) || (isFiltered && name === names.routerConsumer)) {
    // Without its filter, the routers' would go on behind what it has left out.
    yield* ask(`remove ${what}`, () => jsm.consumers.delete(stream, name))
    // A running worker makes it again, too.
    yield* Effect.catchIf(
      make,
      ({ code }) => code === consumerExists,
      () => Effect.void
    )
  } else
    yield* ask(`change ${fields.join(", ")} of ${what}`, () =>
      jsm.consumers.update(stream, name, consumer)
    ).pipe(
      Effect.retry({
        while: ({ code }) => code === exceedsStreamCopies,
        schedule: Schedule.spaced(100),
        times: 50
      })
    )
  return { what, change: "updated", fields } satisfies Change
})

/** True for values that the broker omits from its answers. */
const isLeftOut = (value: unknown): boolean =>
  value === false || value === -1 || value === 0 || (Array.isArray(value) && value.length === 0)

/** Returns the fields whose value in `have` differs from `want`. */
const differing = (want: object, have: object): ReadonlyArray<string> => {
  const actual = new Map(Object.entries(have))
  return Object.entries(want).flatMap(([field, value]) => {
    const there = actual.get(field)
    // The server adds keys of its own to the metadata.
    if (field === "metadata") return differing(value, there ?? {})
    const differs =
      there === undefined ? !isLeftOut(value) : JSON.stringify(there) !== JSON.stringify(value)
    return differs ? [field] : []
  })
}
