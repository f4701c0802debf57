import { createHash } from "node:crypto"
import { Duration, Option, Schema } from "effect"
import { PositiveDuration } from "../../domain/duration.ts"
import { isOwnType } from "../../domain/type-filter.ts"
import { findPreset } from "../../policy/presets.ts"
import { type Loose, numberIn, textIn } from "../fact-record.ts"

/** How long after its event a delivery's deadline comes, by a recorded configuration, ms. */
interface RoundWindows {
  /** For event types without a policy of their own; undefined if it is not known. */
  readonly usual: number | undefined
  readonly byFilter: ReadonlyArray<TypeWindow>
}

interface TypeWindow {
  /** The tokens of the type filter. */
  readonly filter: ReadonlyArray<string>
  readonly ms: number | undefined
}

const decodeDuration = Schema.decodeUnknownOption(PositiveDuration)

/** A preset that this version does not have is not known, and neither is what does not parse. */
const windowIn = (retry: unknown): number | undefined => {
  if (typeof retry === "string") {
    const window = findPreset(retry)?.policy.window
    return window === undefined ? undefined : Duration.toMillis(window)
  }
  if (typeof retry !== "object" || retry === null) return undefined
  const { window }: Record<string, unknown> = { ...retry }
  return Option.getOrUndefined(Option.map(decodeDuration(window), Duration.toMillis))
}

/** Most endpoints have the policy of a preset. */
const shared = new Map<string, RoundWindows>()

/** Reads the windows in a recorded configuration. */
const roundWindows = ({ retry, retryFor }: Readonly<Record<string, unknown>>): RoundWindows => {
  if (typeof retryFor !== "object" || retryFor === null) {
    const known = typeof retry === "string" ? shared.get(retry) : undefined
    const read = known ?? { usual: windowIn(retry), byFilter: [] }
    if (typeof retry === "string" && read.usual !== undefined) shared.set(retry, read)
    return read
  }
  return {
    usual: windowIn(retry),
    byFilter: Object.entries(retryFor).map(([types, chosen]) => ({
      filter: types.split("."),
      ms: windowIn(chosen)
    }))
  }
}

const isLiteral = (token: string | undefined): boolean =>
  token !== undefined && token !== "*" && token !== ">"

/** Whether the first filter is more exact: it names the first token that only one of both names. */
const beats = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): boolean => {
  for (let at = 0; at < Math.max(one.length, other.length); at++)
    if (isLiteral(one[at]) !== isLiteral(other[at])) return isLiteral(one[at])
  return false
}

/**
 * Returns how long after its event a delivery's deadline comes, ms; undefined if it is not known.
 * Does not use the engine's choice: a check must not share the code that it checks.
 *
 * @param selects whether a filter selects the event's type.
 */
const windowOfType = ({ byFilter, usual }: RoundWindows, selects: Selects): number | undefined => {
  let best: TypeWindow | undefined
  for (const one of byFilter)
    if (selects(one.filter) && (best === undefined || beats(one.filter, best.filter))) best = one
  return best === undefined ? usual : best.ms
}

/** The fields of an endpoint's configuration that plans depend on, as of a revision. */
export interface Version {
  readonly revision: number
  /** When the bucket stored it, ms since the epoch; 0 for a removal that left no message. */
  readonly storedAt: number
  /** `unknown`: it did not parse, or it is unknown since when it is gone. */
  readonly state: "enabled" | "disabled" | "removed" | "unknown"
  readonly generation: string | undefined
  /** Tokens of each type filter. */
  readonly filters: Filters
  /** Undefined if it has no configuration. */
  readonly windows: RoundWindows | undefined
}

type Filters = ReadonlyArray<ReadonlyArray<string>>

/** Filters by their text: many endpoints have the same. */
const known = new Map<string, Filters>()
const maxSharedFilters = 10_000

const filtersOf = (types: ReadonlyArray<unknown>): Filters | undefined => {
  if (!types.every((type) => typeof type === "string")) return undefined
  const text = types.join(" ")
  const before = known.get(text)
  if (before !== undefined) return before
  const filters = types.map((type) => type.split("."))
  if (known.size < maxSharedFilters) known.set(text, filters)
  return filters
}

