import { Duration, Effect, Option, Result } from "effect"
import { Command, Flag } from "effect/cli"
import { Broker } from "../../../broker/broker.ts"
import { ifFound, streamNotFound } from "../../../broker/broker-error.ts"
import type { Change } from "../../../broker/init.ts"
import { init as makeTopology } from "../../../broker/init.ts"
import { readInstalled } from "../../../broker/installed.ts"
import type { Shares } from "../../../broker/storage-limits.ts"
import { defaultEventBytes, minStreamBytes } from "../../../broker/storage-limits.ts"
import { isSourceServer, unheardTenants } from "../../../broker/tenant-streams.ts"
import type { TopologyOptions } from "../../../broker/topology.ts"
import { defaultTopology } from "../../../broker/topology.ts"
import { present } from "../../../domain/record.ts"
import { isToken } from "../../../domain/token.ts"
import { listEndpoints } from "../../../endpoints/endpoint-store.ts"
import { readNeededEventAge } from "../../../history/backlog-count.ts"
import { policiesOf, windowMs } from "../../../policy/endpoint-policies.ts"
import {
  bytesExpected,
  bytesText,
  durationText,
  plural,
  readBytes
} from "../../../text/quantities.ts"
import { durationFlag, maybe, wholeNumber } from "../../flags/shared.ts"
import { Refused, refusal } from "../../refused.ts"
import { connectedWithAccess, petrel } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"
import type { InitChanges } from "./stream-sizes.ts"
import { makeWithSizes } from "./stream-sizes.ts"

const time = (name: string, fallback: number, least: number, description: string) =>
  durationFlag(name, `${description} (default: ${durationText(Duration.millis(fallback))})`, {
    least,
    problem: `must be at least ${durationText(Duration.millis(least))}`
  }).pipe(Flag.map(Duration.toMillis), maybe)

const second = 1_000
const minute = 60 * second

const size = (name: string, fallback: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("SIZE"),
    Flag.withDescription(`${description} (default: ${fallback})`),
    Flag.filterMap(
      (text) =>
        Option.filter(Option.fromUndefinedOr(readBytes(text)), (bytes) => bytes >= minStreamBytes),
      (text) =>
        readBytes(text) === undefined
          ? bytesExpected
          : `must be at least ${bytesText(minStreamBytes)}`
    ),
    maybe
  )

const flags = {
  replicas: wholeNumber("replicas", [1, 5], "Copies of each stream in a cluster (default: 1)"),
  partitions: wholeNumber(
    "partitions",
    [1, 256],
    "Slices of all endpoints, fixed once made: 8 for one machine, 32 or more for a fleet (default: 8)"
  ),
  ackWait: time(
    "ack-wait",
    defaultTopology.ackWait,
    second,
    "How long a worker may hold a message without a sign of life"
  ),
  eventDedupe: time(
    "event-dedupe",
    defaultTopology.eventDedupe,
    second,
    "How long an event's id is remembered"
  ),
  eventAge: time("event-age", defaultTopology.eventAge, minute, "How long events are kept"),
  historyAge: time(
    "history-age",
    defaultTopology.historyAge,
    minute,
    "How long the history is kept"
  ),
  deadAge: time("dead-age", defaultTopology.deadAge, minute, "How long dead letters are kept"),
  deadBytes: size(
    "dead-bytes",
    `a quarter of --event-bytes, at most ${bytesText(defaultTopology.deadBytes)}`,
    "Storage for dead letters"
  ),
  eventBytes: size(
    "event-bytes",
    `half of the account's limit; without one ${bytesText(defaultEventBytes)}, or less where the broker has less`,
    "Storage for events; when it is full, events are refused"
  ),
  historyBytes: size(
    "history-bytes",
    "half of --event-bytes",
    "Storage for the history; when it is full, the oldest facts are dropped"
  ),
  intakeAge: time(
    "intake-age",
    defaultTopology.intakeAge,
    minute,
    "How long repeats of webhooks and outbox rows are recognised"
  ),
  intakeBytes: size(
    "intake-bytes",
    "an eighth of --event-bytes",
    "Storage for what came in; when it is full, webhooks and outbox rows are refused"
  ),
  tenants: Flag.String("tenant-streams").pipe(
    Flag.withMetavar("TENANTS"),
    Flag.withDescription(
      "Tenants, separated by commas, that get a stream for their events in their own account (nats.conf shows it), besides those that have one"
    ),
    Flag.filterMap(
      (text) => {
        const tenants = text.split(",").map((tenant) => tenant.trim())
        return tenants.every(isToken) ? Option.some(tenants) : Option.none()
      },
      () => "must be names of tenants, with commas: acme,globex"
    ),
    maybe
  ),
  tenantBytes: size(
    "tenant-bytes",
    bytesText(defaultTopology.tenantBytes),
    "With --tenant-streams, storage for a tenant's events of --event-age in its stream; when it is full, the tenant's events are refused"
  )
}

type Given = {
  readonly [K in Exclude<keyof typeof flags, "tenants">]: number | undefined
}

