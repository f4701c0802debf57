import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { firstSince, readStream, storedAt } from "../broker/scan.ts"
import { idOfTenant } from "../domain/event.ts"
import type { FactKind } from "../domain/fact.ts"
import { Fact, factResult } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"

/**
 * Which facts to read; all conditions hold at once. Times are when the broker stored a fact (ms
 * since the epoch), because facts are in that order.
 */
export interface FactQuery {
  readonly tenant?: string | undefined
  /** Excludes facts about an event as a whole (`routed`, `unroutable`), which name no endpoint. */
  readonly endpoint?: { readonly tenant: string; readonly id: string } | undefined
  /** An event's id, or `evt_` + its sequence, which works for every event. */
  readonly event?: string | undefined
  /** (Default: all) */
  readonly kinds?: ReadonlyArray<FactKind> | undefined
  /** Inclusive. */
  readonly since?: number | undefined
  /** Inclusive. */
  readonly until?: number | undefined
  /** Excludes facts up to this sequence of the history. Not together with `since`. */
  readonly after?: number | undefined
  /** Also read facts stored later, up to `until` if set. (Default: end with those stored now) */
  readonly follow?: boolean | undefined
}

/** A fact and its position in the history. */
export interface StoredFact {
  /** Sequence in HISTORY. */
  readonly seq: number
  readonly fact: Fact
  /** The record as written, including fields that this version does not know. */
  readonly record: Readonly<Record<string, unknown>>
}

const Json = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const decodeRecord = Schema.decodeUnknownOption(Json)
const decodeFact = Schema.decodeUnknownOption(Fact)

/** Parses a fact; none if the text is not a fact. */
export const parseFact = (text: string, seq: number): Option.Option<StoredFact> =>
  Option.flatMap(decodeRecord(text), (record) =>
    Option.map(decodeFact(record), (fact) => ({ seq, fact, record }))
  )

/** Kinds so frequent that reading the whole history is cheaper than filtering for them. */
const frequent: ReadonlySet<FactKind> = new Set(["routed", "delivered", "attempt-failed"])

/**
 * Across all tenants, filters by kind only for rare kinds, whose few facts the broker finds by its
 * index. With thousands of subjects, a filter of single tokens costs the broker 80 µs a fact that
 * passes, times the number of filters; reading all facts costs 6 µs each.
 */
export const subjectsOf = (query: FactQuery, { subjects }: Names): ReadonlyArray<string> => {
  const tenant = query.endpoint?.tenant ?? query.tenant ?? "*"
  const endpoint = query.endpoint?.id ?? "*"
  const kinds = kindsOf(query)
  const isWide = tenant === "*" && endpoint === "*"
  if (isWide && (kinds === undefined || kinds.some((kind) => frequent.has(kind))))
    return [subjects.allFacts]
  if (kinds !== undefined)
    return kinds.map((kind) => subjects.fact(tenant, endpoint, factResult(kind), kind))
  return [
    subjects.fact(tenant, endpoint, "ok", "*"),
    subjects.fact(tenant, endpoint, "failure", "*")
  ]
}

/**
 * Tests whether a fact is about an event (its id, with or without its tenant in front, or `evt_` + a
 * sequence), and whether a text may be
 * such a fact. Searching the text costs a fraction of parsing it.
 */
export const concerning = (
  event: string
): {
  readonly isAbout: (fact: Fact) => boolean
  readonly mayBeAbout: (text: string) => boolean
} => {
  const seq = /^evt_(\d+)$/.exec(event)?.[1]
  const id = JSON.stringify(event)
  const afterTenant = `.${id.slice(1)}`
  const eventSeq = seq === undefined ? undefined : `"eventSeq":${Number(seq)}`
  return {
    isAbout: (fact) =>
      fact.event === event ||
      fact.event === idOfTenant(fact.tenant, event) ||
      (seq !== undefined && fact.eventSeq === Number(seq)),
    mayBeAbout: (text) =>
      text.includes(id) ||
      text.includes(afterTenant) ||
      (eventSeq !== undefined && text.includes(eventSeq))
  }
}

/** The requested kinds; undefined for all. */
const kindsOf = ({ kinds = [] }: FactQuery): ReadonlyArray<FactKind> | undefined =>
  kinds.length === 0 ? undefined : [...new Set(kinds)]