const noFilters: Filters = []

/** The version that a fact records; undefined if it records none. */
export const versionOf = ({ change }: Loose): Version | undefined => {
  if (typeof change !== "object" || change === null) return undefined
  const { isUnreadable, now, revision, storedAt }: Record<string, unknown> = { ...change }
  const at = numberIn(storedAt)
  const number = numberIn(revision)
  if (at === undefined || number === undefined) return undefined
  const version = {
    ...{ revision: number, storedAt: at, generation: undefined },
    ...{ filters: noFilters, windows: undefined }
  }
  if (isUnreadable === true) return { ...version, state: "unknown" }
  if (now === undefined) return { ...version, state: at === 0 ? "unknown" : "removed" }
  if (typeof now !== "object" || now === null) return undefined
  const configuration: Record<string, unknown> = { ...now }
  const { disabled, generation, types } = configuration
  const filters = Array.isArray(types) ? filtersOf(types) : undefined
  if (filters === undefined) return undefined
  const state = disabled === undefined ? "enabled" : "disabled"
  const windows = roundWindows(configuration)
  return { ...version, state, generation: textIn(generation), filters, windows }
}

const matches = (filter: ReadonlyArray<string>, type: ReadonlyArray<string>): boolean => {
  for (const [at, token] of filter.entries()) {
    if (token === ">") return type.length > at
    if (at >= type.length || (token !== "*" && token !== type[at])) return false
  }
  return filter.length === type.length
}

/**
 * Whether a version wants events of a type. Does not use the engine's index: a check must not share
 * the code that it checks.
 */
export const wants = ({ filters }: Version, type: string): boolean => filters.some(selecting(type))

/** Tells which filters, by their tokens, select a type. */
export type Selects = (filter: ReadonlyArray<string>) => boolean

/** Returns which filters select a type. */
export const selecting = (type: string): Selects => {
  const tokens = type.split(".")
  // Only filters that name Petrel's own events match them.
  const isOwn = isOwnType(type)
  return (filter) => (!isOwn || filter[0] === tokens[0]) && matches(filter, tokens)
}

/**
 * Returns how long after its event a delivery's deadline comes, by a version, ms; undefined if it is
 * not known.
 */
export const roundWindow = ({ windows }: Version, type: string): number | undefined => {
  if (windows === undefined || windows.byFilter.length === 0) return windows?.usual
  return windowOfType(windows, selecting(type))
}

/**
 * A router may never have seen a version that was replaced within this time, ms: a watch shows only
 * the last value of each key, and may be 10 s behind.
 */
const maxUnseenMs = 20_000

/** Counts the entries up to a revision, in a list that is sorted by revision. */
export const countUpTo = <A>(
  list: ReadonlyArray<A>,
  revisionOf: (one: A) => number,
  revision: number
): number => {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const one = list[middle]
    if (one !== undefined && revisionOf(one) <= revision) low = middle + 1
    else high = middle
  }
  return low
}

const revisionOf = ({ revision }: Version): number => revision

/** All versions of an endpoint, by revision. */
export class Versions {
  readonly id: string
  #all: Array<Version> = []

  constructor(id: string) {
    this.id = id
  }

  get latest(): Version | undefined {
    return this.#all.at(-1)
  }

  /** The last version up to a revision of the bucket. */
  at(directory: number): Version | undefined {
    return this.#all[countUpTo(this.#all, revisionOf, directory) - 1]
  }

  /** The version with exactly this revision. */
  of(revision: number): Version | undefined {
    const version = this.at(revision)
    return version?.revision === revision ? version : undefined
  }

  /**
   * Adds a version. A bucket that lost its end assigns revisions again: versions with a later
   * revision that were stored earlier are gone.
   */
  add(version: Version): "known" | "added" | "replaced" {
    const { revision, storedAt } = version
    if (this.latest === undefined || this.latest.revision < revision) {
      this.#all.push(version)
      return "added"
    }
    if (this.of(revision)?.storedAt === storedAt) return "known"
    const isLost = (other: Version) =>
      other.revision >= revision && (storedAt === 0 || other.storedAt < storedAt)
    const kept = this.#all.filter((other) => !isLost(other))
    const isReplaced = kept.length < this.#all.length
    this.#all = [...kept, version].sort((a, b) => a.revision - b.revision)
    return isReplaced ? "replaced" : "added"
  }