/** Returns the sizes that the user set. */
const sizesIn = ({ deadBytes, eventBytes, historyBytes, intakeBytes }: Given): Partial<Shares> =>
  present({ deadBytes, eventBytes, historyBytes, intakeBytes })

const line = ({ change, fields, lost, what }: Change): string => {
  const text = `${change.padEnd(9)}  ${what}${fields.length === 0 ? "" : `: ${fields.join(", ")}`}`
  return lost === undefined ? text : `${text}, which was missing: ${lost}`
}

const summary = (
  name: string,
  changes: ReadonlyArray<Change>,
  { partitions, replicas }: TopologyOptions
): string => {
  const number = (change: Change["change"]) => changes.filter((it) => it.change === change).length
  const unchanged = number("unchanged")
  const layout = `${partitions} ${partitions === 1 ? "partition" : "partitions"}, ${replicas === 1 ? "1 copy" : `${replicas} copies`} of each stream`
  const done =
    unchanged === changes.length
      ? "nothing to do"
      : `${number("created")} created, ${number("updated")} updated, ${unchanged} unchanged`
  return `${name} is ready (${layout}): ${done}`
}

/** Checks that a size fits the stored messages and one more message of the maximum payload. */
const checkSpace = Effect.fnUntraced(function* (flag: string, stream: string, bytes: number) {
  const { server, streamInfo } = yield* Broker
  const maxPayload = server().max_payload ?? 0
  if (bytes < maxPayload)
    return yield* new Refused({
      message: `${flag} ${bytesText(bytes)} is less than one event may have: this broker takes ${bytesText(maxPayload)} (max_payload)`
    })
  const found = yield* ifFound(streamInfo(`look at stream ${stream}`, stream), streamNotFound)
  const held = found?.state.bytes ?? 0
  if (bytes < held)
    return yield* new Refused({
      message: `${flag} ${bytesText(bytes)} is less than the ${bytesText(held)} that ${stream} holds`
    })
})

/** Warns if a cluster is to keep one copy of each stream, as it is by default. */
const warnOfReplicas = Effect.fnUntraced(function* ({ replicas }: TopologyOptions) {
  const { server } = yield* Broker
  if (replicas === 1 && server().cluster !== undefined)
    yield* Effect.logWarning(
      "this broker belongs to a cluster, but each stream has 1 copy, on one of its servers: while that server is down nothing is delivered, and if its disk is lost, its data is lost; see --replicas"
    )
})

/** Warns if events or history expire while deliveries may still wait for their last retry. */
const warnOfAges = Effect.fnUntraced(function* ({ eventAge, historyAge }: TopologyOptions) {
  let longest: { readonly label: string; readonly window: number } | undefined
  for (const { endpoint } of yield* listEndpoints()) {
    const policies = Result.getOrThrow(policiesOf(endpoint))
    const window = Math.max(...policies.map(({ policy }) => windowMs(policy)))
    if (window > (longest?.window ?? 0))
      longest = { label: `${endpoint.tenant}/${endpoint.id}`, window }
  }
  if (longest === undefined) return
  const { label, window } = longest
  const text = (ms: number) => durationText(Duration.millis(ms))
  const retries = `${label} is tried for up to ${text(window)}`
  if (eventAge < window)
    yield* Effect.logWarning(
      `events are kept for ${text(eventAge)}, and ${retries}: older events can be neither audited nor replayed, though they are still delivered; see --event-age`
    )
  if (historyAge < window)
    yield* Effect.logWarning(
      `the history is kept for ${text(historyAge)}, and ${retries}: earlier attempts are no longer known; see --history-age`
    )
})

/**
 * Warns about tenants whose events do not arrive, and says what to do if events were published to
 * EVENTS directly before.
 */
const warnOfTenants = Effect.fnUntraced(function* (
  { tenants }: TopologyOptions,
  isConverted: boolean
) {
  if (tenants.length === 0) return
  const { names } = yield* Broker
  if (isConverted)
    yield* Effect.logWarning(
      `${names.events} now copies from ${names.ownEvents} and the tenants' streams instead of taking publishes itself: restart the workers, which learn only then that an event may be copied twice`
    )
  const { pending, unheard } = yield* unheardTenants
  const [first] = pending
  if (first !== undefined)
    yield* Effect.logWarning(
      `the broker does not copy from ${plural(pending.length, "tenant's stream", "tenants' streams")} yet, such as that of ${first}: it begins within a minute of its start; then run this again to see whether it copies from all`
    )
  for (const tenant of unheard)
    yield* Effect.logWarning(
      `nothing is received from ${names.tenantEvents(tenant)}: let the account of ${tenant} export the stream "${names.subjects.tenantDeliver(tenant)}.>" and the service "$JS.FC.${names.tenantEvents(tenant)}.>", and import both here, as nats.conf shows`
    )
})

