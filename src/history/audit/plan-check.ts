import type { Planned } from "../../domain/fact.ts"
import type { Loose } from "../fact-record.ts"
import { textIn } from "../fact-record.ts"
import {
  countUpTo,
  RecordedChanges,
  roundWindow,
  type Selects,
  selecting,
  type Version,
  Versions,
  versionOf,
  wants
} from "./configuration-versions.ts"
import type { AuditProblem } from "./problem.ts"

/** Maximum age of the endpoints that a plan is made from, ms: see `Directory`. */
const maxDirectoryAgeMs = 10_000
/**
 * Event types and endpoints that want them, per tenant, that are cached in all. What is not is
 * computed from all of the tenant's endpoints, which is as much as a plan that names most of them.
 */
const maxCached = 500_000

type PlannedEndpoint = Omit<Planned, "id">

/** The fields of a plan's part that are checked. */
interface PlanPart {
  readonly part: number
  readonly last: boolean
  readonly directory: number
  /** By id, what the router saw, and the deadline that it set, ms since the epoch. */
  readonly endpoints: ReadonlyMap<string, PlannedEndpoint>
  readonly skipped: ReadonlySet<string>
}

/** The event of a plan, from the same fact. */
interface PlannedEvent {
  readonly tenant: string
  readonly type: string
  readonly eventSeq: number
  readonly eventAt: number
  /** When the fact was stored, ms since the epoch. */
  readonly storedAt: number
}

interface VersionChange {
  readonly version: Version
  readonly of: Versions
}

const revisionOf = ({ version }: VersionChange): number => version.revision

/** The endpoints that want a type or may want it. */
interface Wanting {
  readonly selects: Selects
  readonly endpoints: Set<Versions>
}

/**
 * The endpoints of a tenant at one revision of the bucket. The revision moves along with the plans
 * that are checked: consecutive plans are made from the same revision or from near ones.
 */
class Tenant {
  readonly endpoints = new Map<string, Versions>()
  /** By type, as of {@link #applied}. */
  readonly #wanting = new Map<string, Wanting>()
  /** How many types and endpoints are in {@link #wanting}. */
  #cached = 0
  /** By revision. */
  #changes: Array<VersionChange> = []
  /** How many of the changes are applied. */
  #applied = 0

