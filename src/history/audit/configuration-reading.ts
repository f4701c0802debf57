import { createHash } from "node:crypto"
import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { readStream, storedAt } from "../../broker/scan.ts"
import { maxNodeSkewMs } from "../../domain/clock-bounds.ts"
import { factResult } from "../../domain/fact.ts"
import { type Loose, numberIn, readRecord, textIn } from "../fact-record.ts"
import type { Version } from "./configuration-versions.ts"
import type { PlanCheck } from "./plan-check.ts"
import type { AuditProblem } from "./problem.ts"

/**
 * Reads all changes of endpoints, from the copy of their facts that does not expire. Must run before
 * any plan is checked.
 */
export const readConfiguration = Effect.fnUntraced(function* (
  check: PlanCheck,
  tenant: string | undefined
) {
  const { names, streamInfo } = yield* Broker
  const stream = names.configuration
  const { state } = yield* streamInfo(`look at ${stream}`, stream)
  const problems: Array<AuditProblem> = []
  const removed = state.first_seq - 1 + (state.num_deleted ?? 0)
  if (state.messages > 0 && removed > 0)
    problems.push({
      kind: "configuration-gap",
      stream,
      says: `${removed} of the changes of endpoints are not in ${stream} any more: somebody removed them`
    })
  const kind = "endpoint-changed"
  yield* readThrough(
    {
      stream,
      subjects: [names.subjects.fact(tenant ?? "*", "*", factResult(kind), kind)],
      from: 1,
      to: state.last_seq
    },
    ({ message, seq }) => {
      const record = readRecord(message.string())
      const taken = record === undefined ? "unreadable" : check.change(record)
      if (taken === "read") return
      if (typeof taken === "object") {
        const says = `message ${seq} of ${stream} is false: ${taken.says}`
        problems.push({ ...taken, stream, streamSeq: seq, says })
        return
      }
      problems.push({
        kind: "unreadable-fact",
        ...{ stream, streamSeq: seq },
        says: `message ${seq} of ${stream} is no fact that this version can read`
      })
    }
  )
  return problems
})

/** True if the bucket's entry of an endpoint is this version, or one that was stored after it. */
const isHeld = (
  { at, revision }: { readonly at: number; readonly revision: number },
  version: Pick<Version, "revision" | "storedAt">
): boolean =>
  revision === version.revision
    ? version.storedAt === 0 || version.storedAt === at
    : revision > version.revision && version.storedAt <= at + maxNodeSkewMs

/**
 * Finds changes that the history has and the bucket has not. The opposite is no problem: no worker
 * may have seen the change yet.
 */
export const compareConfiguration = Effect.fnUntraced(function* (
  check: PlanCheck,
  tenant: string | undefined
) {
  const { names } = yield* Broker
  const bucket = names.buckets.endpoints
  const prefix = `$KV.${bucket}.`
  const entries = new Map<string, { readonly revision: number; readonly at: number }>()
  yield* Stream.runForEach(
    readStream({
      stream: `KV_${bucket}`,
      subjects: [`${prefix}${tenant ?? "*"}.*`],
      headersOnly: true
    }),
    (message) =>
      Effect.sync(() => {
        const key = message.subject.slice(prefix.length)
        entries.set(key, { revision: message.seq, at: storedAt(message) })
      })
  )
  const problems: Array<AuditProblem> = []
  for (const { key, version } of check.latest()) {
    const { revision, state } = version
    const [owner = "", endpoint = ""] = key.split(".")
    if ((tenant ?? owner) !== owner) continue
    const there = entries.get(key)
    if (there === undefined ? state === "removed" || state === "unknown" : isHeld(there, version))
      continue
    problems.push({
      kind: "configuration-differs",
      ...{ tenant: owner, endpoint },
      says:
        there === undefined
          ? `the facts tell of ${owner}/${endpoint} at revision ${revision}, and the endpoints' bucket has nothing of it`
          : `the facts tell of ${owner}/${endpoint} at revision ${revision}, and the endpoints' bucket has revision ${there.revision}${there.revision === revision ? ", stored at another time" : ""}`
    })
  }
  return problems
})

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
   * @returns in words, what was recorded before and cannot be true beside it; and whether the fact
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