  /**
   * The versions that a router may have used for a plan: the last one up to a revision of the bucket,
   * and earlier ones as long as each was replaced too recently for the router to have seen it.
   *
   * @param plannedAt when the plan was stored, ms since the epoch.
   */
  upTo(directory: number, plannedAt: number): ReadonlyArray<Version | undefined> {
    let at = countUpTo(this.#all, revisionOf, directory) - 1
    const may: Array<Version | undefined> = [this.#all[at]]
    for (; at >= 0; at--) {
      const version = this.#all[at]
      const next = this.#all[at + 1]
      if (version === undefined || next === undefined || next.storedAt > plannedAt) break
      if (next.storedAt - version.storedAt > maxUnseenMs) break
      may.push(this.#all[at - 1])
    }
    return may
  }
}

/** What a fact records of one revision of the endpoints bucket. */
interface Recorded {
  /** `<tenant>.<endpoint>`. */
  readonly key: string
  /** Ms since the epoch. */
  readonly storedAt: number
  /** Digest of the configuration; empty if the version that wrote the fact could not read it. */
  readonly content: string
  /** What it contradicts, in words; undefined if nothing. */
  readonly conflict?: string | undefined
}

/** Returns a value with the fields of its objects in alphabetical order. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([field, one]) => [field, sorted(one)])
  )
}

const digestOf = (value: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify(sorted(value)) ?? "")
    .digest("base64")
    .slice(0, 16)

const isEqual = (one: Recorded, other: Recorded): boolean =>
  one.key === other.key &&
  one.storedAt === other.storedAt &&
  (one.content === other.content || one.content === "" || other.content === "")

const conflictOf = ({ conflict }: Recorded) => (conflict === undefined ? {} : { conflict })

const contradicts = (revision: number, { key, storedAt }: Recorded, other: Recorded): string => {
  const [owner, id] = other.key.split(".")
  const what = other.key === key ? "another configuration of it" : `${owner}/${id}`
  const when = other.storedAt === storedAt ? "at the same time" : "later"
  return `revision ${revision} of the endpoints' bucket, which an earlier fact gives to ${what}, stored ${when}`
}

/**
 * The recorded changes of endpoints, by revision of the bucket. The bucket gives a revision once,
 * to one endpoint; it gives it again only after it has lost its end, and then later than before.
 */
export class RecordedChanges {
  readonly #byRevision = new Map<number, ReadonlyArray<Recorded>>()

  /**
   * Adds the change that a fact tells of; the same fact may be shown several times.
   *
   * @returns in words, what was recorded before and contradicts it; and whether the fact
   *   is shown for the first time.
   */
  add({ change, endpoint, tenant }: Loose): {
    readonly conflict?: string
    readonly isNew: boolean
  } {
    const isTrue = { isNew: true }
    if (typeof change !== "object" || change === null) return isTrue
    const { isUnreadable, now, ...at }: Record<string, unknown> = { ...change }
    const revision = numberIn(at.revision)
    const storedAt = numberIn(at.storedAt)
    // A removal that left no entry has no revision of its own.
    if (revision === undefined || storedAt === undefined || storedAt === 0) return isTrue
    const recorded: Recorded = {
      key: `${textIn(tenant)}.${textIn(endpoint)}`,
      storedAt,
      content: isUnreadable === true ? "" : digestOf(now)
    }
    const known = this.#byRevision.get(revision) ?? []
    const same = known.find((other) => isEqual(other, recorded))
    if (same !== undefined) return { ...conflictOf(same), isNew: false }
    const other = known.find((one) => one.conflict === undefined && one.storedAt >= storedAt)
    const added: Recorded =
      other === undefined
        ? recorded
        : { ...recorded, conflict: contradicts(revision, recorded, other) }
    this.#byRevision.set(revision, [...known, added])
    return { ...conflictOf(added), isNew: true }
  }
}