const anything = { isAbout: () => true, mayBeAbout: () => true }

/** Whether a query names a tenant and an endpoint of another one. */
export const contradictsItself = ({ endpoint, tenant }: FactQuery): boolean =>
  tenant !== undefined && endpoint !== undefined && tenant !== endpoint.tenant

/** Picks the facts that a query asks for, apart from their time, and counts what is no fact. */
export const makePicker = (query: FactQuery) => {
  const kinds = kindsOf(query)
  const { isAbout, mayBeAbout } = query.event === undefined ? anything : concerning(query.event)
  let skipped = 0
  return {
    pick: (text: string, seq: number): StoredFact | undefined => {
      if (!mayBeAbout(text)) return undefined
      const stored = Option.getOrUndefined(parseFact(text, seq))
      if (stored === undefined) skipped++
      else if (isAbout(stored.fact) && (kinds?.includes(stored.fact.kind) ?? true)) return stored
      return undefined
    },
    warnOfSkipped: Effect.flatMap(Broker, ({ names }) =>
      skipped === 0
        ? Effect.void
        : Effect.logWarning(`skipped records that are not facts in ${names.history}: ${skipped}`)
    )
  }
}

/**
 * Reads the facts that match a query, in the order of the history. Skips records that are not facts
 * of this version, and logs their number at the end.
 */
export const readFacts = (query: FactQuery): Stream.Stream<StoredFact, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { names } = yield* Broker
      const now = yield* Clock.currentTimeMillis
      const { after, since = 0, until } = query
      if (contradictsItself(query)) return Stream.empty
      const follow = query.follow === true && (until === undefined || until > now)
      const { pick, warnOfSkipped } = makePicker(query)
      const facts = readStream({
        stream: names.history,
        subjects: subjectsOf(query, names),
        ...(after === undefined ? { fromTime: since } : { fromSeq: after + 1 }),
        follow
      }).pipe(
        Stream.takeWhile((message) => until === undefined || storedAt(message) <= until),
        Stream.map((message) => pick(message.string(), message.seq)),
        Stream.ensuring(warnOfSkipped),
        Stream.filter((stored) => stored !== undefined)
      )
      return follow && until !== undefined
        ? Stream.interruptWhen(facts, Effect.sleep(until - now))
        : facts
    })
  )

/** Sequences of the history that are looked at first. */
const firstSegment = 2_000
/** Each further look back covers so many times the sequences of the one before. */
const growth = 4

/**
 * Reads the newest facts that match a query, oldest first. Looks back from the end in growing
 * segments, so that a few facts of the last minutes cost no pass over a month. Holds at most twice
 * `limit` facts. With `follow`, goes on with the facts stored later.
 *
 * @param limit maximum number of facts of those stored now, at least 1.
 */
export const readNewestFacts = (
  query: FactQuery,
  limit: number
): Stream.Stream<StoredFact, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      if (contradictsItself(query)) return Stream.empty
      const { names, streamInfo } = yield* Broker
      const { since, until, ...rest } = query
      const { state } = yield* streamInfo("look at the history", names.history)
      const first = since === undefined ? 1 : yield* firstSince(names.history, since)
      const least = Math.max(1, state.first_seq, first)
      const last =
        until === undefined
          ? state.last_seq
          : Math.min(state.last_seq, (yield* firstSince(names.history, until + 1)) - 1)
      const { pick, warnOfSkipped } = makePicker(query)
      const subjects = subjectsOf(query, names)
      let newest: ReadonlyArray<StoredFact> = []
      let size = Math.max(firstSegment, limit)
      for (let to = last; to >= least && newest.length < limit; size *= growth) {
        const from = Math.max(least, to - size + 1)
        const wanted = limit - newest.length
        let found: Array<StoredFact> = []
        yield* readThrough({ stream: names.history, subjects, from, to }, ({ message, seq }) => {
          const stored = pick(message.string(), seq)
          if (stored === undefined) return
          found.push(stored)
          if (found.length >= 2 * wanted) found = found.slice(-wanted)
        })
        newest = [...found.slice(-wanted), ...newest]
        to = from - 1
      }
      yield* warnOfSkipped
      const stored = Stream.fromIterable(newest)
      return query.follow === true
        ? Stream.concat(stored, readFacts({ ...rest, until, after: state.last_seq }))
        : stored
    })
  )
