import { Effect, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { firstSince } from "../broker/scan.ts"
import type { FactQuery, StoredFact } from "./read.ts"
import { contradictsItself, makePicker, readFacts, subjectsOf } from "./read.ts"

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
