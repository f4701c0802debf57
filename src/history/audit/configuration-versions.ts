import { isOwnType } from "../../domain/type-filter.ts"
import type { Loose } from "../fact-record.ts"
import { numberIn, textIn } from "../fact-record.ts"
import type { RoundWindows } from "./round-windows.ts"
import { roundWindows, windowOfType } from "./round-windows.ts"

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

export type Filters = ReadonlyArray<ReadonlyArray<string>>

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

/** Returns which filters select a type. */
const selecting = (type: string): ((filter: ReadonlyArray<string>) => boolean) => {
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
