import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream"
import type { Names } from "../domain/names.ts"
import { unset, type WantedConsumer } from "./consumers.ts"
import type { LayoutRecord } from "./installed.ts"
import { tenantsWithoutSource } from "./tenant-streams.ts"
import type { WantedStream } from "./topology.ts"
import { defaultTopology, isClosed, tenantStream, wanted } from "./topology.ts"

/*
 * What somebody has changed with another tool, so that a stream loses something, or a consumer holds
 * it back.
 */

const limits = [
  "max_age",
  "max_bytes",
  "max_msgs",
  "max_msgs_per_subject",
  "max_msg_size",
  "max_consumers"
] as const

const subjectsText = ({ subjects = [] }: Pick<WantedStream, "subjects">): string =>
  subjects.toSorted().join()

/** Refusals of a stream that the broker does not undo. */
const lasting = ["sealed", "deny_delete", "deny_purge"] as const

/** True for a field of a stream by which it refuses something for good. */
export const isLasting = (field: string): boolean => lasting.some((one) => one === field)

/** Returns what somebody has made a stream refuse for good with another tool. */
export const lastingRestrictionsOf = (
  config: WantedStream,
  wanted: WantedStream
): ReadonlyArray<string> =>
  config.sealed === true
    ? ["sealed"]
    : lasting.filter((field) => config[field] === true && wanted[field] !== true)

/**
 * What a tenant may refuse in its own stream, from which Petrel removes nothing. Where it is sealed,
 * its events are refused.
 */
const tenantsOwn = { deny_delete: true, deny_purge: true } as const

/** Fields of a stream whose other value drops, refuses or hides something. */
const exact = ["discard", "retention", "republish", "allow_direct", "allow_rollup_hdrs"] as const

/** Fields of a stream by which it refuses or does not acknowledge what it should store. */
const unsettable = ["no_ack", "discard_new_per_subject"] as const

const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/**
 * Returns the fields of a stream that somebody has changed with another tool, and by which it drops or
 * refuses what it should keep, or stores it where nobody looks.
 */
export const restrictionsOfStream = (
  config: WantedStream,
  wanted: WantedStream
): ReadonlyArray<string> => {
  const sources = new Set(config.sources?.map(({ name }) => name))
  return [
    ...((config.num_replicas ?? 1) < (wanted.num_replicas ?? 1) ? ["num_replicas"] : []),
    ...limits.filter((limit) => (wanted[limit] ?? 1) <= 0 && (config[limit] ?? 0) > 0),
    ...exact.filter((field) => Boolean(wanted[field]) && !isSame(config[field], wanted[field])),
    ...unsettable.filter((field) => config[field] === true && wanted[field] === false),
    ...(Object.keys(config.consumer_limits ?? {}).length > 0 ? ["consumer_limits"] : []),
    ...(wanted.sources?.every(({ name }) => sources.has(name)) === false ||
    (wanted.sources?.length === 0 && sources.size > 0)
      ? ["sources"]
      : []),
    // Equal ids of different tenants are no duplicates.
    ...(wanted.duplicate_window === 0 && (config.duplicate_window ?? 0) > 0
      ? ["duplicate_window"]
      : []),
    ...(config.subject_transform === undefined ? [] : ["subject_transform"]),
    ...(subjectsText(config) === subjectsText(wanted) ? [] : ["subjects"])
  ]
}

const unsetFields = Object.keys(unset) as ReadonlyArray<keyof typeof unset>

/**
 * Returns the fields of a consumer that somebody has changed with another tool, and by which it hands
 * out too little, or will once a server is lost.
 *
 * @param copies number of its stream's copies. (Default: 1)
 */
export const restrictionsOfConsumer = (
  { config, paused }: Pick<ConsumerInfo, "config" | "paused">,
  wanted: WantedConsumer,
  copies = 1
): ReadonlyArray<string> => {
  const { max_ack_pending = 0, max_deliver = -1, num_replicas } = config
  return [
    // 0 means as many as its stream has.
    ...((num_replicas || copies) < copies ? ["num_replicas"] : []),
    ...(paused === true ? ["pause_until"] : []),
    ...(config.filter_subject === wanted.filter_subject ? [] : ["filter_subject"]),
    ...(filtersText(config) === filtersText(wanted) ? [] : ["filter_subjects"]),
    ...(max_deliver > 0 ? ["max_deliver"] : []),
    ...(max_ack_pending > 0 && max_ack_pending < (wanted.max_ack_pending ?? 0)
      ? ["max_ack_pending"]
      : []),
    ...unsetFields.filter((field) => isSet(config[field]) && !isSet(wanted[field])),
    ...(needsRemaking(config) ? ["priority_policy"] : [])
  ]
}

const filtersText = ({ filter_subjects = [] }: Pick<WantedConsumer, "filter_subjects">): string =>
  filter_subjects.toSorted().join(" ")

const isSet = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : Boolean(value)

/** True for a consumer whose groups get its messages, which no update takes back. */
export const needsRemaking = ({ priority_policy = "none" }: ConsumerInfo["config"]): boolean =>
  priority_policy !== "none"

/** A stream that loses or refuses something, as it was changed with another tool. */
export interface RestrictedStream {
  readonly name: string
  readonly fields: ReadonlyArray<string>
  /** Tenants from whose streams it no longer copies. */
  readonly tenants?: ReadonlyArray<string>
}

/** Returns the streams that differ from what `petrel init` makes so that they lose something. */
export const restrictedAmong = (
  names: Names,
  streams: ReadonlyArray<{ readonly name: string; readonly info: StreamInfo | undefined }>,
  { change, settings }: LayoutRecord,
  partitions: number,
  { max_payload = 0 }: { readonly max_payload?: number }
): ReadonlyArray<RestrictedStream> => {
  if (settings === undefined || change !== undefined) return []
  const byName = new Map(streams.map(({ info, name }) => [name, info?.config]))
  // A size is a setting, which may be changed with any tool.
  const size = (name: string) => byName.get(name)?.max_bytes ?? -1
  const sizes = {
    eventBytes: size(names.events),
    historyBytes: size(names.history),
    intakeBytes: size(names.intake)
  }
  // All have as many copies, unless somebody has taken some away.
  const replicas = Math.max(1, ...streams.map(({ info }) => info?.config.num_replicas ?? 1))
  const options = { ...defaultTopology, ...settings, ...sizes, partitions, replicas }
  // Init does not take them in again: who removes a tenant takes its stream out, too.
  const dropped = tenantsWithoutSource(names, byName.get(names.events), settings.tenants)
  const isDropped = ({ name }: { readonly name: string }) =>
    dropped.some((tenant) => names.tenantEvents(tenant) === name)
  const all = [
    ...wanted(names, options, max_payload).map(({ stream }) => ({
      ...stream,
      ...(stream.sources === undefined
        ? {}
        : { sources: stream.sources.filter((source) => !isDropped(source)) })
    })),
    ...options.tenants.map((tenant) => ({
      ...tenantStream(names, tenant, options, max_payload),
      ...tenantsOwn
    }))
  ]
  return all.flatMap((stream) => {
    const config = byName.get(stream.name)
    const fields =
      config === undefined || isClosed(stream.name, config.subjects)
        ? []
        : [...lastingRestrictionsOf(config, stream), ...restrictionsOfStream(config, stream)]
    const tenants = stream.name === names.events ? dropped : []
    return fields.length + tenants.length === 0 ? [] : [{ name: stream.name, fields, tenants }]
  })
}