  take(id: string, version: Version): void {
    const versions = this.endpoints.get(id) ?? new Versions(id)
    this.endpoints.set(id, versions)
    const taken = versions.add(version)
    if (taken === "known") return
    const { revision } = version
    const at = countUpTo(this.#changes, revisionOf, revision)
    this.#changes.splice(at, 0, { version, of: versions })
    if (taken === "replaced")
      this.#changes = this.#changes.filter(
        ({ of, version }) => of !== versions || versions.of(version.revision) === version
      )
    if (taken === "added" && at >= this.#applied) return
    this.#applied = 0
    this.#forget()
  }

  /** Returns the endpoints that want a type, or may want it, at a revision. */
  wanting(type: string, directory: number): ReadonlySet<Versions> {
    this.#moveTo(directory)
    const known = this.#wanting.get(type)
    if (known !== undefined) return known.endpoints
    const selects = selecting(type)
    const endpoints = new Set<Versions>()
    for (const versions of this.endpoints.values())
      if (mayWant(versions.at(directory), selects)) endpoints.add(versions)
    if (this.#cached + endpoints.size >= maxCached) this.#forget()
    this.#wanting.set(type, { selects, endpoints })
    this.#cached += 1 + endpoints.size
    return endpoints
  }

  #forget(): void {
    this.#wanting.clear()
    this.#cached = 0
  }

  /** The first change after a revision whose time is known. */
  firstAfter(directory: number): VersionChange | undefined {
    let at = countUpTo(this.#changes, revisionOf, directory)
    while (this.#changes[at]?.version.storedAt === 0) at++
    return this.#changes[at]
  }

  #moveTo(directory: number): void {
    const to = countUpTo(this.#changes, revisionOf, directory)
    const [from, end] = to < this.#applied ? [to, this.#applied] : [this.#applied, to]
    this.#applied = to
    if (this.#wanting.size === 0) return
    for (let at = from; at < end; at++) {
      const change = this.#changes[at]
      if (change === undefined) continue
      const version = change.of.at(directory)
      for (const { endpoints, selects } of this.#wanting.values()) {
        const before = endpoints.size
        if (mayWant(version, selects)) endpoints.add(change.of)
        else endpoints.delete(change.of)
        this.#cached += endpoints.size - before
      }
    }
  }
}

const mayWant = (version: Version | undefined, selects: Selects): boolean =>
  version !== undefined && (version.state === "unknown" || version.filters.some(selects))

/** What a plan must say of an endpoint; `any` if its configuration is unknown. */
type Due = "planned" | "skipped" | "nothing" | "any"

const dueOf = (version: Version | undefined, type: string): Due => {
  if (version === undefined || version.state === "removed") return "nothing"
  if (version.state === "unknown") return "any"
  if (!wants(version, type)) return "nothing"
  return version.state === "enabled" ? "planned" : "skipped"
}

/** What became of the fact of a change; a problem is returned the first time only. */
type ChangeTaken = "read" | "unreadable" | AuditProblem

/**
 * Recomputes plans from the recorded changes of endpoints, each part at the revision of the bucket
 * that it names.
 */
export class PlanCheck {
  /** Parts that were recomputed. */
  recomputed = 0
  /** Parts without a revision: an older version made them. */
  unknown = 0
  /** When the last event with such a part was stored, ms since the epoch. */
  unknownUntil = 0
  readonly #tenants = new Map<string, Tenant>()
  readonly #recorded = new RecordedChanges()
  /** The last endpoint of the previous part, for plans with more parts to come. */
  readonly #ends = new Map<string, string>()
  /** By how much the clocks of the brokers may differ, ms. */
  readonly #clocksApart: number

  constructor(clocksApart: number) {
    this.#clocksApart = clocksApart
  }

  /** Adds a change of an endpoint. One that contradicts an earlier one has no effect. */
  change(record: Loose): ChangeTaken {
    const version = versionOf(record)
    const tenant = textIn(record.tenant)
    const endpoint = textIn(record.endpoint)
    if (version === undefined || tenant === undefined || endpoint === undefined) return "unreadable"
    const { conflict, isNew } = this.#recorded.add(record)
    if (conflict !== undefined) {
      const says = `it tells of a change of ${tenant}/${endpoint} as ${conflict}`
      return isNew ? { kind: "configuration-conflict", tenant, endpoint, says } : "read"
    }
    this.#tenant(tenant).take(endpoint, version)
    return "read"
  }

  /** The last recorded version of each endpoint. */
  *latest(): Generator<{ readonly key: string; readonly version: Version }> {
    for (const [tenant, { endpoints }] of this.#tenants)
      for (const { id, latest } of endpoints.values())
        if (latest !== undefined) yield { key: `${tenant}.${id}`, version: latest }
  }

  /** Returns the problems of a plan's part. */
  plan(record: Loose, event: PlannedEvent): ReadonlyArray<AuditProblem> {
    const part = partOf(record)
    if (part === undefined) {
      this.unknown++
      this.unknownUntil = Math.max(this.unknownUntil, event.eventAt)
      return []
    }
    this.recomputed++
    const tenant = this.#tenant(event.tenant)
    const problems: Array<AuditProblem> = []
    const isIn = this.#range(part, event)
    const { directory, endpoints } = part
    for (const versions of this.#concerned(tenant, part, event.type))
      if (isIn(versions.id)) problems.push(...checkEndpoint(versions, part, event))
    for (const [id, planned] of endpoints) {
      const { generation, revision } = planned
      const version = tenant.endpoints.get(id)?.of(revision)
      const why =
        version === undefined
          ? `names revision ${revision} of it, and no fact tells of that`
          : revision > directory
            ? `names revision ${revision} of it, which is later`
            : version.state === "enabled" && version.generation !== generation
              ? `names revision ${revision} of it with another generation than that has`
              : undefined
      if (why !== undefined) problems.push(problemOf("plan-adds", id, part, event, why))
      const late = version === undefined ? undefined : deadlineProblem(version, planned, event)
      if (late !== undefined) problems.push(problemOf("plan-deadline", id, part, event, late))
    }
    const missed = this.#missed(tenant, directory, event)
    if (missed !== undefined)
      problems.push({
        kind: "plan-stale",
        ...{ tenant: event.tenant, eventSeq: event.eventSeq },
        says: `its plan was made from revision ${directory} of the endpoints, though ${event.tenant}/${missed.of.id} had been changed (revision ${missed.version.revision}) ${Math.round((event.eventAt - missed.version.storedAt) / 1000)} s before it was stored`
      })
    return problems
  }

  /** The endpoints that the plan should name, and those that it names. */
  #concerned(tenant: Tenant, part: PlanPart, type: string): ReadonlySet<Versions> {
    const wanting = tenant.wanting(type, part.directory)
    let all: Set<Versions> | undefined
    for (const id of part.endpoints.keys()) {
      const versions = tenant.endpoints.get(id)
      if (versions === undefined || wanting.has(versions)) continue
      all ??= new Set(wanting)
      all.add(versions)
    }
    return all ?? wanting
  }

  /** Selects the ids that a part covers: after the end of the previous part, up to its own end. */
  #range(part: PlanPart, { eventAt, eventSeq }: PlannedEvent): (id: string) => boolean {
    if (part.part === 0 && part.last) return () => true
    const name = `${eventSeq}.${eventAt}`
    const ids = [...part.endpoints.keys(), ...part.skipped].sort()
    const end = ids.at(-1) ?? ""
    const before = part.part === 0 ? "" : this.#ends.get(name)
    const isAfter = (id: string) => (before === undefined ? id >= (ids[0] ?? "") : id > before)
    if (part.last) this.#ends.delete(name)
    else this.#ends.set(name, end)
    return (id) => isAfter(id) && (part.last || id <= end)
  }

  /** A change after the plan's revision that the router should have known. */
  #missed(tenant: Tenant, directory: number, { eventAt }: PlannedEvent): VersionChange | undefined {
    const change = tenant.firstAfter(directory)
    const before = eventAt - maxDirectoryAgeMs - this.#clocksApart
    return change !== undefined && change.version.storedAt < before ? change : undefined
  }

  #tenant(name: string): Tenant {
    const known = this.#tenants.get(name)
    if (known !== undefined) return known
    const tenant = new Tenant()
    this.#tenants.set(name, tenant)
    return tenant
  }
}

const checkEndpoint = (
  versions: Versions,
  part: PlanPart,
  event: PlannedEvent
): ReadonlyArray<AuditProblem> => {
  const { id } = versions
  const isPlanned = part.endpoints.has(id)
  const isSkipped = part.skipped.has(id)
  const may = versions.upTo(part.directory, event.storedAt)
  const isRight = may.some((version) => {
    const due = dueOf(version, event.type)
    if (due === "any") return true
    if (due === "planned") return isPlanned
    return due === "skipped" ? isSkipped && !isPlanned : !isPlanned
  })
  if (isRight) return []
  const [version] = may
  const revision = version === undefined ? "" : ` (revision ${version.revision})`
  if (isPlanned) {
    const why =
      dueOf(version, event.type) === "skipped"
        ? `names it, and it was disabled${revision}`
        : `names it, and it did not want ${event.type}${revision}`
    return [problemOf("plan-adds", id, part, event, why)]
  }
  const why = isSkipped
    ? `skips it, and it was enabled${revision}`
    : `does not name it, and it wanted ${event.type}${revision}`
  return [problemOf("plan-omits", id, part, event, why)]
}

/** Says how a deadline differs from that of the policy; undefined if it does not. */
const deadlineProblem = (
  version: Version,
  { deadline, generation }: PlannedEndpoint,
  { eventAt, storedAt, type }: PlannedEvent
): string | undefined => {
  // A bucket that lost its end gives the revision again, to a configuration of after the plan.
  if (version.storedAt > storedAt || version.generation !== generation) return undefined
  const window = roundWindow(version, type)
  if (window === undefined || deadline === eventAt + window) return undefined
  const text = (ms: number) => `${ms / 1000} s`
  return `gives it ${text(deadline - eventAt)} for ${type}, and its retry policy gave ${text(window)} (revision ${version.revision})`
}

const problemOf = (
  kind: "plan-adds" | "plan-deadline" | "plan-omits",
  endpoint: string,
  { directory }: PlanPart,
  { eventSeq, tenant }: PlannedEvent,
  why: string
): AuditProblem => ({
  kind,
  ...{ tenant, endpoint, eventSeq },
  says: `the event's plan, made from revision ${directory} of the endpoints, ${why}`
})

const partOf = ({ plan }: Loose): PlanPart | undefined => {
  if (typeof plan !== "object" || plan === null) return undefined
  const { directory, endpoints, last, part, skipped }: Record<string, unknown> = { ...plan }
  if (typeof directory !== "number" || typeof part !== "number") return undefined
  if (!Array.isArray(endpoints) || !Array.isArray(skipped)) return undefined
  return {
    part,
    last: last === true,
    directory,
    endpoints: new Map(
      endpoints.map((each) => [
        String(each?.id),
        {
          revision: Number(each?.revision),
          generation: String(each?.generation),
          deadline: Number(each?.deadline)
        }
      ])
    ),
    skipped: new Set(skipped.map((each) => String(each?.id)))
  }
}
