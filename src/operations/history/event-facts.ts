import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { firstSince } from "../../broker/scan.ts"
import type { FactKind } from "../../domain/fact.ts"
import type { FactQuery, StoredFact } from "../../history/read.ts"
import { contradictsItself, makePicker, readFacts, subjectsOf } from "../../history/read.ts"
import type { Lag, LoggedDeliveries } from "../../projection/delivery-log.ts"
import { maxLoggedRounds } from "../../projection/delivery-log.ts"
import { getRemotely, remoteStatus } from "../../projection/remote-log.ts"

/** The facts about an event, and how far the log was behind that said where they are. */
interface EventFacts {
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
/** How far a worker's clock may be off the broker's, ms: it sends nothing at 30 s. */
const skewMs = 60_000

/** Kinds of facts that may come long after a round has ended. The broker finds these few by index. */
const laterKinds: ReadonlyArray<FactKind> = [
  "delivered-late",
  "discarded",
  "missing",
  "redelivered",
  "replayed"
]

/** Where the facts about an event are. */
interface EventPlace {
  /** When the first one happened, ms since the epoch. A fact is stored when it happens, or later. */
  readonly since: number
  /** The last one, as a sequence in HISTORY; undefined while a round has not ended. */
  readonly to: number | undefined
}

/** Returns where the facts about an event are; undefined where the log does not know it. */
export const placeOf = ({ rounds }: Pick<LoggedDeliveries, "rounds">): EventPlace | undefined => {
  const begins = rounds.map(({ beganAt }) => beganAt)
  if (begins.length === 0 || begins.length >= maxLoggedRounds || begins.includes(null))
    return undefined
  // Of a fact that repeats another one, the log does not have the sequence.
  if (rounds.some(({ repeats }) => repeats > 0)) return undefined
  const seqs = rounds.flatMap(({ recorded, seq }) => [seq, ...recorded.map((one) => one.seq)])
  return {
    since: Math.min(...begins.map((at) => at ?? 0)),
    to: rounds.some(({ state }) => state === "waiting") ? undefined : Math.max(...seqs)
  }
}

/** Asks a running projection where the facts are; undefined where it does not know. */
const askWhere = Effect.fnUntraced(function* ({ endpoint, event, tenant }: EventQuery) {
  // Asked first: the rounds that are shown then are as of this position, or newer.
  const { lag, position } = yield* remoteStatus
  if (lag.ms > maxLagMs) return undefined
  const owner = tenant ?? endpoint?.tenant
  const found = yield* getRemotely({ event, ...(owner === undefined ? {} : { tenant: owner }) })
  const place = placeOf(found)
  return place === undefined ? undefined : { ...place, lag, position }
})

/**
 * Reads the facts about one event, in the order of the history. The history has no index by event:
 * where a projection runs, it says where the event's rounds began and ended, and only that part is
 * read, besides kinds that come later and what the projection has not seen. Else reads all of it.
 */
export const readEventFacts = Effect.fnUntraced(function* (query: EventQuery) {
  if (contradictsItself(query)) return { facts: [] } satisfies EventFacts
  const where = yield* Effect.orElseSucceed(askWhere(query), () => undefined)
  if (where === undefined)
    return { facts: yield* Stream.runCollect(readFacts(query)) } satisfies EventFacts
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  const { kinds = [], since = 0, until } = query
  const first = yield* firstSince(names.history, Math.max(since, where.since - skewMs))
  const last =
    until === undefined ? state.last_seq : (yield* firstSince(names.history, until + 1)) - 1
  const { pick, warnOfSkipped } = makePicker(query)
  const found = new Map<number, StoredFact>()
  const read = (from: number, to: number, some: ReadonlyArray<FactKind> = kinds) =>
    readThrough(
      {
        stream: names.history,
        subjects: subjectsOf({ ...query, kinds: some }, names),
        from: Math.max(first, state.first_seq, from),
        to: Math.min(last, to)
      },
      ({ message, seq }) => {
        const stored = pick(message.string(), seq)
        if (stored !== undefined) found.set(seq, stored)
      }
    )
  const { to = last } = where
  yield* read(first, to)
  const later = laterKinds.filter((kind) => kinds.length === 0 || kinds.includes(kind))
  if (later.length > 0) yield* read(to + 1, where.position, later)
  yield* read(Math.max(to, where.position) + 1, last)
  yield* warnOfSkipped
  return {
    facts: [...found.values()].toSorted((one, other) => one.seq - other.seq),
    lag: where.lag
  } satisfies EventFacts
})
