import { Clock, Effect, Stream } from "effect"
import type { FactKind } from "../../domain/fact.ts"
import type { FactQuery, StoredFact } from "../../history/read.ts"
import { readFacts } from "../../history/read.ts"
import { type Lag, type LoggedDeliveries, maxLoggedRounds } from "../../projection/delivery-log.ts"
import { getRemotely } from "../../projection/remote-log.ts"

/** The facts about an event, and how far the log was behind that said where they are. */
export interface EventFacts {
  readonly facts: ReadonlyArray<StoredFact>
  /** Absent if the whole history was read. */
  readonly lag?: Lag
}

/** What is asked about an event. */
export interface EventQuery extends Omit<FactQuery, "after" | "event" | "follow"> {
  readonly event: string
}

/** A delivery log that is further behind than this is not asked, ms. */
const maxLagMs = 2_000
/** How far a fact's own time may be off the time when it was stored, ms: a worker sends nothing at 30 s. */
const defaultMarginMs = 60_000

/** Kinds of facts that may come long after a round has ended. The broker finds these few by index. */
const laterKinds: ReadonlyArray<FactKind> = [
  "delivered-late",
  "discarded",
  "missing",
  "redelivered",
  "replayed"
]

/** Times in ms since the epoch, both inclusive. */
interface Period {
  readonly since: number
  readonly until: number
}

/** From the event's first round to the end of its last one; undefined where that is not known. */
export const periodOf = (
  { rounds }: Pick<LoggedDeliveries, "rounds">,
  marginMs: number
): Period | undefined => {
  const begins = rounds.map(({ beganAt }) => beganAt)
  if (begins.length === 0 || begins.length >= maxLoggedRounds || begins.includes(null))
    return undefined
  const ends = rounds.map(({ at, state }) => (state === "waiting" ? Number.POSITIVE_INFINITY : at))
  return {
    since: Math.min(...begins.map((at) => at ?? 0)) - marginMs,
    until: Math.max(...ends) + marginMs
  }
}

/**
 * Reads the facts about one event, in the order of the history. The history has no index by event:
 * where a projection runs, it says when the event's rounds began and ended, and only that part is
 * read, besides kinds that come later and what the projection has not seen. Else reads all of it.
 *
 * @param marginMs how far a fact's own time may be off the time when it was stored.
 */
export const readEventFacts = Effect.fnUntraced(function* (
  query: EventQuery,
  marginMs = defaultMarginMs
) {
  const { endpoint, event } = query
  const tenant = query.tenant ?? endpoint?.tenant
  const logged = yield* getRemotely({ event, ...(tenant === undefined ? {} : { tenant }) }).pipe(
    Effect.orElseSucceed(() => undefined)
  )
  const period =
    logged === undefined || logged.lag.ms > maxLagMs ? undefined : periodOf(logged, marginMs)
  if (logged === undefined || period === undefined) {
    const facts = yield* Stream.runCollect(readFacts(query))
    return { facts } satisfies EventFacts
  }
  const { kinds, since = 0, until = Number.POSITIVE_INFINITY } = query
  const unseen = (yield* Clock.currentTimeMillis) - logged.lag.ms - marginMs
  const later = laterKinds.filter(
    (kind) => kinds === undefined || kinds.length === 0 || kinds.includes(kind)
  )
  const found = new Map<number, StoredFact>()
  const read = (part: Partial<FactQuery> & Period) => {
    const [from, to] = [Math.max(since, part.since), Math.min(until, part.until)]
    if (from > to) return Effect.void
    const bounds = { since: from, ...(Number.isFinite(to) ? { until: to } : {}) }
    return readFacts({ ...query, ...part, until: undefined, ...bounds }).pipe(
      Stream.runForEach((fact) => Effect.sync(() => found.set(fact.seq, fact)))
    )
  }
  yield* read(period)
  const end = Number.POSITIVE_INFINITY
  if (period.until < end) {
    if (later.length > 0) yield* read({ since: period.until, until: end, kinds: later })
    yield* read({ since: Math.max(unseen, period.until), until: end })
  }
  return {
    facts: [...found.values()].toSorted((one, other) => one.seq - other.seq),
    lag: logged.lag
  } satisfies EventFacts
})
