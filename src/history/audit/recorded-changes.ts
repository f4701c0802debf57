import { createHash } from "node:crypto"
import type { Loose } from "../fact-record.ts"
import { numberIn, textIn } from "../fact-record.ts"

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