/** Warns where nothing can come in, and where workers do not know yet that something may. */
const warnOfIntake = Effect.fnUntraced(function* ({
  intake,
  partitions
}: Partial<TopologyOptions>) {
  const { names, server } = yield* Broker
  const { version = "0" } = server()
  if (!isSourceServer(version))
    yield* Effect.logWarning(
      `this is nats-server ${version}: webhooks and rows of an outbox can be taken in with 2.15 or newer; run init again then`
    )
  else if (partitions !== undefined && intake !== true)
    yield* Effect.logWarning(
      `${names.events} now copies from ${names.intake}: restart the workers, which learn only then that an event may be copied twice`
    )
})

/** Refuses to keep events for less time than is needed by deliveries that wait without a body. */
const checkEventAge = Effect.fnUntraced(function* (
  { eventAge }: TopologyOptions,
  installed: Partial<TopologyOptions>
) {
  if (
    installed.partitions === undefined ||
    eventAge >= (installed.eventAge || Number.POSITIVE_INFINITY)
  )
    return
  const needed = yield* readNeededEventAge(installed.partitions)
  const text = (ms: number) => durationText(Duration.millis(ms))
  if (eventAge <= needed)
    return yield* new Refused({
      message: `--event-age (${text(eventAge)}) must be longer than ${text(Math.ceil(needed / 1_000) * 1_000)}: for so long deliveries that wait in backlogs need their events. Let them go out, or end them with \`petrel endpoint disable\``
    })
})

/** Creates the streams and buckets of an installation, or updates them to the given settings. */
export const init = Command.make(
  "init",
  flags,
  Effect.fnUntraced(function* ({ tenants = [], ...options }) {
    const { json, prefix } = yield* petrel
    const work = Effect.gen(function* () {
      const installed = yield* readInstalled
      const topology: TopologyOptions = {
        ...defaultTopology,
        ...installed,
        ...present(options),
        tenants: [...new Set([...(installed.tenants ?? []), ...tenants])]
      }
      if (topology.eventDedupe > topology.eventAge)
        return yield* refusal([
          `--event-dedupe (${durationText(Duration.millis(topology.eventDedupe))}) must not be longer than --event-age (${durationText(Duration.millis(topology.eventAge))})`
        ])
      if (options.intakeAge !== undefined && options.intakeAge > topology.eventAge)
        return yield* refusal([
          `--intake-age (${durationText(Duration.millis(options.intakeAge))}) must not be longer than --event-age (${durationText(Duration.millis(topology.eventAge))}): what comes in is copied into the events, and must not be removed there first`
        ])
      if (topology.deadAge > topology.historyAge)
        return yield* refusal([
          `--dead-age (${durationText(Duration.millis(topology.deadAge))}) must not be longer than --history-age (${durationText(Duration.millis(topology.historyAge))}): the history knows which dead letters were sent again`
        ])
      for (const [flag, age] of [
        ["--history-age", topology.historyAge],
        ["--dead-age", topology.deadAge]
      ] as const)
        if (age < topology.moveDedupe)
          return yield* new Refused({
            message: `${flag} (${durationText(Duration.millis(age))}) must not be shorter than ${durationText(Duration.millis(topology.moveDedupe))}: that long the broker must know what it has stored already`
          })
      yield* checkEventAge(topology, installed)
      yield* warnOfReplicas(topology)
      const { names } = yield* Broker
      const given = [
        ["--dead-bytes", names.dead, options.deadBytes],
        ["--event-bytes", names.events, options.eventBytes],
        ["--history-bytes", names.history, options.historyBytes],
        ["--intake-bytes", names.intake, options.intakeBytes]
      ] as const
      for (const [flag, stream, bytes] of given)
        if (bytes !== undefined) yield* checkSpace(flag, stream, bytes)
      // Partitions are created last: while there are none, no sizes have been chosen.
      const make = Effect.gen(function* () {
        if (installed.partitions === undefined)
          return yield* makeWithSizes(topology, sizesIn(options))
        return { changes: yield* makeTopology(topology), sizes: undefined } satisfies InitChanges
      })
      const { changes, sizes } = yield* make
      yield* warnOfAges(topology)
      yield* warnOfIntake(installed)
      yield* warnOfTenants(
        topology,
        installed.partitions !== undefined && (installed.tenants ?? []).length === 0
      )
      return { changes, sizes, topology }
    })
    const { changes, sizes, topology } = yield* work.pipe(Effect.provide(connectedWithAccess))
    for (const change of changes)
      if (json || change.change !== "unchanged")
        yield* print(json ? JSON.stringify(change) : line(change))
    if (json) return
    if (sizes !== undefined) yield* print(sizes)
    yield* print(summary(prefix, changes, topology))
  })
).pipe(
  Command.withDescription("Make the streams and buckets, or change what differs"),
  Command.withExamples([
    { command: "petrel init", description: "One broker" },
    { command: "petrel init --replicas 3 --partitions 32", description: "A cluster and a fleet" },
    {
      command: "petrel init --tenant-streams acme,globex",
      description: "Tenants that do not trust each other"
    }
  ])
)
