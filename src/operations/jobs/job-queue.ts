import { Context } from "effect"
import type { JobKind } from "./job.ts"

/** How many jobs of the installation have not ended. */
export interface JobCounts {
  readonly waiting: number
  readonly running: number
}

/** Counts the jobs of the installation, where jobs are worked on. */
export class JobCounter extends Context.Service<JobCounter, () => JobCounts>()(
  "petrel/operations/JobCounter"
) {}

/** A job that has not ended. */
export interface OpenJob {
  readonly id: string
  /** `*` for all tenants. */
  readonly tenant: string
  readonly kind: JobKind
  /** Since when it waits, ms since the epoch. */
  readonly since: number
  /** When it may be tried again, ms since the epoch. */
  readonly notBefore: number
  /** The console that works on it, or has ended in the middle of it. */
  readonly console: string | undefined
  /** Consoles that are taken to have ended in the middle of it. */
  readonly endedConsoles: ReadonlyArray<string>
}

/** A job that this console works on. */
export interface Place {
  readonly id: string
  readonly tenant: string
  readonly kind: JobKind
  /** When it took the place, ms of the monotonic clock. */
  readonly takenAt: number
  /** True while its endpoint takes no more. */
  readonly isHeld: boolean
}

/** Jobs that one console works on at the same time: each has some 6 MB of rounds in memory. */
export const maxPlaces = 16
/** After this time, a job whose endpoint takes no more may lose its place to another one, ms. */
const heldPlaceMs = 10_000

/** Jobs that one look takes up at most. */
const maxTaken = maxPlaces

type Counts = Map<string, number>

const countOf = (counts: Counts, { tenant }: { readonly tenant: string }): number =>
  counts.get(tenant) ?? 0

const add = (counts: Counts, { tenant }: { readonly tenant: string }, by: number) =>
  counts.set(tenant, (counts.get(tenant) ?? 0) + by)

/** The order in which jobs are taken up: the next is of a tenant of which the fewest are worked on. */
const inTurn = (jobs: ReadonlyArray<OpenJob>, atWork: Counts): ReadonlyArray<OpenJob> => {
  const counts = new Map(atWork)
  const sorted = jobs.toSorted((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))
  const lines = [...Map.groupBy(sorted, ({ tenant }) => tenant).values()]
  const order: Array<OpenJob> = []
  while (order.length < maxTaken) {
    let first: OpenJob | undefined
    let from: Array<OpenJob> = []
    for (const line of lines) {
      const [head] = line
      if (head === undefined) continue
      const isBefore = first === undefined || countOf(counts, head) - countOf(counts, first) < 0
      const isOlder =
        first !== undefined &&
        countOf(counts, head) === countOf(counts, first) &&
        head.since < first.since
      if (isBefore || isOlder) [first, from] = [head, line]
    }
    if (first === undefined) break
    order.push(first)
    from.shift()
    add(counts, first, 1)
  }
  return order
}

/** The jobs that leave their place to others, since they only wait for their endpoint. */
const leaving = (
  waiting: ReadonlyArray<OpenJob>,
  places: ReadonlyArray<Place>,
  atWork: Counts,
  monotonicMs: number
): ReadonlyArray<string> => {
  const counts = new Map(atWork)
  const held = new Set(
    places.filter(({ isHeld, takenAt }) => isHeld && monotonicMs - takenAt >= heldPlaceMs)
  )
  const left: Array<string> = []
  for (const job of waiting) {
    const [place] = [...held].toSorted(
      (a, b) => countOf(counts, b) - countOf(counts, a) || a.takenAt - b.takenAt
    )
    if (place === undefined || countOf(counts, place) < countOf(counts, job)) continue
    held.delete(place)
    left.push(place.id)
    add(counts, place, -1)
    add(counts, job, 1)
  }
  return left
}

/** True if one of them is an audit. There is one at a time: each reads the whole history. */
const isAuditing = (places: ReadonlyArray<Place>): boolean =>
  places.some(({ kind }) => kind === "audit")

/** True if a console has a place for a job. */
export const hasPlace = ({ kind }: Pick<OpenJob, "kind">, places: ReadonlyArray<Place>): boolean =>
  places.length < maxPlaces && (kind !== "audit" || !isAuditing(places))

/** What a console does about its jobs. */
interface NextJobs {
  /** Jobs to take up, in this order, as far as there are places (`hasPlace`). */
  readonly take: ReadonlyArray<OpenJob>
  /** Ids of jobs that give up their places. */
  readonly giveUp: ReadonlyArray<string>
}

/**
 * Decides which jobs a console takes up next: by turns of their tenants, and of a tenant the one
 * that waits longest. Where all places are taken, jobs that are held back give theirs up.
 *
 * @param places of this console.
 * @param now ms since the epoch, and of the monotonic clock.
 */
export const nextJobs = (
  open: ReadonlyArray<OpenJob>,
  places: ReadonlyArray<Place>,
  now: { readonly wallMs: number; readonly monotonicMs: number }
): NextJobs => {
  const mine = new Set(places.map(({ id }) => id))
  const auditing = isAuditing(places)
  const others = open.filter(
    ({ id, kind, notBefore }) =>
      !mine.has(id) && notBefore <= now.wallMs && !(auditing && kind === "audit")
  )
  // Another console works on these, or has ended in the middle of them: their leases say.
  const begun = others.filter(({ console }) => console !== undefined)
  const atWork: Counts = new Map()
  for (const job of [...places, ...begun]) add(atWork, job, 1)
  const waiting = inTurn(
    others.filter(({ console }) => console === undefined),
    atWork
  )
  const isFull = places.length >= maxPlaces
  return {
    take: isFull ? [] : [...begun, ...waiting],
    giveUp: isFull ? leaving(waiting, places, atWork, now.monotonicMs) : []
  }
}
