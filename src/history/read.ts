import { Clock, Effect, Option, Schema, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { readStream, storedAt } from "../broker/scan.ts"
import type { FactKind } from "../domain/fact.ts"
import { Fact, factResult } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"

/**
 * Which facts to read; all conditions hold at once. Times in ms since the epoch, of when the broker
 * stored a fact: that is the order they lie in.
 */
export interface FactQuery {
  readonly tenant?: string | undefined
  /** Only its own: the facts about an event as a whole (`routed`, `unroutable`) name no endpoint. */
  readonly endpoint?: { readonly tenant: string; readonly id: string } | undefined
  /** An event's id, or `evt_` + its sequence whatever its id. */
  readonly event?: string | undefined
  /** (Default: all) */
  readonly kinds?: ReadonlyArray<FactKind> | undefined
  /** Inclusive. */
  readonly since?: number | undefined
  /** Inclusive. */
  readonly until?: number | undefined
  /** Go on with what is stored later, to `until` where there is one. (Default: end with what is there now) */
  readonly follow?: boolean | undefined
}

/** A fact where it lies in the history. */
export interface StoredFact {
  /** Sequence in HISTORY. */
  readonly seq: number
  readonly fact: Fact
  /** The record as it was written, with fields this version may not know. */
  readonly record: Readonly<Record<string, unknown>>
}

const Json = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const decodeRecord = Schema.decodeUnknownOption(Json)
const decodeFact = Schema.decodeUnknownOption(Fact)

/** Reads the bytes of a fact; none where they are not one. */
export const parseFact = (text: string, seq: number): Option.Option<StoredFact> =>
  Option.flatMap(decodeRecord(text), (record) =>
    Option.map(decodeFact(record), (fact) => ({ seq, fact, record }))
  )

/** Of which a history has so many that it is read as a whole for them. */
const frequent: ReadonlySet<FactKind> = new Set(["routed", "delivered", "attempt-failed"])

/**
 * The broker finds the few facts of a rare kind by its index. For each fact that passes a filter
 * of single tokens it takes 80 µs where there are thousands of subjects, times the number of
 * filters, and 6 µs where it hands out all.
 */
const subjectsOf = (query: FactQuery, { subjects }: Names): ReadonlyArray<string> => {
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
 * Whether a fact is about an event (an id, or `evt_` + a sequence), and whether a text may be such a
 * fact: to look at the text takes a fraction of what it takes to read it as one.
 */
export const concerning = (
  event: string
): {
  readonly isAbout: (fact: Fact) => boolean
  readonly mayBeAbout: (text: string) => boolean
} => {
  const seq = /^evt_(\d+)$/.exec(event)?.[1]
  const id = JSON.stringify(event)
  const eventSeq = seq === undefined ? undefined : `"eventSeq":${Number(seq)}`
  return {
    isAbout: (fact) => fact.event === event || (seq !== undefined && fact.eventSeq === Number(seq)),
    mayBeAbout: (text) => text.includes(id) || (eventSeq !== undefined && text.includes(eventSeq))
  }
}

/** The kinds that are asked for; undefined for all. */
const kindsOf = ({ kinds = [] }: FactQuery): ReadonlyArray<FactKind> | undefined =>
  kinds.length === 0 ? undefined : [...new Set(kinds)]

const anything = { isAbout: () => true, mayBeAbout: () => true }

/**
 * The facts that a query asks for, in the order of the history. A record that is no fact of this
 * version is passed over; how many were is said at the end.
 */
export const readFacts = (query: FactQuery): Stream.Stream<StoredFact, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { names } = yield* Broker
      const now = yield* Clock.currentTimeMillis
      const { since = 0, tenant, until } = query
      if (tenant !== undefined && query.endpoint !== undefined && tenant !== query.endpoint.tenant)
        return Stream.empty
      const follow = query.follow === true && (until === undefined || until > now)
      const kinds = kindsOf(query)
      const { isAbout, mayBeAbout } = query.event === undefined ? anything : concerning(query.event)
      let skipped = 0
      const warnOfSkipped = Effect.suspend(() =>
        skipped === 0
          ? Effect.void
          : Effect.logWarning(`passed over what is no fact in ${names.history}: ${skipped}`)
      )
      const facts = readStream({
        stream: names.history,
        subjects: subjectsOf(query, names),
        fromTime: since,
        follow
      }).pipe(
        Stream.takeWhile((message) => until === undefined || storedAt(message) <= until),
        Stream.map((message) => {
          const text = message.string()
          if (!mayBeAbout(text)) return undefined
          const stored = Option.getOrUndefined(parseFact(text, message.seq))
          if (stored === undefined) skipped++
          return stored
        }),
        Stream.ensuring(warnOfSkipped),
        Stream.filter((stored) => stored !== undefined),
        Stream.filter(({ fact }) => isAbout(fact) && (kinds?.includes(fact.kind) ?? true))
      )
      return follow && until !== undefined
        ? Stream.interruptWhen(facts, Effect.sleep(until - now))
        : facts
    })
  )
